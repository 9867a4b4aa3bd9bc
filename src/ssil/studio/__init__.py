"""The model behind HTTP: a server for programs (`ssil serve`), and pages for people (`ssil studio`).

Lives here: who may use the server (`access.py`), the version that predicts (`live_model.py`), batches of concurrent
requests (`batching.py`), the routes (`prediction_api.py`). Nothing here imports torch: predictions run `model.onnx`.
May import everything up to `reporting`. Start with `application.py`.
"""
