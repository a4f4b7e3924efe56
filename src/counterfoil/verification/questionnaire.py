"""The questionnaire of a verification, read from YAML or JSON."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from counterfoil.errors import UserError

CLASS = "{class}"  # replaced by the class of the picture


class Question(BaseModel):
    """One question about every picture."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")
    text: str = Field(min_length=1, max_length=500, pattern=r"\S")
    help: str = Field(default="", max_length=2000)
    answers: tuple[str, ...] = ("yes", "no", "unsure")
    keep_if: str = "yes"

    @field_validator("answers", mode="before")
    @classmethod
    def _restore_answers(cls, answers: Any) -> Any:
        return [_restore_word(value) for value in answers] if isinstance(answers, list | tuple) else answers

    @field_validator("keep_if", mode="before")
    @classmethod
    def _restore_keep_if(cls, answer: Any) -> Any:
        return _restore_word(answer)

    @model_validator(mode="after")
    def _check_answers(self) -> Question:
        if len(self.answers) < 2 or len({answer.strip() for answer in self.answers}) < len(self.answers):
            raise ValueError(f"question '{self.id}' needs at least two different answers, each once")
        if not all(0 < len(answer.strip()) <= 60 for answer in self.answers):
            raise ValueError(f"question '{self.id}' needs answers of 1 to 60 characters")
        if self.keep_if not in self.answers:
            raise ValueError(
                f"question '{self.id}' keeps a picture if '{self.keep_if}', which is none of its answers"
                f" ({', '.join(self.answers)})"
            )
        unknown = [name for name in re.findall(r"\{[^{}]*\}", self.text) if name != CLASS]
        if unknown:
            raise ValueError(f"question '{self.id}' holds {unknown[0]}; only {CLASS} is filled in")
        return self

    def about(self, class_name: str) -> str:
        """The text of the question for a picture of this class."""
        return self.text.replace(CLASS, class_name)


class ClassDescription(BaseModel):
    """What annotators are told of a class."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(default="", max_length=200)
    definition: str = Field(default="", max_length=1000)


class ExclusionSettings(BaseModel):
    """When an annotator is excluded automatically; bounds that are not given are not checked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    control_accuracy: float | None = Field(default=None, ge=0, le=1)
    repeat_consistency: float | None = Field(default=None, ge=0, le=1)
    seconds: float | None = Field(default=None, ge=0)
    fewest: int = Field(default=5, ge=1)  # controls, repeats or answers below which an annotator is not judged

    @model_validator(mode="after")
    def _check_bounds(self) -> ExclusionSettings:
        if self.control_accuracy is None and self.repeat_consistency is None and self.seconds is None:
            raise ValueError("exclude needs a bound: control_accuracy, repeat_consistency or seconds")
        return self


DEFAULT_QUESTIONS = (
    Question(
        id="recognisable",
        text="Is the object of class {class} recognisable in the picture?",
        help="Would you name it so without being told? Parts may be hidden or strangely coloured.",
    ),
    Question(
        id="only",
        text="Does the picture show only that class ({class})?",
        help="Answer no where another object could just as well be the picture's main object.",
    ),
)


class Questionnaire(BaseModel):
    """All settings of a verification; stored when it begins, and not changed after that."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(default="Verification", min_length=1, max_length=200)
    instructions: str = Field(default="", max_length=20_000)
    questions: tuple[Question, ...] = Field(default=DEFAULT_QUESTIONS, min_length=1, max_length=20)
    annotators: int = Field(default=3, ge=1, le=100)  # different people per picture
    control_share: float = Field(default=0.1, ge=0, le=0.5)  # of the pictures that one annotator sees
    show_original: bool = False
    seed: int = Field(default=0, ge=0, lt=2**63)
    lease_minutes: float = Field(default=30, gt=0, le=7 * 24 * 60)
    exclude: ExclusionSettings | None = None
    classes: dict[str, ClassDescription] = Field(default_factory=dict)  # by label, where the defaults do not do

    @model_validator(mode="after")
    def _check_questions(self) -> Questionnaire:
        for what, values in (
            ("id", [question.id for question in self.questions]),
            ("text", [question.text for question in self.questions]),
        ):
            twice = sorted(value for value in set(values) if values.count(value) > 1)
            if twice:
                raise ValueError(f"two questions have the same {what} '{twice[0]}'")
        bounds = self.exclude.model_dump() if self.exclude and not self.control_share else {}
        for bound in ("control_accuracy", "repeat_consistency"):
            if bounds.get(bound) is not None:
                raise ValueError(f"exclude asks for {bound}, but control_share is 0: no controls are shown")
        return self

    def page_content(self) -> dict[str, Any]:
        """The part of it that the pages show."""
        return self.model_dump(mode="json", include={"name", "instructions", "questions", "show_original"})

    @property
    def keep_if(self) -> dict[str, str]:
        """The answer to each question that keeps a picture."""
        return {question.id: question.keep_if for question in self.questions}


def load_questionnaire(path: Path | None) -> Questionnaire:
    """Load the questionnaire of a file, or the default one with two questions."""
    if path is None:
        return Questionnaire()
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # JSON is YAML
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"expected questions in YAML or JSON, got {path}, which cannot be read: {error}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: an invalid date or number
        raise UserError(f"expected questions in YAML or JSON, got {path}: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise UserError(f"expected questions with the keys {_keys(Questionnaire)}, got {path}, which holds no keys")
    try:
        return Questionnaire.model_validate(content)
    except ValidationError as error:
        raise UserError(f"questions {path}: {_describe_fault(error)}") from error


class _Loader(yaml.SafeLoader):
    """A YAML loader that refuses duplicate keys, of which YAML would keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        twice = sorted(name for name in set(names) if names.count(name) > 1)
        if twice:
            raise yaml.MarkedYAMLError(problem=f"the key '{twice[0]}' stands there twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


def _restore_word(value: object) -> object:
    """Turn YAML's true and false back into the words yes and no."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def _describe_fault(error: ValidationError) -> str:
    """Describe one fault in one line; a misspelt key explains the missing one."""
    fault = min(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
    place = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        inner: dict[str, type[BaseModel]] = {
            "questions": Question, "exclude": ExclusionSettings, "classes": ClassDescription,
        }  # fmt: skip
        known = inner.get(str(fault["loc"][0]), Questionnaire) if len(fault["loc"]) > 1 else Questionnaire
        return f"unknown key '{place}'; expected {_keys(known)}"
    if fault["type"] == "value_error":
        return str(fault["ctx"]["error"])
    return f"'{place}': {fault['msg'][0].lower()}{fault['msg'][1:]}, got {fault['input']!r}"


def _keys(model: type[BaseModel]) -> str:
    return ", ".join(model.model_fields)
