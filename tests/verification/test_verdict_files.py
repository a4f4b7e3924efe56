"""Verdicts as files and back: CSV, JSON, Label Studio, offline packages."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from counterfoil.errors import UserError
from counterfoil.types import Verdict
from counterfoil.verification.label_studio import PictureTask, format_setup, format_tasks, read_label_studio
from counterfoil.verification.offline_package import (
    Package,
    PackedTask,
    Ticket,
    read_offline_answers,
    sign_ticket,
    write_zip,
)
from counterfoil.verification.questionnaire import Question, Questionnaire
from counterfoil.verification.signing import Signer
from counterfoil.verification.verdict_files import (
    check_verdicts,
    format_csv,
    format_json,
    read_csv,
    read_json,
)
from locations import DATA

ASKED = Questionnaire(
    questions=(
        Question(id="recognisable", text="Is the {class} recognisable?"),
        Question(id="only", text='Alone & "whole"?', answers=("yes", "no, <two>", "unsure")),
    )
)
TIME = "2026-11-15T12:00:00.000+00:00"
VERDICTS = [
    Verdict(variant_id="v1", annotator="Ann", question="recognisable", answer="yes", seconds=2.5, time=TIME),
    Verdict(variant_id="v1", annotator="Ann", question="only", answer="no, <two>", seconds=2.5, time=TIME),
    Verdict(variant_id="v1", annotator="Ann", question="recognisable", answer="no", seconds=1.25, time=TIME, version=2),
    Verdict(variant_id="v1", annotator="Ann", question="only", answer="unsure", seconds=1.25, time=TIME, version=2),
    Verdict(
        variant_id="v2",
        annotator='Ben, "the\nsecond"',
        question="recognisable",
        answer="unsure",
        seconds=0.5,
        time=TIME,
    ),
    Verdict(
        variant_id="v3", annotator="Ann", question="recognisable", answer="yes", seconds=1.0, time=TIME, control="good"
    ),
    Verdict(
        variant_id="v1",
        annotator="Ann",
        question="recognisable",
        answer="yes",
        seconds=1.0,
        time=TIME,
        control="repeat",
    ),
]
PICTURES = [PictureTask("v1", "crimson", "/data/v1.png"), PictureTask("v2", "azure", "/data/v2.png")]
SIGNER = Signer("s" * 64)
TICKET = Ticket("Ann", "digest", "2026-11-15T12:00:00+00:00")


def test_csv_and_json_come_back_as_they_went() -> None:
    assert read_csv(format_csv(VERDICTS)) == VERDICTS
    content = json.loads(format_json(VERDICTS, ASKED, "digest"))
    assert read_json(content, "digest") == VERDICTS
    assert [question["id"] for question in content["questions"]] == ["recognisable", "only"]


def test_any_csv_reader_understands_the_csv() -> None:
    rows = list(csv.reader(io.StringIO(format_csv(VERDICTS), newline="")))
    assert rows[0] == ["variant_id", "annotator", "question", "answer", "seconds", "time", "version", "control"]
    assert rows[5][1] == 'Ben, "the\nsecond"'
    assert len(rows) == 1 + len(VERDICTS)


def test_no_cell_of_the_csv_is_a_formula() -> None:
    names = ("=HYPERLINK(1)", "+1", "-1", "@a", "'=quoted", "'", "plain", "\t=1", "\r=1")
    verdicts = [replace(VERDICTS[0], annotator=name) for name in names]
    rows = list(csv.reader(io.StringIO(format_csv(verdicts), newline="")))
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for row in rows for cell in row)
    assert [verdict.annotator for verdict in read_csv(format_csv(verdicts))] == list(names)


def test_a_spreadsheet_may_drop_columns_and_add_a_mark() -> None:
    text = "\ufeffannotator,variant_id,question,answer,remark\r\nAnn,v1,only,yes,fine\r\n"
    assert read_csv(text) == [Verdict(variant_id="v1", annotator="Ann", question="only", answer="yes", seconds=0.0)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("variant_id,annotator,question\nv1,Ann,only\n", "without answer"),
        (
            "variant_id,annotator,question,answer\nv1,,only,yes\n",
            "expected every answer with its annotator, got none in line 2",
        ),
        ("variant_id,annotator,question,answer,seconds\nv1,Ann,only,yes,soon\n", "'soon' in line 2"),
        ("variant_id,annotator,question,answer,seconds\nv1,Ann,only,yes,-1\n", "at least 0"),
        ("variant_id,annotator,question,answer,control\nv1,Ann,only,yes,maybe\n", "got 'maybe' in line 2"),
    ],
)
def test_a_faulty_row_is_named(text: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        read_csv(text)


def test_answers_about_other_pictures_or_questions_are_refused() -> None:
    with pytest.raises(UserError, match="answers about others"):
        read_json(json.loads(format_json(VERDICTS, ASKED, "digest")), "another")
    check_verdicts(VERDICTS, ASKED, {"v1", "v2", "v3"})
    with pytest.raises(UserError, match="'v3', which is none of them"):
        check_verdicts(VERDICTS, ASKED, {"v1", "v2"})
    with pytest.raises(UserError, match="got 'colour'"):
        check_verdicts([replace(VERDICTS[0], question="colour")], ASKED, {"v1"})
    with pytest.raises(UserError, match="got 'perhaps'"):
        check_verdicts([replace(VERDICTS[0], answer="perhaps")], ASKED, {"v1"})


def test_label_studio_gets_tasks_whose_results_fit_its_set_up() -> None:
    tasks = json.loads(format_tasks(PICTURES, VERDICTS, ASKED))
    view = ElementTree.fromstring(format_setup(ASKED))
    offered = {
        choices.attrib["name"]: {choice.attrib["alias"] for choice in choices} for choices in view.iter("Choices")
    }
    image = next(view.iter("Image")).attrib
    assert [task["data"][image["value"].removeprefix("$")] for task in tasks] == ["/data/v1.png", "/data/v2.png"]
    assert tasks[0]["data"]["question_1"] == "Is the crimson recognisable?"
    results = [result for task in tasks for annotation in task["annotations"] for result in annotation["result"]]
    assert results
    for result in results:
        assert result["type"] == "choices"
        assert result["to_name"] == image["name"]
        assert set(result["value"]["choices"]) <= offered[result["from_name"]]
    assert not any(annotation["ground_truth"] for task in tasks for annotation in task["annotations"])


def test_label_studio_fills_nothing_into_an_answer() -> None:
    view = ElementTree.fromstring(format_setup(HOSTILE))
    choices = [choice.attrib for choice in view.iter("Choice")]
    assert [choice["alias"] for choice in choices][3:] == ["yes", NO, UNSURE]
    assert not any("$" in choice["value"] for choice in choices)


def test_label_studio_gets_last_answers_without_controls_and_gives_them_back() -> None:
    tasks = json.loads(format_tasks(PICTURES, VERDICTS, ASKED))
    expected = [replace(VERDICTS[2], version=1), replace(VERDICTS[3], version=1), VERDICTS[4]]
    assert read_label_studio(tasks) == expected


def label_studio_export(**annotation: Any) -> list[dict[str, Any]]:
    """What Label Studio itself writes for one picture that somebody answered there."""
    result = [{"id": "x1", "from_name": "only", "to_name": "picture", "type": "choices", "origin": "manual",
               "value": {"choices": ["yes"]}}]  # fmt: skip
    told = {
        "id": 7,
        "completed_by": 3,
        "was_cancelled": False,
        "lead_time": 4.288,
        "created_at": TIME,
        "result": result,
    }
    return [{"id": 1, "data": {"image": "/data/v1.png", "variant_id": "v1"}, "annotations": [{**told, **annotation}]}]


def test_annotations_made_in_label_studio_carry_its_people() -> None:
    assert read_label_studio(label_studio_export()) == [
        Verdict(variant_id="v1", annotator="label-studio-3", question="only", answer="yes", seconds=4.288, time=TIME)
    ]
    named = label_studio_export(completed_by={"id": 3, "email": "ann@example.org"})
    assert read_label_studio(named)[0].annotator == "ann@example.org"
    assert read_label_studio(label_studio_export(was_cancelled=True)) == []


def test_people_whose_accounts_are_gone_in_label_studio_are_not_one_person() -> None:
    first, second = label_studio_export(completed_by=None), label_studio_export(completed_by=None, id=8)
    both = [{**first[0], "annotations": [*first[0]["annotations"], *second[0]["annotations"]]}]
    assert [(row.annotator, row.version) for row in read_label_studio(both)] == [
        ("label-studio-annotation-7", 1),
        ("label-studio-annotation-8", 1),
    ]


def test_an_answer_given_twice_in_label_studio_is_a_correction() -> None:
    first, second = label_studio_export(), label_studio_export(updated_at="2026-11-15T13:00:00.000+00:00", lead_time=1)
    second[0]["annotations"][0]["result"][0]["value"] = {"choices": ["unsure"]}
    both = [{**first[0], "annotations": [*second[0]["annotations"], *first[0]["annotations"]]}]
    assert [(row.answer, row.version, row.seconds) for row in read_label_studio(both)] == [
        ("yes", 1, 4.288),
        ("unsure", 2, 1.0),
    ]


def test_two_answers_at_once_are_refused() -> None:
    export = label_studio_export()
    export[0]["annotations"][0]["result"][0]["value"] = {"choices": ["yes", "unsure"]}
    with pytest.raises(UserError, match=r"one answer to 'only', got \['yes', 'unsure'\] in task 1"):
        read_label_studio(export)


NO, UNSURE = 'no, <two> & "more"', "unsure 'ü' $x"
HOSTILE = Questionnaire(
    questions=(
        Question(id="recognisable", text="Is the {class} recognisable?"),
        Question(id="only", text="Alone & whole?", answers=("yes", NO, UNSURE)),
    )
)


def test_the_export_of_a_real_label_studio_is_taken_word_for_word() -> None:
    """Recorded from Label Studio 1.23.2, its page and its API; what happened there stands in the comments."""
    tasks = json.loads((DATA / "label_studio_export.json").read_text(encoding="utf-8"))
    verdicts = read_label_studio(tasks)
    pictures = {task["data"]["variant_id"] for task in tasks}
    check_verdicts(verdicts, HOSTILE, pictures)
    assert len(pictures) == 8
    found: dict[tuple[str, str, float, int], dict[str, str]] = {}
    for row in verdicts:
        found.setdefault((row.variant_id[:4], row.annotator, row.seconds, row.version), {})[row.question] = row.answer
    told = {key: (answers["recognisable"], answers.get("only")) for key, answers in found.items()}
    assert told == {
        ("f6c6", "Ann", 2.5, 1): ("no", NO),  # came from us and was left as it was
        ("f6c6", "label-studio-1", 5.85, 1): ("yes", "yes"),  # came from us as somebody's, changed on the page
        ("2b7b", "Ann", 2.5, 1): ("yes", "yes"),
        ("2499", "label-studio-1", 3.75, 1): ("yes", UNSURE),  # three people
        ("2499", "label-studio-2", 3.75, 1): ("unsure", NO),
        ("2499", "label-studio-3", 3.75, 1): ("no", "yes"),
        ("12b8", "label-studio-1", 3.75, 1): ("yes", "yes"),  # answered twice
        ("12b8", "label-studio-1", 3.75, 2): ("no", NO),
        ("12b8", "label-studio-2", 9.5, 1): ("unsure", UNSURE),  # updated
        ("405b", "label-studio-3", 3.75, 1): ("yes", UNSURE),  # two others skipped it
        ("3a62", "label-studio-2", 3.75, 1): ("yes", None),  # half answered
        ("4901", "label-studio-1", 3.199, 1): ("yes", UNSURE),  # clicked on the page
        ("a751", "label-studio-1", 2.4, 1): ("no", NO),
    }
    times = {row.annotator: row.time for row in verdicts if row.variant_id.startswith("f6c6")}
    assert times["Ann"] == "2026-11-10T10:00:00.123+00:00"  # when Ann answered, not when Label Studio took it in
    assert times["label-studio-1"] == "2026-11-15T15:28:40.096469Z"  # when it was changed


def test_tasks_that_are_not_ours_are_named() -> None:
    with pytest.raises(UserError, match="task 1 without 'variant_id'"):
        read_label_studio([{"data": {"image": "a.png"}, "annotations": []}])


def saved(**changed: Any) -> dict[str, Any]:
    """The file that a package's page saves."""
    ticket = {"annotator": "Ann", "workspace_digest": "digest", "made": "2026-11-15T12:00:00+00:00"}
    row = {"task": "t1", "answers": {"recognisable": "yes", "only": "yes"}, "seconds": 1.5, "time": TIME}
    whole = {"format": "counterfoil-offline-answers", "ticket": ticket, "signature": sign_ticket(TICKET, SIGNER)}
    return {**whole, "answers": [row], **changed}


