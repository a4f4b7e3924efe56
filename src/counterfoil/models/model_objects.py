"""Models given to Python as objects: torch modules, functions, scikit-learn style objects.

A model needs three things: labels, preprocessing and an identity. Labels come from the argument, the object or the
data set; a torch module is prepared by its transform; the identity is the weights or the answers on fixed pictures.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from counterfoil.errors import UserError, expect_kind
from counterfoil.labels.label_space import BACKGROUND, imagenet1k, list_class_names, match_imagenet_columns
from counterfoil.models.huggingface import verify_processor, wrap_logits
from counterfoil.models.model_identity import ask_trial_pictures, hash_answers, hash_given_object
from counterfoil.models.model_loaders import PythonClassifier
from counterfoil.models.model_names import NamedModel
from counterfoil.models.model_options import ModelOptions, Request
from counterfoil.models.model_protocol import ModelBase
from counterfoil.models.preprocessing import LibraryTransform, Preparation, make_trial_pictures, verify_preparation
from counterfoil.models.timm_torchvision import read_timm_preprocessing
from counterfoil.models.torch_classifier import build_classifier
from counterfoil.models.torch_network import TensorTransform, TorchNetwork
from counterfoil.plugins import import_extra, read_optional, reporting_errors
from counterfoil.types import Model, Preprocessing

_IMAGENET_COLUMNS = 1000
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # in the text of a function: another in every process
Pictures = Sequence[NDArray[np.uint8]]
Transform = Callable[[Image.Image], Any]


@dataclass(frozen=True, kw_only=True)
class ModelHints:
    """What is known of models besides themselves."""

    labels: Sequence[str] | None = None  # the name of each column
    transform: Transform | None = None  # a Pillow picture to what the model takes
    classes: Sequence[str] = ()  # of the photos, in the order of their numbers; () where there is no such order
    photo_labels: Sequence[str] = ()  # every label of the photos, where the source knows them
    options: ModelOptions | None = None

    def __post_init__(self) -> None:
        expect_kind(self.options, (ModelOptions, type(None)), "options= as ModelOptions")
        if self.transform is not None and not callable(self.transform):
            raise UserError(f"expected transform= as a function of a picture, got {type(self.transform).__name__}")


def wrap_model(
    model: Any,
    *,
    labels: Sequence[str] | None = None,
    transform: Transform | None = None,
    name: str | None = None,
    options: ModelOptions | None = None,
) -> Model:
    """Make a model of an object: a torch module, a function of pictures, or a scikit-learn style object.

    Args:
        model: A torch `nn.Module`; a callable that takes a list of RGB arrays and returns scores, (n, labels), or a
            label per picture; or an object with `predict_proba` or `predict`.
        labels: The name of each column of the scores. Not needed where the model has `labels`, `classes_` or
            `config.id2label`, or 1000 columns, which count as ImageNet's.
        transform: Takes a Pillow picture and gives what the model takes; results are stacked. A torch module needs
            one, unless it is timm's or an image processor of transformers is given.
        name: Its name in tables and reports; the function's or the class's if not given.
        options: Device, precision and batch size of a torch module.

    Returns:
        A `Model`, as `run`, `evaluate` and `mine` take it.

    Raises:
        UserError: Something is missing or does not fit; one line says what.

    Examples:
        >>> import numpy as np
        >>> def brightness(images):
        ...     bright = np.array([image.mean() / 255 for image in images])
        ...     return np.stack([1 - bright, bright], axis=1)
        >>> model = wrap_model(brightness, labels=["night", "day"])
        >>> model.name, model.labels
        ('brightness', ('night', 'day'))
    """
    expect_kind(name, (str, type(None)), "name= as a text")
    hints = ModelHints(labels=list_class_names(labels), transform=transform, options=options)
    return as_model(model, name or name_object(model), hints)


def as_models(models: Any, hints: ModelHints) -> tuple[str | Model, ...]:
    """The models that a user gave: one, several, or several by name; addresses stay addresses."""
    if isinstance(models, Mapping):
        return tuple(_named(thing, str(name), hints) for name, thing in models.items())
    given = list(models) if isinstance(models, list | tuple | set) else [models]
    return tuple(thing if isinstance(thing, str) else _named(thing, "", hints) for thing in given)


def _named(thing: Any, name: str, hints: ModelHints) -> str | Model:
    if isinstance(thing, str):
        return f"{name}={thing}"
    return as_model(thing, name or name_object(thing), hints)


def name_object(thing: Any) -> str:
    """A function's name, or the name of an object's class."""
    name = read_optional(thing, "name", None) or read_optional(thing, "__name__", None) or type(thing).__name__
    return "model" if name == "<lambda>" else str(name)


def as_model(thing: Any, name: str, hints: ModelHints) -> Model:
    """The model that an object is or becomes."""
    if isinstance(thing, type):
        raise UserError(f"expected a model, got the class {thing.__name__}; make an object of it: {thing.__name__}()")
    if isinstance(thing, ModelBase):
        model: Model = thing  # type: ignore[assignment]  # a subclass has the rest of the protocol
        return model if name == model.name else NamedModel(model, name)
    if _is_torch_module(thing):
        return _wrap_module(thing, name, hints)
    return _wrap_callable(thing, name, hints)


def _is_torch_module(thing: Any) -> bool:
    torch = sys.modules.get("torch")  # a module of torch exists only where torch was imported
    return torch is not None and isinstance(thing, torch.nn.Module)


def _wrap_module(module: Any, name: str, hints: ModelHints) -> Model:
    """A torch module; it runs as a copy in evaluation mode, the user's own stays as it is."""
    transformer = hasattr(read_optional(module, "config", None), "id2label")
    network = wrap_logits(module) if transformer else module
    preparation = _prepare_module(module, name, hints)
    height, width = preparation.preprocessing.size
    with reporting_errors(f"expected {name} to answer a picture of {height} x {width}, but it fails"):
        scores = _forward(network, preparation)
    if scores.ndim != 2:
        raise UserError(f"expected scores (pictures, classes) from {name}, got an output of shape {scores.shape}")
    labels = _find_labels(module, name, hints, scores.shape[1])
    kind: Literal["logits", "probabilities"] = "probabilities" if _are_probabilities(scores) else "logits"
    request = Request(name, "", hints.options or ModelOptions())
    return build_classifier(request, TorchNetwork(network, labels, preparation, kind))


