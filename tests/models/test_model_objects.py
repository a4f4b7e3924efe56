"""Models given as objects: what is known of them is derived, what is missing is asked for in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.contract_checks import check_model
from counterfoil.errors import UserError
from counterfoil.models.model_objects import ModelHints, as_models, wrap_model

Images = Sequence[NDArray[np.uint8]]
LABELS = ["dark", "bright"]


def shades(images: Images) -> NDArray[np.float64]:
    """Probabilities by brightness."""
    bright = np.array([image.mean() / 255 for image in images])
    return np.stack([1 - bright, bright], axis=1)


def logits(images: Images) -> NDArray[np.float64]:
    return np.log(shades(images))


def words(images: Images) -> list[str]:
    return ["bright" if row[1] > 0.5 else "dark" if row[1] > 0.1 else "pitch black" for row in shades(images)]


class Fitted:
    """As scikit-learn's classifiers are."""

    classes_ = np.array(LABELS)

    def predict_proba(self, images: Images) -> NDArray[np.float64]:
        return shades(images)


PICTURES = [np.full((30, 40, 3), level, np.uint8) for level in (60, 200, 10)]


@pytest.mark.parametrize("model", [shades, logits, Fitted()])
def test_scores_are_probabilities_under_the_labels(model: Any) -> None:
    wrapped = wrap_model(model, labels=None if isinstance(model, Fitted) else LABELS)
    assert wrapped.labels == ("dark", "bright")
    np.testing.assert_allclose(wrapped(PICTURES), shades(PICTURES), atol=1e-6)
    check_model(wrapped, PICTURES)


def test_a_function_that_gives_labels_answers_with_them_and_others_count_as_no_class() -> None:
    wrapped = wrap_model(words, labels=LABELS)
    assert wrapped.labels == ("dark", "bright", "background")
    assert wrapped(PICTURES).argmax(axis=1).tolist() == [0, 1, 2]


def test_a_model_that_works_in_place_changes_no_picture_of_others() -> None:
    def blackens(images: Images) -> NDArray[np.float64]:
        scores = shades(images)
        for image in images:
            image[:] = 0
        return scores

    pictures = [picture.copy() for picture in PICTURES]
    np.testing.assert_allclose(wrap_model(blackens, labels=LABELS)(pictures), shades(PICTURES), atol=1e-6)
    assert all((picture == before).all() for picture, before in zip(pictures, PICTURES, strict=True))


def test_whole_numbers_are_positions_as_floats_too() -> None:
    def bright(images: Images) -> NDArray[np.float64]:
        return np.round(shades(images)[:, 1])

    assert wrap_model(bright, labels=LABELS)(PICTURES).argmax(axis=1).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (lambda images: shades(images)[:, 1], "got a decimal number for each; with two classes give both columns"),
        (lambda images: [{"dark": 1.0} for _ in images], "as a name or a number, got dict"),
        (lambda images: [b"dark" for _ in images], "as a name or a number, got bytes"),
    ],
)
def test_an_answer_that_is_no_label_is_refused(answer: Any, line: str) -> None:
    with pytest.raises(UserError, match=line):
        wrap_model(answer, labels=LABELS)


def test_numbers_are_positions_unless_they_are_the_labels_themselves() -> None:
    assert wrap_model(lambda images: [1 for _ in images], labels=LABELS)(PICTURES).argmax(axis=1).tolist() == [1, 1, 1]
    numbered = wrap_model(lambda images: [7 for _ in images], labels=["3", "7"])
    assert numbered(PICTURES).argmax(axis=1).tolist() == [1, 1, 1]


def test_a_pipeline_of_scikit_learn_is_a_model_with_its_own_classes() -> None:
    from sklearn.linear_model import LogisticRegression

    features = np.array([[image.mean()] for image in PICTURES])
    fitted = LogisticRegression().fit(features, ["dark", "bright", "dark"])
    wrapped = wrap_model(fitted, transform=lambda picture: [np.asarray(picture).mean()])
    assert wrapped.labels == ("bright", "dark")
    np.testing.assert_allclose(wrapped(PICTURES), fitted.predict_proba(features), atol=1e-6)


def test_the_identity_is_what_the_model_answers() -> None:
    first, same, other = (wrap_model(model, labels=LABELS, name="m") for model in (shades, shades, Fitted()))
    assert first.identity == same.identity == other.identity  # equal answers
    assert first.identity != wrap_model(lambda images: shades(images)[:, ::-1], labels=LABELS, name="m").identity


