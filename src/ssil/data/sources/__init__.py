"""Sources of image files: each a function that lists what there is, decoding nothing."""