def packed(ticket: Ticket, tasks: list[PackedTask]) -> Package:
    return Package(ticket, sign_ticket(ticket, SIGNER), ASKED, tasks)


def test_offline_answers_come_in_under_their_own_ticket_only() -> None:
    ticket, rows = read_offline_answers(saved(), SIGNER)
    assert ticket == TICKET
    assert rows[0].answers == {"recognisable": "yes", "only": "yes"}
    with pytest.raises(UserError, match="not signed here"):
        read_offline_answers(saved(ticket={**saved()["ticket"], "annotator": "Ben"}), SIGNER)
    with pytest.raises(UserError, match="not signed here"):
        read_offline_answers(saved(), Signer("t" * 64))
    with pytest.raises(UserError, match="damaged"):
        read_offline_answers(saved(answers=[{"task": "t1"}]), SIGNER)


def test_the_same_offline_answer_has_the_same_key_and_another_has_another() -> None:
    rows = [read_offline_answers(saved(answers=[row]), SIGNER)[1][0] for row in _rows()]
    assert rows[0].key == rows[1].key
    assert rows[0].key != rows[2].key


def _rows() -> list[dict[str, Any]]:
    row = saved()["answers"][0]
    return [row, dict(row), {**row, "answers": {"recognisable": "no", "only": "yes"}}]


