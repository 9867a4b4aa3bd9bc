"""The SS-IL paper (ICCV 2021): its scenarios, tables, figures and claims, checked against records of runs.

A `Condition` (paper_scenarios) is a stream with its memory budget; a `Preset` is a data set for which conditions are
run; a line (rows) is a row of a table by its printed name; `Evidence` finds the records of lines. May import every room
but ssil.cli. Start with `paper_claims.CLAIMS` or `tables_and_figures.ITEMS`.
"""
