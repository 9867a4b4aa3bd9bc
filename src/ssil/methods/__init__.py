"""One short file a method (or a family that shares its training)."""
