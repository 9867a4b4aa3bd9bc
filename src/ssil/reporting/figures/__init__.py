"""Matplotlib figures of records, and the drawings of the paper that need no run.

`style` fixes colours, markers, names and file formats; `lines` holds what all line plots share. Each other module holds
the figures that answer one question; their docstrings name the paper's figures. May import ssil.benchmark and rooms
below it. Start with `curves.accuracy_curves`.
"""
