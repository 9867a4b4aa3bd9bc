"""Stores: a data set's encoded images packed into a few large Arrow files, validated once and opened at once.

Stores import the rest of `ssil.data` except `load` and `sources`. Start with `format.py`, which describes the files of
a store; `writer.py` implements `ssil data prepare`, `reader.py` opens a store as a source of images and checks it.
"""
