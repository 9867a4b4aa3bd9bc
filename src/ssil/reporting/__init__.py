"""Figures, tables and HTML pages, made from records of runs and from model versions.

`sections` groups runs that may be compared; `headline_table`, `findings`, `protocol_card` and `plotly_figures` describe
a group; `report_page` puts these into templates/; `figures` holds matplotlib figures. May import every
room but ssil.reproduction and ssil.cli. Start with `report_page.page`.
"""
