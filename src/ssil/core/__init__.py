"""Values and tools that every part shares."""

__version__ = "0.1.0"
