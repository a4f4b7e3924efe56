"""A vision-language model behind an HTTP endpoint, asked ImageNet-D's two-choice question."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.evaluate import ModelBase
from counterfoil.labels import LabelSpace
from counterfoil.models.vlm.asking import Asking, label_space, parse
from counterfoil.models.vlm.choosing import Questions, question_among, read_distractors
from counterfoil.models.vlm.endpoint import Filtered, Rejected
from counterfoil.models.vlm.line import GaveUp, Line
from counterfoil.models.vlm.picture import data_url
from counterfoil.models.vlm.reach import reach_from
from counterfoil.models.vlm.reading import Reading, read
from counterfoil.models.vlm.usage import Usage
from counterfoil.models.vlm.vocabulary import Vocabulary, synonyms_with
from counterfoil.types import Prediction, Variant

_TEXT_KEPT = 1000  # characters of an answer: enough to read it again, not enough to fill a disk


@dataclass(frozen=True)
class VisionLanguageModel(ModelBase):
    """Answers in predictions; as a classifier it is asked to choose among all its labels, and gives one of them 1."""

    name: str
    model: str  # as the endpoint knows it
    asking: Asking
    labels: tuple[str, ...]
    vocabulary: Vocabulary = field(repr=False)
    given: Mapping[str, str] = field(repr=False)  # distractors by id
    line: Line = field(repr=False)
    preprocessing: None = None  # the endpoint does it, unseen

    @cached_property
    def digest(self) -> str:
        """Hash of all that is known to shape an answer; what the endpoint computes with cannot be seen from here."""
        about = [
            self.model, self.asking.model_dump(), sorted(self.given.items()),
            [(label, self.vocabulary.called(label), sorted(self.vocabulary.accepted(label))) for label in self.labels],
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()

    @property
    def usage(self) -> Usage:
        """What was asked since the model was loaded."""
        return self.line.usage

    @property
    def retryable(self) -> bool:
        """Errors come from the network."""
        return True

    @property
    def gives_scores(self) -> bool:
        """It chooses between two answers."""
        return False

    def close(self) -> None:
        """End every wait and let the connections go."""
        self.line.close()

    def among(self, labels: Sequence[str]) -> VisionLanguageModel:
        """The same model, whose wrong choices come from these labels alone; of one class there is no wrong choice."""
        wanted = set(labels)
        return replace(self, labels=tuple(name for name in self.labels if name in wanted)) if len(wanted) > 1 else self

    def offering(self, distractors: Mapping[str, str]) -> VisionLanguageModel:
        """The same model with these wrong answers, where it knows them; those that the user gave come first."""
        known = set(self.labels)
        offered = {sample: label for sample, label in distractors.items() if label in known}
        return replace(self, given={**offered, **self.given})

    def predict(self, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
        """One prediction per variant, in order; whatever could not be scored says so in its outcome."""
        pairs = list(zip(variants, images, strict=True))
        return self.line.each(lambda pair: self._answer(*pair), pairs)

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """1 for the label chosen among all of them, (len(images), len(labels)); NaN where none was."""
        text = question_among([self.vocabulary.called(label) for label in self.labels])
        accepted = [self.vocabulary.accepted(label) for label in self.labels]
        scores = np.full((len(images), len(self.labels)), np.nan, np.float32)
        found = self.line.each(lambda image: self._read(text, image, accepted)[0], images)
        for row, reading in enumerate(found):
            if reading.choice is not None:
                scores[row] = np.arange(len(self.labels)) == reading.choice
        return scores

    @cached_property
    def _questions(self) -> Questions:
        return Questions(self.vocabulary, self.labels, self.given, self.asking.order, self.asking.seed)

    def _answer(self, variant: Variant, image: NDArray[np.uint8]) -> Prediction:
        question = self._questions.about(variant)
        choices = (question.truth, question.distractor)
        reading, text = self._read(question.text, image, [self.vocabulary.accepted(label) for label in choices])
        if reading.choice is None:
            return Prediction(variant.id, (), (), float("nan"), reading.outcome, text)
        right = 1.0 if reading.choice == 0 else 0.0
        return Prediction(variant.id, (choices[reading.choice],), (1.0,), right, reading.outcome, text)

    def _read(self, text: str, image: NDArray[np.uint8], accepted: Sequence[Collection[str]]) -> tuple[Reading, str]:
        """Ask, and read the answer; also what was said, or why nothing was."""
        try:
            reply = self.line.ask(self._body(text, image))
        except (GaveUp, Rejected) as problem:
            reading, said = Reading("error"), str(problem)
        except Filtered as problem:
            reading, said = Reading("refused"), str(problem)
        else:
            reading = Reading("refused") if reply.refused else read(reply.text, accepted, self.asking.match)
            said = reply.text
        self.line.count(reading.outcome)
        return reading, said[:_TEXT_KEPT]

    def _body(self, text: str, image: NDArray[np.uint8]) -> dict[str, Any]:
        url = data_url(image, self.asking.format, self.asking.longest_side)
        content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": text}]
        body = {"model": self.model, "messages": [{"role": "user", "content": content}]}
        heat = {} if self.asking.temperature == "default" else {"temperature": self.asking.temperature}
        return {**body, self.asking.token_key: self.asking.answer_tokens, **heat}


def load_vlm(address: str, place: str, classes: LabelSpace | None = None) -> VisionLanguageModel:
    """The model that `vlm:NAME?settings` names; the endpoint comes from the environment."""
    model, asking = parse(address, place)
    space = label_space(asking.labels, classes)
    names = {label: space.name_of(label) for label in space.labels}
    given = read_distractors(asking.distractors, names) if asking.distractors else {}
    vocabulary = Vocabulary(names, synonyms_with(asking.synonyms))
    return VisionLanguageModel(address, model, asking, space.labels, vocabulary, given, Line(reach_from()))