def _forward(network: Any, preparation: Preparation) -> NDArray[np.float32]:
    """The module's scores of two fixed pictures, with the mode of each part as before."""
    torch = import_extra("torch", "torch")
    training = [part for part in network.modules() if part.training]
    parameter = next(iter(network.parameters()), None)
    pictures = torch.from_numpy(np.stack([preparation.picture(image) for image in make_trial_pictures()[:2]]))
    network.eval()
    try:
        with torch.inference_mode():
            output = network(pictures if parameter is None else pictures.to(parameter.device, parameter.dtype))
    finally:
        for part in training:
            part.training = True
    return _to_scores(output)


def _to_scores(output: Any) -> NDArray[np.float32]:
    """The tensor that a module gave, as an array."""
    if not hasattr(output, "detach"):
        raise UserError(f"expected a tensor of scores (pictures, classes), got {type(output).__name__}; return one")
    return np.asarray(output.detach().float().cpu().numpy(), np.float32)


def _prepare_module(module: Any, name: str, hints: ModelHints) -> Preparation:
    """By the transform that was given, else by the one that timm names for the weights."""
    transform = hints.transform
    if transform is None and read_optional(module, "pretrained_cfg", None):
        timm = import_extra("timm", "torch")
        theirs, guess = read_timm_preprocessing(module)
        return verify_preparation(TensorTransform(theirs), guess, f"timm {timm.__version__}")
    if transform is None:
        raise UserError(
            f"expected a transform for the torch module '{name}', got none; give transform=..., or"
            " wrap_model(module, transform=..., labels=...) for one model of several"
        )
    if hasattr(transform, "image_mean"):
        return verify_processor(transform, import_extra("transformers", "torch"))
    return _prepare_by(transform, name)