def test_models_by_name_are_addresses_under_a_name_or_objects_with_it() -> None:
    hints = ModelHints(labels=LABELS)
    address, model = as_models({"v1": "onnx:v1.onnx", "mine": shades}, hints)
    assert address == "v1=onnx:v1.onnx"
    assert not isinstance(model, str)
    assert model.name == "mine"
    assert as_models("onnx:v1.onnx", hints) == ("onnx:v1.onnx",)


BAD: Sequence[tuple[Any, dict[str, Any], str]] = (
    (Fitted, {}, r"got the class Fitted; make an object of it: Fitted\(\)"),
    (3, {}, "expected a model: an address, a torch module, a function"),
    (shades, {}, "expected a name for each of the 2 columns of 'shades', got none; give labels="),
    (shades, {"labels": ["one"]}, "expected 2 labels for 'shades', one for each of its columns, got 1"),
    (words, {}, "expected the labels that 'words' chooses from, got none"),
    (lambda images: 1 / 0, {}, "expected model to answer 4 pictures, but it fails: ZeroDivisionError"),
    (lambda images: [0.5], {"labels": LABELS}, r"got an answer of shape \(1,\) to 4 pictures"),
    (lambda images: [[{"label": "a"}] * 2] * len(images), {"labels": LABELS}, "expected numbers as scores from model"),
    (shades, {"labels": "ab"}, "expected labels as a list of names, one for each class in order, got str"),
    (shades, {"labels": {"a", "b"}}, "expected labels as a list of names, one for each class in order, got set"),
    (shades, {"labels": [0, 1]}, "expected labels as a list of names, got int among them"),
    (shades, {"labels": LABELS, "transform": 3}, "expected transform= as a function of a picture, got int"),
    (shades, {"labels": LABELS, "options": "cuda"}, "expected options= as ModelOptions, got str"),
)


def test_labels_may_be_a_dict_by_number_or_any_row_of_names() -> None:
    for given in ({1: "b", 0: "a"}, np.array(["a", "b"]), (name for name in "ab"), {"a": 1, "b": 2}.keys()):
        assert wrap_model(shades, labels=given).labels == ("a", "b")  # type: ignore[arg-type]


@pytest.mark.parametrize(("model", "known", "line"), BAD)
def test_what_is_missing_is_asked_for_in_one_line(model: Any, known: dict[str, Any], line: str) -> None:
    with pytest.raises(UserError, match=line) as error:
        wrap_model(model, **known)
    assert "\n" not in str(error.value)


def small_network() -> Any:
    import torch

    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 5, stride=4), torch.nn.Dropout(0.5), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.LazyLinear(2),
    )  # fmt: skip


def to_tensor(picture: Any) -> Any:
    import torch

    return torch.from_numpy(np.array(picture.resize((32, 32)))).permute(2, 0, 1).float() / 255


@pytest.mark.torch
def test_a_torch_module_runs_in_evaluation_mode_and_stays_as_it_was() -> None:
    import torch

    module = small_network()
    module(torch.zeros(1, 3, 32, 32))
    module.train()
    wrapped = wrap_model(module, labels=LABELS, transform=to_tensor, name="net")
    assert module.training
    assert module[1].training
    scores = wrapped(PICTURES)
    np.testing.assert_array_equal(scores, wrapped(PICTURES))  # no dropout
    with torch.inference_mode():
        from PIL import Image

        ready = torch.stack([to_tensor(Image.fromarray(image)) for image in PICTURES])
        expected = module.eval()(ready).softmax(dim=1).numpy()
    np.testing.assert_allclose(scores, expected, atol=1e-5)


@pytest.mark.torch
def test_the_identity_of_a_module_is_its_weights_and_its_transform() -> None:
    import torch

    def wrap(module: Any, transform: Any = to_tensor) -> str:
        return wrap_model(module, labels=LABELS, transform=transform, name="net").identity

    module = small_network()
    module(torch.zeros(1, 3, 32, 32))
    before = wrap(module)
    assert before == wrap(module)
    assert before != wrap(module, lambda picture: to_tensor(picture) * 2 - 1)
    with torch.no_grad():
        module[0].weight[0] += 1
    assert before != wrap(module)


@pytest.mark.torch
def test_a_module_asks_for_its_transform_and_refuses_a_random_one() -> None:
    import torch

    module = small_network()
    module(torch.zeros(1, 3, 32, 32))
    with pytest.raises(UserError, match="expected a transform for the torch module 'Sequential', got none"):
        wrap_model(module, labels=LABELS)
    with pytest.raises(UserError, match="take random parts out of it"):
        wrap_model(module, labels=LABELS, transform=lambda picture: to_tensor(picture) + torch.rand(1))
    with pytest.raises(UserError, match="one shape"):
        wrap_model(module, labels=LABELS, transform=lambda picture: torch.zeros(3, *picture.size))