def test_a_package_tells_nothing_of_its_pictures_but_what_is_asked(tmp_path: Path) -> None:
    tasks = [
        PackedTask("t1", "crimson", "variant-1", "original-1"),
        PackedTask("t2", "crimson", "variant-1", "original-1"),
    ]
    out = write_zip(tmp_path / "p.zip", packed(TICKET, tasks), *[lambda variant: variant.encode()] * 2)
    with zipfile.ZipFile(out) as archive:
        names = archive.namelist()
        texts = {name: archive.read(name).decode() for name in names if "/pictures/" not in name}
        contents = sorted(archive.read(name) for name in names if "/pictures/" in name)
    assert contents == [b"original-1"] * 2 + [b"variant-1"] * 2  # a repeat is not seen from the files' names
    assert all(name.startswith("counterfoil-Ann/") for name in names)
    assert not any("variant-1" in text or SIGNER.secret in text for text in texts.values())
    page = texts["counterfoil-Ann/index.html"]
    assert "http" not in page.replace("http-equiv", "")
    assert 'src="tasks.js"' in page


def test_a_hostile_name_makes_a_harmless_folder(tmp_path: Path) -> None:
    ticket = replace(TICKET, annotator="../../etc/<b>")
    out = write_zip(tmp_path / "p.zip", packed(ticket, [PackedTask("t", "c", "v", None)]), *[lambda _: b""] * 2)
    with zipfile.ZipFile(out) as archive:
        folders = {name.split("/")[0] for name in archive.namelist()}
        page = archive.read(f"{folders.copy().pop()}/index.html").decode()
    assert folders == {"counterfoil-etc-b"}
    assert "<b>" not in page.split("<main>")[0]
    assert "&lt;b&gt;" in page
