"""Grids: methods x scenarios x seeds, several runs at once.

Begin with `cells`, which reads a grid's TOML file. `process_pool` runs the cells on this machine, `cluster` and
`cluster_worker` on a Ray cluster, and `forecast` tells how long they are going to take. May import the rest of
benchmark, except tracking.
"""
