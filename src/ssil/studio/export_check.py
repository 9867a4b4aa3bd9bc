"""Whether a version's `model.onnx` predicts as PyTorch does, on the photos that the version keeps.

Call it as `python -m ssil.studio.export_check MODEL VERSION [TRUSTED...]`; it prints a JSON object. It imports torch.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


def compare(model: Path, number: int, trusted: Sequence[str]) -> dict[str, Any]:
    """Return the number of images, how many have the same best class, and the largest difference of a probability."""
    from ssil.classifier.exported_model import load_predictor
    from ssil.classifier.model_directory import ModelDirectory
    from ssil.classifier.prediction import predict_views
    from ssil.classifier.prediction_inputs import read_view

    classifier = ModelDirectory(model, trusted).load(number).classifier
    images = [image for group in (*classifier.holdout, *classifier.exemplars) for image in group]
    if not images:
        return {"images": 0, "same": 0, "difference": 0.0}
    predictor, count = load_predictor(model, number), len(classifier.classes.names)
    views = np.stack([read_view(image.read(), predictor.preprocessing) for image in images])
    names = [image.name for image in images]
    pairs = [
        (dict(one.ranking), dict(two.ranking))
        for one, two in zip(
            predictor.predict(names, views, count), predict_views(classifier, names, views, count), strict=True
        )
    ]
    return {
        "images": len(pairs),
        "same": sum(max(one, key=one.__getitem__) == max(two, key=two.__getitem__) for one, two in pairs),
        "difference": max(abs(one[name] - two[name]) for one, two in pairs for name in one),
    }


if __name__ == "__main__":
    _model, _number, *_trusted = sys.argv[1:]
    print(json.dumps(compare(Path(_model), int(_number), _trusted)))
