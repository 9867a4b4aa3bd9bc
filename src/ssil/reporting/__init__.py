"""Figures, tables, pages."""
