"""Data sets by origin, one file per source: an index of encoded images, or the pixels as a `Dataset`.

Sources import the rest of `ssil.data` except `load`, `assemble` and `store`. Start with `folder.py`, which also has
what the sources of image files share; a new source is added to the tables in `ssil.data.load`.
"""
