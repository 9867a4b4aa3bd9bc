"""Records to figures, one figure a file."""
