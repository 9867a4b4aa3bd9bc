"""Live tracking of a run in other tools.

`tracker` turns what happens in a run into points, and begins here; `backends` has one class per tool: TensorBoard,
MLflow, Weights & Biases. A tool's package is imported only when it is asked for. May import the rest of benchmark,
except grid.
"""
