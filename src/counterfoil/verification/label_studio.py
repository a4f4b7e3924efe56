"""Label Studio: tasks to import there, the labelling set-up, and its export read back.

An annotation is one person's answers to one picture. The person's name and the time are kept in each result's `meta`:
Label Studio refuses annotations by people unknown to it, assigns those without a name to whoever imports them, and
dates them to the import.
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
from counterfoil.verification.questionnaire import Questionnaire
from counterfoil.verification.verdict_files import parse_amount

_PICTURE = "picture"  # the name of the image tag in the set-up


@dataclass(frozen=True)
class PictureTask:
    """A picture to label."""

    variant_id: str
    class_name: str
    address: str  # URL at which Label Studio finds it


def format_tasks(pictures: Iterable[PictureTask], verdicts: Iterable[Verdict], questionnaire: Questionnaire) -> str:
    """Return the tasks to import, with the answers that count: each person's last, without hidden controls."""
    given = _group_latest(verdict for verdict in verdicts if not verdict.control)
    by_picture: dict[str, list[list[Verdict]]] = {}
    for (variant_id, _), answers in given.items():
        by_picture.setdefault(variant_id, []).append(answers)
    tasks = [
        {
            "data": _format_data(picture, questionnaire),
            "annotations": [_format_annotation(answers) for answers in by_picture.get(picture.variant_id, ())],
        }
        for picture in pictures
    ]
    return json.dumps(tasks, indent=1, ensure_ascii=False)


def format_setup(questionnaire: Questionnaire) -> str:
    """Return the labelling interface to paste into a project: the picture, then every question with its answers."""
    lines = ["<View>", f'  <Image name="{_PICTURE}" value="$image"/>']
    for place, question in enumerate(questionnaire.questions, 1):
        lines += [
            f'  <Header value="$question_{place}"/>',
            f'  <Choices name={quoteattr(question.id)} toName="{_PICTURE}" choice="single" required="true">',
            *(
                f"    <Choice value={quoteattr(_escape_dollar(answer))} alias={quoteattr(answer)}/>"
                for answer in question.answers
            ),
            "  </Choices>",
        ]
    return "\n".join([*lines, "</View>", ""])


def read_label_studio(tasks: Sequence[object]) -> list[Verdict]:
    """Read the answers of an export in Label Studio's JSON; skipped annotations are ignored."""
    return [verdict for place, task in enumerate(tasks, 1) for verdict in _read_task(task, f"task {place}")]


def _group_latest(verdicts: Iterable[Verdict]) -> dict[tuple[str, str], list[Verdict]]:
    """Each person's last answers to each picture."""
    latest: dict[tuple[str, str], dict[str, Verdict]] = {}
    for verdict in verdicts:
        answers = latest.setdefault((verdict.variant_id, verdict.annotator), {})
        if verdict.question not in answers or answers[verdict.question].version <= verdict.version:
            answers[verdict.question] = verdict
    return {key: list(answers.values()) for key, answers in latest.items()}


def _format_data(picture: PictureTask, questionnaire: Questionnaire) -> dict[str, str]:
    questions = {
        f"question_{place}": question.about(picture.class_name)
        for place, question in enumerate(questionnaire.questions, 1)
    }
    names = {"image": picture.address, "variant_id": picture.variant_id, "class_name": picture.class_name}
    return {**names, **questions}


def _format_annotation(answers: Sequence[Verdict]) -> dict[str, object]:
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
    return {
        "result": results,
        "lead_time": answers[0].seconds,
        "created_at": answers[0].time,
        "was_cancelled": False,
        "ground_truth": False,  # Label Studio treats an import as ground truth otherwise
    }


def _escape_dollar(answer: str) -> str:
    """Escape dollar signs: Label Studio replaces what follows one, in the text shown and in values without an alias."""
    return answer.replace("$", "\N{FULLWIDTH DOLLAR SIGN}")


def _read_task(task: object, place: str) -> list[Verdict]:
    """The answers to one picture; a person's second annotation corrects the first."""
    try:
        variant_id = str(task["data"]["variant_id"])  # type: ignore[index]
        given = [row for row in task["annotations"] if not row.get("was_cancelled")]  # type: ignore[index]
        times: Counter[str] = Counter()
        verdicts = []
        for annotation in sorted(given, key=_time_changed):
            results = [result for result in annotation["result"] if result["type"] == "choices"]
            author = _find_author(annotation, results)
            times[author.name] += 1
            seconds = parse_amount(annotation.get("lead_time"), place)
            verdicts += [
                Verdict(
                    variant_id=variant_id,
                    annotator=author.name,
                    question=question,
                    answer=answer,
                    seconds=seconds,
                    time=author.time,
                    version=times[author.name],
                )
                for question, answer in (_read_answer(row, place) for row in results)
            ]
        return verdicts
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"expected Label Studio's export of the kind JSON with data.variant_id and annotations, got {place} without"
            f" {error}"
        ) from error


def _read_answer(result: Mapping[str, Any], place: str) -> tuple[str, str]:
    """Question and answer."""
    question, choices = str(result["from_name"]), result["value"]["choices"]
    if not isinstance(choices, list) or len(choices) != 1:
        raise UserError(f"expected one answer to '{question}', got {choices} in {place}; choose one there")
    return question, str(choices[0])


class _Author(NamedTuple):
    """Who answered, and when."""

    name: str
    time: str


def _find_author(annotation: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> _Author:
    """The author in `meta`, unless the answers were changed in Label Studio; else the account there."""
    meta = (results[0].get("meta") or {}) if results else {}
    changed_by = annotation.get("updated_by")
    if meta.get("annotator") and changed_by is None:
        return _Author(str(meta["annotator"]), str(meta.get("time") or annotation.get("created_at") or ""))
    by = changed_by if meta.get("annotator") else annotation.get("completed_by")
    if isinstance(by, Mapping):
        return _Author(str(by.get("email") or f"label-studio-{by.get('id')}"), _time_changed(annotation))
    if by is None:  # the account was deleted: two such annotations may be by two people
        return _Author(f"label-studio-annotation-{annotation['id']}", _time_changed(annotation))
    return _Author(f"label-studio-{by}", _time_changed(annotation))


def _time_changed(annotation: Mapping[str, Any]) -> str:
    """When the answers were last changed."""
    return str(annotation.get("updated_at") or annotation.get("created_at") or "")