def _prepare_by(transform: Transform, name: str) -> Preparation:
    """The user's transform itself, tried on pictures of several sizes, which must give one shape."""
    array = TensorTransform(transform)
    with reporting_errors(f"expected the transform of {name} to take Pillow pictures and give tensors, but it fails"):
        inputs = [np.asarray(array(Image.fromarray(image))) for image in make_trial_pictures()]
        again = np.asarray(array(Image.fromarray(make_trial_pictures()[0])))
    shapes = sorted({values.shape for values in inputs})
    if len(shapes) > 1 or len(shapes[0]) != 3:
        raise UserError(
            f"expected the transform of {name} to give one shape (3, height, width) for every picture, got"
            f" {' and '.join(map(str, shapes[:2]))}; resize and crop in it, even where your pictures have one size"
        )
    if not np.array_equal(inputs[0], again):
        raise UserError(f"expected the same from the transform of {name} each time; take random parts out of it")
    text = _ADDRESS.sub("", " ".join(str(transform).split()))
    digest = hash_answers(np.stack([values.mean(axis=(1, 2)) for values in inputs]))[:12]
    _, height, width = shapes[0]
    preprocessing = LibraryTransform(size=(height, width), resize=None, transform=f"{text} ({digest})")
    return Preparation(preprocessing, "the transform that was given", array)


def _wrap_callable(thing: Any, name: str, hints: ModelHints) -> Model:
    """A function or a scikit-learn style object; what it gives is found out by asking it about fixed pictures."""
    ask = _choose_method(thing, name)
    scorer = ObjectScorer(ask=ask, transform=hints.transform or read_optional(thing, "transform_picture", None))
    trial = len(make_trial_pictures())
    with reporting_errors(f"expected {name} to answer {trial} pictures, but it fails"):
        answers = np.asarray(ask_trial_pictures(scorer.raw))
    if answers.ndim not in (1, 2) or len(answers) != trial:
        raise UserError(
            f"expected scores (pictures, classes) or a label per picture from {name}, got an answer of shape"
            f" {answers.shape} to {trial} pictures"
        )
    if answers.ndim == 2 and answers.dtype.kind not in "biuf":
        raise UserError(f"expected numbers as scores from {name}, got values of type {answers.dtype}")
    if answers.ndim == 1:
        _check_answers(answers, name)
    preprocessing: Preprocessing | None = read_optional(thing, "preprocessing", None)
    digest = str(read_optional(thing, "digest", None) or hash_given_object(thing, answers))
    if answers.ndim == 2:
        labels = _find_labels(thing, name, hints, answers.shape[1])
        scorer = scorer.with_scores(softmax=not _are_probabilities(answers))
    else:
        labels = (*_find_answers(thing, name, hints), BACKGROUND)  # a column for answers that are no label
        scorer = scorer.with_answers(labels)
    return PythonClassifier(name, labels, preprocessing, digest, scorer)


def _check_answers(answers: NDArray[Any], name: str) -> None:
    """Raises `UserError` for answers, one for each picture, that are neither names nor numbers of labels."""
    if answers.dtype.kind == "f" and (answers != np.round(answers)).any():
        raise UserError(
            f"expected scores (pictures, classes) or a label per picture from {name}, got a decimal number for each;"
            " with two classes give both columns: np.stack([1 - p, p], axis=1)"
        )
    other = next((one for one in answers.tolist() if not isinstance(one, str | int | float | None)), None)
    if other is not None:
        raise UserError(f"expected a label per picture from {name}, as a name or a number, got {type(other).__name__}")


