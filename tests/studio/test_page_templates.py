"""What pages say in cases that are rare in a walk through the studio."""

from ssil.studio.page_templates import rendered
from ssil.studio.prediction_api import ClassProbability, ImageReply, PredictReply


def prediction(unknown: bool) -> str:
    classes = [ClassProbability(name="plum", probability=0.999), ClassProbability(name="lime", probability=0.001)]
    reply = PredictReply(version=2, images=[ImageReply(name="a.jpg", classes=classes, unknown=unknown, error=None)])
    return rendered("prediction.html", reply=reply, problem="")


def test_an_unknown_photo_has_no_class_of_which_the_model_is_sure() -> None:
    page = prediction(unknown=True)
    assert "The most similar first: plum, lime." in page
    assert "99.9" not in page
    assert "99.9 %" in prediction(unknown=False)
