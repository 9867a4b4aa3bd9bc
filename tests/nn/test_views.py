"""Features of two views of an image: against a literal computation, and what may be combined with them."""

import pytest
import torch

from ssil.classifier.classifier_settings import make_settings
from ssil.classifier.feature_extraction import trained_network
from ssil.classifier.update import changed_settings
from ssil.core.errors import UserError
from ssil.nn.backbones import find_backbone
from ssil.nn.heads import LinearHead
from ssil.nn.network import build
from ssil.nn.pretrained import Pretrained


def test_features_are_the_mean_of_the_whole_image_at_half_its_size_and_of_its_centre() -> None:
    network = build("resnet14", LinearHead, 3, "batch", torch.Generator().manual_seed(0), views=2).eval()
    plain = find_backbone("resnet14")(3, "batch").eval()
    own = network.backbone.state_dict()
    plain.load_state_dict({name.removeprefix("backbone."): tensor for name, tensor in own.items()})
    images = torch.rand(3, 3, 32, 24, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        for image, found in zip(images, network(images).features, strict=True):
            halved = image.view(3, 16, 2, 12, 2).mean((2, 4))
            whole, centre = (plain(view[None])[0][0] for view in (halved, image[:, 8:24, 6:18]))
            torch.testing.assert_close(found, (whole + centre) / 2)
            assert not torch.allclose(whole, centre, rtol=1e-3)


def test_pretrained_weights_are_those_of_each_view() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: tensor.clone()
        for name, tensor in build("resnet8", LinearHead, 3, "batch", generator).state_dict().items()
    }
    given = Pretrained(
        "some.safetensors", {name: tensor for name, tensor in weights.items() if name.startswith("backbone.")}
    )
    network = build("resnet8", LinearHead, 3, "batch", generator, init=given, views=2)
    for name, tensor in network.backbone.state_dict().items():
        assert torch.equal(tensor, weights[name]), name


def test_an_image_is_twice_as_large_as_each_view() -> None:
    settings = make_settings({"views": 2, "image_size": 48})
    assert settings.preprocessing().size == 96
    assert settings.preprocessing().augment == "shift"


def test_weights_that_are_trained_see_one_view() -> None:
    with pytest.raises(UserError, match="views: only weights that stay as they are"):
        trained_network(make_settings({"views": 2}), None)


def test_the_number_of_views_of_a_model_stays() -> None:
    with pytest.raises(UserError, match="views: the model was made with 2"):
        changed_settings(make_settings({"views": 2, "freeze": True}), {"views": 1})
    assert make_settings({"freeze": True}).views == 1, "that of a model file from before there was a choice"
