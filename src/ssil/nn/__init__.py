"""Backbones, heads that grow with the classes, and networks made of both; initial and pretrained weights.

It may import core. A network knows nothing of tasks, methods or data sets.
Start with `network.py` (`Network` and `build`); `heads.py` has linear, cosine and proxy heads. `first_weights.py`
leads to all that `--init` takes; `weights.py` is the list of weights that have a name.
"""
