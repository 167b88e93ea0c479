"""Views of a graph: text, pictures, paths, profiles, comparisons, and the operation that made the first NaN."""
