"""Data sets by origin."""