def _choose_method(thing: Any, name: str) -> Callable[[Any], Any]:
    for method in ("predict_proba", "__call__", "predict"):
        found = read_optional(thing, method, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
    raise UserError(
        f"expected a model: an address, a torch module, a function of pictures, or an object with predict_proba or"
        f" predict; got {type(thing).__name__} for '{name}'"
    )


@dataclass(frozen=True, kw_only=True)
class ObjectScorer:
    """A function of pictures as a classifier: its answers as probabilities."""

    ask: Callable[[Any], Any]
    transform: Transform | None = None
    softmax: bool = False
    answers: tuple[str, ...] = ()  # the labels of a function that gives labels; the last is for all others
    labels: tuple[str, ...] = ()  # of the protocol; the model around it has them

    def with_scores(self, softmax: bool) -> ObjectScorer:
        """The same for a function that gives scores."""
        return ObjectScorer(ask=self.ask, transform=self.transform, softmax=softmax)

    def with_answers(self, answers: tuple[str, ...]) -> ObjectScorer:
        """The same for a function that gives labels."""
        return ObjectScorer(ask=self.ask, transform=self.transform, answers=answers)

    def raw(self, images: Pictures) -> NDArray[Any]:
        """What the function gives: scores, (n, columns), or labels, (n,)."""
        given: Any = list(images)
        if self.transform is not None:
            parts = [np.asarray(_to_numpy(self.transform(Image.fromarray(image)))) for image in images]
            given = np.stack(parts)
        return np.asarray(_to_numpy(self.ask(given)))

    def __call__(self, images: Pictures) -> NDArray[np.float32]:
        """Probabilities, (len(images), labels)."""
        answers = self.raw(images)
        if self.answers:
            return self._one_hot(answers)
        scores = answers.astype(np.float64)
        if self.softmax and scores.ndim == 2:
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            scores = scores / scores.sum(axis=1, keepdims=True)
        return np.asarray(scores, np.float32)

    def _one_hot(self, answers: NDArray[Any]) -> NDArray[np.float32]:
        """1 for the label that was given, by its name or its number."""
        scores = np.zeros((len(answers), len(self.answers)), np.float32)
        column_of = {label: column for column, label in enumerate(self.answers)}
        for row, answer in enumerate(answers.tolist()):
            number = int(answer) if isinstance(answer, float) and answer.is_integer() else answer
            place = number if isinstance(number, int) and 0 <= number < len(self.answers) else -1
            scores[row, column_of.get(str(answer), place)] = 1
        return scores


def _to_numpy(value: Any) -> Any:
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _are_probabilities(scores: NDArray[Any]) -> bool:
    """Whether every row is one of probabilities; logits of several pictures hardly ever are."""
    finite = scores[np.isfinite(scores).all(axis=1)]
    return bool(len(finite) and (finite >= -1e-4).all() and (np.abs(finite.sum(axis=1) - 1) <= 1e-2).all())


def _find_labels(thing: Any, name: str, hints: ModelHints, columns: int) -> tuple[str, ...]:
    """The name of each column: as given, as the object says, as the data set says, or ImageNet's of 1000 columns."""
    known = {
        "labels=": hints.labels,
        "its own labels": _own_labels(thing),
        "the classes of the data set": hints.classes or None,
        "ImageNet's classes": imagenet1k().labels if columns == _IMAGENET_COLUMNS else None,
    }
    for what, labels in known.items():
        if labels is not None and (len(labels) == columns or what == "labels="):
            _check_count(name, labels, columns)
            names = tuple(str(label) for label in labels)
            return match_imagenet_columns(names) or names
    raise UserError(
        f"expected a name for each of the {columns} columns of '{name}', got none; give labels=[...] in the order of"
        " the columns"
    )


def _check_count(name: str, labels: Sequence[str], columns: int) -> None:
    if len(labels) != columns:
        raise UserError(f"expected {columns} labels for '{name}', one for each of its columns, got {len(labels)}")


def _own_labels(thing: Any) -> Sequence[str] | None:
    """Labels that the object carries: `labels`, scikit-learn's `classes_`, transformers' `config.id2label`."""
    for attribute in ("labels", "classes_"):
        labels = read_optional(thing, attribute, None)
        if labels is not None and not callable(labels):
            return [str(label) for label in labels]
    numbered = read_optional(read_optional(thing, "config", None), "id2label", None)
    if numbered and not all(name == f"LABEL_{place}" for place, name in numbered.items()):
        return [numbered[place] for place in range(len(numbered))]
    return None


def _find_answers(thing: Any, name: str, hints: ModelHints) -> tuple[str, ...]:
    """The labels that a function may answer: as given, as the object says, else those of the photos."""
    labels = hints.labels or _own_labels(thing) or hints.classes or hints.photo_labels
    if not labels:
        raise UserError(f"expected the labels that '{name}' chooses from, got none; give labels=[...]")
    return tuple(dict.fromkeys(str(label) for label in labels))
