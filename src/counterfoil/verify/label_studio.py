"""Label Studio's files: tasks with people's answers, the labelling set-up that fits them, and both read back.

An annotation is one person's answers to one picture. The person's name and the time travel in each result's `meta`:
Label Studio refuses annotations by people whom it does not know, gives those without a name to whoever imports them,
and dates them to that moment.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
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
            *(
                f"    <Choice value={quoteattr(_shown(answer))} alias={quoteattr(answer)}/>"
                for answer in question.answers
            ),
            "  </Choices>",
        ]
    return "\n".join([*lines, "</View>", ""])


def _shown(answer: str) -> str:
    """Label Studio fills in what follows a dollar sign, in what is shown and in what is stored without an alias."""
    return answer.replace("$", "\N{FULLWIDTH DOLLAR SIGN}")


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
            "meta": {"annotator": verdict.annotator, "time": verdict.time},
        }
        for verdict in answers
    ]
    about = {"lead_time": answers[0].seconds, "created_at": answers[0].time, "was_cancelled": False}
    return {"result": results, **about, "ground_truth": False}  # what comes in is taken for the truth unless it says no


def _verdicts(task: object, place: str) -> list[Verdict]:
    """The answers to one picture; somebody's second annotation is a correction of the first."""
    try:
        variant_id = str(task["data"]["variant_id"])  # type: ignore[index]
        given = [row for row in task["annotations"] if not row.get("was_cancelled")]  # type: ignore[index]
        times: Counter[str] = Counter()
        found = []
        for annotation in sorted(given, key=_changed):
            results = [result for result in annotation["result"] if result["type"] == "choices"]
            giver = _giver(annotation, results)
            times[giver.name] += 1
            seconds = amount(annotation.get("lead_time"), place)
            found += [
                Verdict(variant_id, giver.name, *_answer(row, place), seconds, giver.time, times[giver.name])
                for row in results
            ]
        return found
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"expected Label Studio's export of the kind JSON with data.variant_id and annotations, got {place} without"
            f" {error}"
        ) from error


def _answer(result: Mapping[str, Any], place: str) -> tuple[str, str]:
    """Question and answer."""
    question, choices = str(result["from_name"]), result["value"]["choices"]
    if not isinstance(choices, list) or len(choices) != 1:
        raise UserError(f"expected one answer to '{question}', got {choices} in {place}; choose one there")
    return question, str(choices[0])


class _Giver(NamedTuple):
    """Who answered, and when."""

    name: str
    time: str


def _giver(annotation: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> _Giver:
    """As we told it, unless somebody changed the answers there; else as Label Studio tells it."""
    told = (results[0].get("meta") or {}) if results else {}
    changed_by = annotation.get("updated_by")
    if told.get("annotator") and changed_by is None:
        return _Giver(str(told["annotator"]), str(told.get("time") or annotation.get("created_at") or ""))
    by = changed_by if told.get("annotator") else annotation.get("completed_by")
    if isinstance(by, Mapping):
        return _Giver(str(by.get("email") or f"label-studio-{by.get('id')}"), _changed(annotation))
    if by is None:  # the account is gone there: two such answers may be two people's, and neither corrects the other
        return _Giver(f"label-studio-annotation-{annotation['id']}", _changed(annotation))
    return _Giver(f"label-studio-{by}", _changed(annotation))


def _changed(annotation: Mapping[str, Any]) -> str:
    """When the answers came to be what they are."""
    return str(annotation.get("updated_at") or annotation.get("created_at") or "")
