"""The model behind HTTP: a server for programs (`ssil serve`), and pages for people (`ssil studio`).

Lives here: who may use it (`access.py`), the version that predicts (`live_model.py`), batches of concurrent requests
(`batching.py`), the routes for programs (`prediction_api.py`); photos that wait to be learnt (`staging.py`), updates in
processes of their own (`learning_jobs.py`, `learner.py`), the routes of pages (`photo_routes.py`, `page_routes.py`,
templates/, static/). The server imports no torch: predictions run `model.onnx`. May import everything up to
`reporting`. Start with `application.py`.
"""
