"""A classifier that keeps learning: names in, names out, one directory."""
