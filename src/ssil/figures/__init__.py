"""Records to figures, one figure a file. Nothing here loads a model or a data set."""
