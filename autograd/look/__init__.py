"""Views of a graph: text, pictures, paths, profiles, and the operation that made the first NaN."""
