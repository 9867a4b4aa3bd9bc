"""Learning one task."""
