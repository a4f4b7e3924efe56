"""Verdicts as CSV and JSON; export by format; Label Studio tasks and results.

An annotation is one person's answers to one picture. The person's name and the time travel in each result's `meta`:
Label Studio refuses annotations by people whom it does not know, gives those without a name to whoever imports them,
and dates them to that moment.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args
from xml.sax.saxutils import quoteattr

from sqlalchemy import Connection, select

from counterfoil.errors import UserError
from counterfoil.types import Verdict
from counterfoil.verification import database_tables
from counterfoil.verification.database import Database
from counterfoil.verification.project import stored_project
from counterfoil.verification.questionnaire import Questionnaire
from counterfoil.verification.submissions import all_verdicts

Control: TypeAlias = Literal["", "good", "bad", "repeat"]
COLUMNS = tuple(field.name for field in fields(Verdict))
JSON_FORMAT = "counterfoil-verdicts"
_CONTROLS = get_args(Control)
_FORMULA = r"[=+\-@\t\r]"  # what a spreadsheet's formula may begin with
_MANDATORY = ("variant_id", "annotator", "question", "answer")


def verdicts_csv(verdicts: Iterable[Verdict]) -> str:
    """One row per answer, corrections included."""
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, COLUMNS)  # lines end in both marks, so that cells that hold one are quoted
    writer.writeheader()
    writer.writerows({name: _inert(value) for name, value in asdict(verdict).items()} for verdict in verdicts)
    return stream.getvalue()


def verdicts_json(verdicts: Iterable[Verdict], questionnaire: Questionnaire, workspace_digest: str) -> str:
    """The answers with the questions that they answer and the pictures that they are about."""
    content = {
        "format": JSON_FORMAT,
        "workspace_digest": workspace_digest,
        "questions": [question.model_dump(mode="json") for question in questionnaire.questions],
        "verdicts": [asdict(verdict) for verdict in verdicts],
    }
    return json.dumps(content, indent=1, ensure_ascii=False)


def read_verdicts_csv(text: str) -> list[Verdict]:
    """The rows of a CSV file that has at least the columns of `verdicts_csv` that cannot be guessed."""
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    try:
        missing = [name for name in _MANDATORY if name not in (rows.fieldnames or ())]
        if missing:
            raise UserError(
                f"expected a CSV file with the columns {', '.join(_MANDATORY)}, got one without {missing[0]}"
            )
        return [_verdict(_as_they_were(row), f"line {rows.line_num}") for row in rows]
    except csv.Error as error:
        raise UserError(f"expected a CSV file, got one that is damaged in line {rows.line_num + 1}: {error}") from error


def read_verdicts_json(content: Mapping[str, Any], workspace_digest: str) -> list[Verdict]:
    """The answers of `verdicts_json`, refused where they are about other pictures."""
    rows = content.get("verdicts")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError("expected a list of verdicts under 'verdicts', got none")
    if content.get("workspace_digest", workspace_digest) != workspace_digest:
        raise UserError("expected answers about the pictures of this workspace, got answers about others")
    return [_verdict(row, f"verdict {place}") for place, row in enumerate(rows, 1)]


def check_verdicts(verdicts: Sequence[Verdict], questionnaire: Questionnaire, pictures: Collection[str]) -> None:
    """Refuse answers to questions that were not asked and about pictures that are not there."""
    answers = {question.id: question.answers for question in questionnaire.questions}
    for verdict in verdicts:
        if verdict.variant_id not in pictures:
            raise UserError(f"expected pictures of this workspace, got '{verdict.variant_id}', which is none of them")
        if verdict.question not in answers:
            raise UserError(f"expected questions {', '.join(answers)}, got '{verdict.question}'")
        if verdict.answer not in answers[verdict.question]:
            known = ", ".join(answers[verdict.question])
            raise UserError(f"expected {known} as answer to '{verdict.question}', got '{verdict.answer}'")


def _verdict(row: Mapping[str, Any], place: str) -> Verdict:
    """One answer; what a spreadsheet may have dropped has its default."""
    missing = [name for name in _MANDATORY if row.get(name) in (None, "")]
    if missing:
        raise UserError(f"expected every answer with its {missing[0]}, got none in {place}")
    variant_id, annotator, question, answer = (str(row[name]) for name in _MANDATORY)
    control = str(row.get("control") or "")
    if control not in _CONTROLS:
        raise UserError(f"expected control to be empty, good, bad or repeat, got '{control}' in {place}")
    return Verdict(
        variant_id=variant_id,
        annotator=annotator,
        question=question,
        answer=answer,
        seconds=amount(row.get("seconds"), place),
        time=str(row.get("time") or ""),
        version=int(amount(row.get("version") or 1, place)),
        control=cast(Control, control),
    )


def _inert(value: object) -> object:
    """A spreadsheet takes a cell that begins like a formula for one; an apostrophe before it makes it text."""
    return f"'{value}" if isinstance(value, str) and re.match(rf"'*{_FORMULA}", value) else value


def _as_they_were(row: Mapping[str, object]) -> dict[str, object]:
    """The cells before `_inert`."""
    return {
        name: value[1:] if isinstance(value, str) and re.match(rf"'+{_FORMULA}", value) else value
        for name, value in row.items()
    }


def amount(value: object, place: str) -> float:
    """A number of at least 0; what is missing is 0."""
    try:
        number = float(str(value or 0))
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise UserError(f"expected a number of at least 0, got '{str(value)[:40]}' in {place}")
    return number


_PICTURE = "picture"  # what the set-up calls the image tag


@dataclass(frozen=True)
class PictureTask:
    """A picture as Label Studio is told of it."""

    variant_id: str
    class_name: str
    address: str  # where Label Studio finds it


def label_studio_tasks(
    pictures: Iterable[PictureTask], verdicts: Iterable[Verdict], questionnaire: Questionnaire
) -> str:
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


def _data(picture: PictureTask, questionnaire: Questionnaire) -> dict[str, str]:
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


class Format(NamedTuple):
    """How a form is called as a file."""

    ending: str
    media: str


FORMATS = {
    "csv": Format("csv", "text/csv; charset=utf-8"),
    "json": Format("json", "application/json"),
    "label-studio": Format("label-studio.json", "application/json"),
    "label-studio-setup": Format("label-studio.xml", "application/xml"),
}


def exported(database: Database, form: str, class_name: Callable[[str], str], place: Callable[[str], str]) -> str:
    """The answers of everybody, those left out included; `place` says where Label Studio finds a variant's picture."""
    project = stored_project(database)
    if project is None:
        raise UserError("expected a verification that has begun, got none; start it with `counterfoil verify serve`")
    with database.reading() as connection:
        verdicts = all_verdicts(connection)
        if form == "label-studio":
            return label_studio_tasks(_pictured(connection, class_name, place), verdicts, project.questionnaire)
    if form == "csv":
        return verdicts_csv(verdicts)
    if form == "json":
        return verdicts_json(verdicts, project.questionnaire, project.workspace_digest)
    return label_studio_setup(project.questionnaire)


def _pictured(
    connection: Connection, class_name: Callable[[str], str], place: Callable[[str], str]
) -> list[PictureTask]:
    """The work, without the hidden controls."""
    query = select(database_tables.pictures.c.variant_id, database_tables.pictures.c.label).where(
        database_tables.pictures.c.role == "work"
    )
    rows = connection.execute(query.order_by(database_tables.pictures.c.id))
    return [PictureTask(variant, class_name(label), place(variant)) for variant, label in rows]
