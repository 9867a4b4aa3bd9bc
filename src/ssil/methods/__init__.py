"""The methods, one short file each, named as its method (or as what its methods have in common).

A file may import core, nn, data and learning, never another method: what several methods share is in
`learning.losses`, `learning.training_subsets` and `learning.stages`. `ssil.py` holds SS-IL with its ablations, and
`rehearsal.py` the two methods that are plain cross-entropy (ER, joint). Files are found by themselves.
Start with `ssil.py` (one phase); `bic.py` shows several phases and a scorer.
"""
