"""Data sets: from files, stores and downloads to batches of network input.

May import `ssil.core` only. Start with `load.load(DataSettings(dataset=...))`: a source in `sources/` or a store gives
an `ImageIndex` of encoded images, `file_validation` decodes each once, and `assemble` splits the good ones into a
`Dataset` of `Encoded` images. Sets of pixels are `Resident` images from the start. A `Transform` of `augmentation`
turns fetched pixels into network input.
"""
