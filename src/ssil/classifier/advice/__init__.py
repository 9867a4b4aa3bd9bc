"""Advice on the images of an update: which look mislabelled, copied, blurred or dark, and which classes need more.

Start with `advise.py`, which puts the parts together. `image_measures.py` looks at pixels, `leave_one_out.py` computes
what linear discriminants would say of each image without it, `doubtful_images.py` and `doubtful_classes.py` decide,
`sentences.py` says it in plain words. Thresholds were chosen on clothing and CIFAR-100, see docs/results/advice.md.
"""
