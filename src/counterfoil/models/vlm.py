"""Vision-language models behind an HTTP endpoint: their address and options, their answers, and usage.json."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from counterfoil.errors import UserError
from counterfoil.labels.benchmark_classes import load_label_space
from counterfoil.labels.label_space import LabelSpace, custom_label_space, imagenet1k
from counterfoil.models.endpoint import (
    Filtered,
    Rejected,
    describe_validation_error,
    encode_data_url,
    read_endpoint_settings,
)
from counterfoil.models.model_protocol import ModelBase
from counterfoil.models.request_retry import RequestQueue, RetriesExhausted
from counterfoil.models.two_choice_question import (
    Order,
    Questions,
    Vocabulary,
    format_question,
    read_distractors,
    read_synonyms,
)
from counterfoil.models.vlm_answer import Match, ParsedAnswer, parse_answer
from counterfoil.store.files import write_atomically
from counterfoil.types import Model, Prediction, Usage, Variant


class VlmOptions(BaseModel):
    """Everything that can change an answer or its score; it is part of the model's name and of its digest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    labels: str = ""  # a known space, a JSON file of classes, or labels separated by commas
    order: Order = "random"
    distractors: str = ""  # a file; those it lacks are drawn
    synonyms: str = ""  # a file that adds to the published synonyms
    match: Match = "substring"
    format: Literal["jpeg", "png"] = "jpeg"
    longest_side: int = Field(default=1024, ge=32, le=2048)  # pixels; smaller pictures are sent as they are
    answer_tokens: int = Field(default=100, ge=1, le=32768)
    token_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: float | Literal["default"] = 0.0
    seed: int = 0


def parse_vlm_address(address: str, place: str) -> tuple[str, VlmOptions]:
    """The model's name and the settings behind it."""
    model, _, query = place.partition("?")
    if not model.strip():
        raise UserError(f"expected vlm:NAME with the name the endpoint knows the model by, got '{address}'")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise UserError(f"expected settings such as vlm:{model}?order=faithful&format=png, got '{address}'") from None
    settings = dict(pairs)
    if len(settings) < len(pairs):
        raise UserError(f"expected each setting once, got '{address}'")
    try:
        return model, VlmOptions.model_validate(settings)
    except ValidationError as error:
        raise UserError(
            f"'{address}': {describe_validation_error(error)}; expected keys: {', '.join(VlmOptions.model_fields)}"
        ) from None


