"""Learning one task: `engine.learn(method, snapshot, memory, task, context)` returns the next snapshot.

It may import core, nn and data; it reads and writes no run directories and names no method.
Start with `engine.py` (one task) and `trainer.py` (one phase, the only epoch loop). `method.py` defines what a method
file describes, `registry.py` finds methods by name, `model_state.py` restores a model without anything for training.
"""
