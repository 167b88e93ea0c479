"""Files of numbers: columns of text and HDF5, and fields on grids."""