def choose_label_space(labels: str, classes: LabelSpace | None) -> LabelSpace:
    """The classes that a model is asked about: those of its address, else those of the run, else ImageNet's."""
    if not labels:
        return classes or imagenet1k()
    if "," not in labels or Path(labels).is_file():
        return load_label_space(labels)
    names = tuple(name.strip() for name in labels.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise UserError(f"expected labels divided by commas, no two alike, got 'labels={labels}'")
    return custom_label_space("the address", names)


_TEXT_KEPT = 1000  # characters of an answer that are kept


@dataclass(frozen=True, kw_only=True)
class VisionLanguageModel(ModelBase):
    """A vision-language model; called as a classifier, it chooses among all labels and gives one of them 1."""

    name: str
    model: str  # as the endpoint knows it
    options: VlmOptions
    labels: tuple[str, ...]
    vocabulary: Vocabulary = field(repr=False)
    distractors: Mapping[str, str] = field(repr=False)  # distractors by id
    requests: RequestQueue = field(repr=False)
    preprocessing: None = None  # done by the endpoint, not known

    @cached_property
    def digest(self) -> str:
        """Hash of all known settings that affect an answer; the endpoint's weights are not known."""
        about = [
            self.model, self.options.model_dump(), sorted(self.distractors.items()),
            [(label, self.vocabulary.called(label), sorted(self.vocabulary.accepted(label))) for label in self.labels],
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()

    @property
    def usage(self) -> Usage:
        """The usage since the model was loaded."""
        return self.requests.usage

    @property
    def retryable(self) -> bool:
        """True: errors come from the network."""
        return True

    @property
    def gives_scores(self) -> bool:
        """False: it chooses between two answers."""
        return False

    def close(self) -> None:
        """End every wait and close the connections."""
        self.requests.close()

    def among(self, labels: Sequence[str]) -> VisionLanguageModel:
        """The same model with distractors from these labels only; unchanged where there is only one label."""
        wanted = set(labels)
        return replace(self, labels=tuple(name for name in self.labels if name in wanted)) if len(wanted) > 1 else self

    def offering(self, distractors: Mapping[str, str]) -> VisionLanguageModel:
        """The same model with these distractors, where it knows them; those that the user gave come first."""
        known = set(self.labels)
        offered = {sample: label for sample, label in distractors.items() if label in known}
        return replace(self, distractors={**offered, **self.distractors})

    def predict(self, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
        """One prediction per variant, in order; where there is no score, the outcome says why."""
        pairs = list(zip(variants, images, strict=True))
        return self.requests.each(lambda pair: self._answer(*pair), pairs)

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """1 for the label chosen among all of them, (len(images), len(labels)); NaN where none was."""
        text = format_question([self.vocabulary.called(label) for label in self.labels])
        accepted = [self.vocabulary.accepted(label) for label in self.labels]
        scores = np.full((len(images), len(self.labels)), np.nan, np.float32)
        readings = self.requests.each(lambda image: self._read(text, image, accepted)[0], images)
        for row, reading in enumerate(readings):
            if reading.choice is not None:
                scores[row] = np.arange(len(self.labels)) == reading.choice
        return scores

    @cached_property
    def _questions(self) -> Questions:
        return Questions(self.vocabulary, self.labels, self.distractors, self.options.order, self.options.seed)

    def _answer(self, variant: Variant, image: NDArray[np.uint8]) -> Prediction:
        question = self._questions.about(variant)
        choices = (question.truth, question.distractor)
        reading, text = self._read(question.text, image, [self.vocabulary.accepted(label) for label in choices])
        if reading.choice is None:
            return Prediction(variant.id, (), (), float("nan"), reading.outcome, text)
        right = 1.0 if reading.choice == 0 else 0.0
        return Prediction(variant.id, (choices[reading.choice],), (1.0,), right, reading.outcome, text)

    def _read(
        self, text: str, image: NDArray[np.uint8], accepted: Sequence[Collection[str]]
    ) -> tuple[ParsedAnswer, str]:
        """The parsed answer, with its text or the reason why there is none."""
        try:
            reply = self.requests.ask(self._body(text, image))
        except (RetriesExhausted, Rejected) as problem:
            reading, text_kept = ParsedAnswer("error"), str(problem)
        except Filtered as problem:
            reading, text_kept = ParsedAnswer("refused"), str(problem)
        else:
            reading = (
                ParsedAnswer("refused") if reply.refused else parse_answer(reply.text, accepted, self.options.match)
            )
            text_kept = reply.text
        self.requests.count(reading.outcome)
        return reading, text_kept[:_TEXT_KEPT]

    def _body(self, text: str, image: NDArray[np.uint8]) -> dict[str, Any]:
        url = encode_data_url(image, self.options.format, self.options.longest_side)
        content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": text}]
        body = {"model": self.model, "messages": [{"role": "user", "content": content}]}
        heat = {} if self.options.temperature == "default" else {"temperature": self.options.temperature}
        return {**body, self.options.token_key: self.options.answer_tokens, **heat}


def load_vlm(address: str, place: str, classes: LabelSpace | None = None) -> VisionLanguageModel:
    """The model that `vlm:NAME?settings` names; the endpoint comes from the environment."""
    model, options = parse_vlm_address(address, place)
    space = choose_label_space(options.labels, classes)
    names = {label: space.name_of(label) for label in space.labels}
    distractors = read_distractors(options.distractors, names) if options.distractors else {}
    vocabulary = Vocabulary(names, read_synonyms(options.synonyms))
    return VisionLanguageModel(
        name=address,
        model=model,
        options=options,
        labels=space.labels,
        vocabulary=vocabulary,
        distractors=distractors,
        requests=RequestQueue(read_endpoint_settings()),
    )


def record_usage(folder: Path, classifiers: Iterable[Model]) -> None:
    """Add this session's usage to that of earlier sessions."""
    session = {model.name: usage for model in classifiers if (usage := model.usage) is not None}
    if not session:
        return
    earlier = read_usage(folder)
    total = {name: usage.plus(earlier[name]) if name in earlier else usage for name, usage in session.items()}
    records = {name: usage.record() for name, usage in total.items()}
    write_atomically(folder / "usage.json", json.dumps(records, indent=1, allow_nan=False))


def read_usage(folder: Path) -> dict[str, Usage]:
    """The usage of each endpoint in a run, over all sessions; empty where there was none."""
    path = folder / "usage.json"
    if not path.is_file():
        return {}
    try:
        return {name: Usage.of(record) for name, record in json.loads(path.read_text(encoding="utf-8")).items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(
            f"expected the usage of endpoints in {path}, which is damaged: {error}; move it away to count anew"
        ) from error
