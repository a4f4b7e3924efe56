"""Label Studio's files: tasks with people's answers, the labelling set-up that fits them, and both read back.

An annotation is one person's answers to one picture. The person's name travels in each result's `meta`: Label Studio
refuses annotations by people whom it does not know, and gives those without a name to whoever imports them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

from counterfoil.errors import UserError
from counterfoil.types import Verdict
from counterfoil.verify.exchange import amount
from counterfoil.verify.questions import Questionnaire

_PICTURE = "picture"  # what the set-up calls the image tag


@dataclass(frozen=True)
class Pictured:
    """A picture as Label Studio is told of it."""

    variant_id: str
    class_name: str
    address: str  # where Label Studio finds it


def label_studio_tasks(pictures: Iterable[Pictured], verdicts: Iterable[Verdict], questionnaire: Questionnaire) -> str:
    """The tasks to import there, with the answers that count: the last of each person, hidden controls left out."""
    given = _latest(verdict for verdict in verdicts if not verdict.control)
    by_picture: dict[str, list[list[Verdict]]] = {}
    for (variant_id, _), answers in given.items():
        by_picture.setdefault(variant_id, []).append(answers)
    tasks = [
        {
            "data": _data(picture, questionnaire),
            "annotations": [_annotation(answers) for answers in by_picture.get(picture.variant_id, ())],
        }
        for picture in pictures
    ]
    return json.dumps(tasks, indent=1, ensure_ascii=False)


def label_studio_setup(questionnaire: Questionnaire) -> str:
    """The labelling interface to paste there: the picture, then every question with its answers."""
    lines = ["<View>", f'  <Image name="{_PICTURE}" value="$image"/>']
    for place, question in enumerate(questionnaire.questions, 1):
        lines += [
            f'  <Header value="$question_{place}"/>',
            f'  <Choices name={quoteattr(question.id)} toName="{_PICTURE}" choice="single" required="true">',
            *(f"    <Choice value={quoteattr(answer)}/>" for answer in question.answers),
            "  </Choices>",
        ]
    return "\n".join([*lines, "</View>", ""])


def read_label_studio(tasks: Sequence[object]) -> list[Verdict]:
    """The answers of an export in Label Studio's JSON; skipped annotations are no answers."""
    return [verdict for place, task in enumerate(tasks, 1) for verdict in _verdicts(task, f"task {place}")]


def _latest(verdicts: Iterable[Verdict]) -> dict[tuple[str, str], list[Verdict]]:
    """Each person's last answers to each picture."""
    found: dict[tuple[str, str], dict[str, Verdict]] = {}
    for verdict in verdicts:
        answers = found.setdefault((verdict.variant_id, verdict.annotator), {})
        if verdict.question not in answers or answers[verdict.question].version <= verdict.version:
            answers[verdict.question] = verdict
    return {key: list(answers.values()) for key, answers in found.items()}


def _data(picture: Pictured, questionnaire: Questionnaire) -> dict[str, str]:
    asked = {
        f"question_{place}": question.about(picture.class_name)
        for place, question in enumerate(questionnaire.questions, 1)
    }
    names = {"image": picture.address, "variant_id": picture.variant_id, "class_name": picture.class_name}
    return {**names, **asked}


def _annotation(answers: Sequence[Verdict]) -> dict[str, object]:
    results = [
        {
            "from_name": verdict.question,
            "to_name": _PICTURE,
            "type": "choices",
            "value": {"choices": [verdict.answer]},
            "meta": {"annotator": verdict.annotator},
        }
        for verdict in answers
    ]
    return {"result": results, "lead_time": answers[0].seconds, "created_at": answers[0].time, "was_cancelled": False}


def _verdicts(task: object, place: str) -> list[Verdict]:
    try:
        variant_id = str(task["data"]["variant_id"])  # type: ignore[index]
        annotations = task["annotations"]  # type: ignore[index]
        return [
            _verdict(variant_id, annotation, result, place)
            for annotation in annotations
            if not annotation.get("was_cancelled")
            for result in annotation["result"]
            if result["type"] == "choices"
        ]
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise UserError(
            f"expected Label Studio's JSON with data.variant_id and annotations, got {place} without {error}"
        ) from error


def _verdict(variant_id: str, annotation: Mapping[str, Any], result: Mapping[str, Any], place: str) -> Verdict:
    return Verdict(
        variant_id, _person(annotation, result), str(result["from_name"]), str(result["value"]["choices"][0]),
        amount(annotation.get("lead_time"), place), str(annotation.get("created_at") or ""),
    )  # fmt: skip


def _person(annotation: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """Who answered: as we named the person, else as Label Studio does."""
    told = (result.get("meta") or {}).get("annotator")
    if told:
        return str(told)
    by = annotation.get("completed_by")
    if isinstance(by, Mapping):
        return str(by.get("email") or f"label-studio-{by.get('id')}")
    return f"label-studio-{by}"
