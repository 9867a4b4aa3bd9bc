"""Packed data sets."""
