"""Benchmark runs: a method learns a stream of tasks, and leaves a record.

`runner.run` carries out one run of a `config.RunConfig`; begin reading there. `run_setup` loads what a run needs,
`run_directory` keeps it on disk, `record` holds its results, `results` combines many runs, `grid/` carries them out,
`tracking/` shows one live. May import core, nn, data, learning and methods; not the classifier.
"""
