"""Files and settings that are damaged, contradictory or meant to harm: one clear line, and nothing is lost by them."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from counterfoil.errors import UserError
from counterfoil.store.workspace import Workspace
from counterfoil.verification.project import begin_verification
from counterfoil.verification.questionnaire import load_questionnaire
from counterfoil.verification.server_address import resolve_address
from counterfoil.verification.verdict_files import read_csv
from postgres_server import postgres
from verify_site import YES, answer_everything, build_workspace, command, hosted, questions_file, served

BEYOND_THE_CALENDAR = "9999-12-31T23:59:59-23:59"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_workspace(tmp_path_factory.mktemp("built"), 2)


@pytest.fixture
def workspace(built: Path, tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(built, tmp_path / "workspace"))
    begin_verification(folder, None, None).database.close()
    return folder


def edited(workspace: Path) -> list[str]:
    pictures = Workspace(workspace).pictures
    return [row.variant.id for row in pictures if row.variant.attribute not in ("original", "control")]


def import_answers(workspace: Path, content: object) -> str:
    """What `import` says of a JSON file, or the one line that refuses it."""
    path = workspace.parent / "answers.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return told_by("import", workspace, path)


def told_by(*arguments: object) -> str:
    done = command(*arguments)
    if done.exception is None:
        return done.output
    assert isinstance(done.exception, UserError), repr(done.exception)
    assert "\n" not in str(done.exception)
    return str(done.exception)


def label_studio(variant: str, name: str = "Ada", **changed: object) -> list[dict[str, object]]:
    results = [
        {"type": "choices", "from_name": question, "value": {"choices": ["yes"]}, "meta": {"annotator": name}}
        for question in YES
    ]
    return [{"data": {"variant_id": variant}, "annotations": [{"result": results, **changed}]}]


def offline(workspace: Path, **changed: object) -> dict[str, Any]:
    """What a package's page saves for its first task."""
    out = workspace.parent / "far.zip"
    assert command("package", workspace, "Far", "--count", "2", "--out", out).exit_code == 0
    with zipfile.ZipFile(out) as archive:
        name = next(name for name in archive.namelist() if name.endswith("tasks.js"))
        package = json.loads(archive.read(name).decode().split("=", 1)[1].rstrip("; \n"))
    row = {"task": package["tasks"][0]["task"], "answers": YES, "seconds": 1.0, "time": "2026-01-02T03:04:05Z"}
    head = {"format": "counterfoil-offline-answers", "ticket": package["ticket"], "signature": package["signature"]}
    return {**head, "answers": [{**row, **changed}]}


@pytest.mark.parametrize("time", [BEYOND_THE_CALENDAR, "0001-01-01T00:00:00+23:59", "0001-01-01", "yesterday"])
def test_a_time_that_no_calendar_holds_spoils_no_later_command(workspace: Path, time: str) -> None:
    assert "1 answers imported" in import_answers(workspace, offline(workspace, time=time))
    assert "1 answers imported" in import_answers(workspace, label_studio(edited(workspace)[0], created_at=time))
    assert "answers: " in told_by("status", workspace)
    assert told_by("export", workspace, "--out", workspace.parent / "out.csv")


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1, 10**400, "soon", [1]])
def test_a_span_of_time_that_is_none_is_refused(workspace: Path, seconds: object) -> None:
    for content in (offline(workspace, seconds=seconds), label_studio(edited(workspace)[0], lead_time=seconds)):
        assert "expected a number of at least 0" in import_answers(workspace, content)
    assert "answers: 0 of" in told_by("status", workspace)


@pytest.mark.parametrize("task", ["\ud800", "\x00", "nobody's"])
def test_a_task_that_was_never_given_out_takes_nothing_in(workspace: Path, task: str) -> None:
    message = import_answers(workspace, offline(workspace, task=task))
    assert "expected" in message or "1 left out: they cannot be imported: this task is not yours" in message


@pytest.mark.parametrize("signature", ["ü", "", None, 1, "0" * 64])
def test_a_ticket_under_any_other_signature_is_refused(workspace: Path, signature: object) -> None:
    assert "not signed here" in import_answers(workspace, {**offline(workspace), "signature": signature})


@pytest.mark.parametrize("content", ["[" * 100_000, "", "{", "5", '{"verdicts": [1]}', '["\\ud800"]'])
def test_json_that_is_no_file_of_answers_is_refused(workspace: Path, content: str) -> None:
    assert import_answers(workspace, content).startswith("expected ")


def test_a_csv_with_a_field_beyond_all_bounds_is_refused() -> None:
    with pytest.raises(UserError, match="damaged in line 2"):
        read_csv("variant_id,annotator,question,answer\n" + "x" * 200_000 + ",Ada,only,yes\n")


@pytest.mark.parametrize("written", [" José  Ada ", "Jose\u0301 Ada"])
def test_an_import_knows_people_however_their_names_are_written_and_leaves_links_alone(
    workspace: Path, written: str
) -> None:
    with hosted(workspace) as site:
        link = site.invite("José Ada")
        assert "1 answers imported" in import_answers(workspace, label_studio(edited(workspace)[0], written))
        assert site.visit(link).tasks(1)
        people = site.administrator().http.get("/api/admin/summary").json()["annotators"]
    assert [(person["name"], person["done"]) for person in people] == [("José Ada", 1)]


def test_answers_in_the_administrators_name_are_refused(workspace: Path) -> None:
    with hosted(workspace):
        message = import_answers(workspace, label_studio(edited(workspace)[0], "administrator"))
    assert "is an administrator" in message


def test_an_import_that_is_refused_takes_nobodys_place(built: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "workspace"))
    first, second, *others = edited(folder)
    with hosted(folder, questions_file(tmp_path, annotators=1, control_share=0)) as site:
        site.annotator("Ada")
        site.administrator().post("/api/admin/exclude", {"annotator": "Ada", "excluded": True})
        assert "Ada is left out" in import_answers(folder, label_studio(first))
        half = label_studio(second, "Ben")
        half[0]["annotations"][0]["result"].pop()  # type: ignore[index]
        assert "cannot be imported: expected answers to" in import_answers(folder, half)
        assert len(site.annotator("Cy").tasks(20)) == 2 + len(others)


def test_a_secret_that_is_damaged_is_one_line(workspace: Path) -> None:
    assert command("invite", workspace, "Ada").exit_code == 0
    (workspace / "verify" / "secret").write_bytes(b"\xff\xfe")
    assert "which is damaged" in told_by("invite", workspace, "Ada")


def test_bounds_that_leave_everybody_out_decide_nothing(workspace: Path, tmp_path: Path) -> None:
    with hosted(workspace) as site:
        answer_everything(site.annotator("Ada"))
    assert "leave everybody out (median of 1.5 seconds" in told_by("decide", workspace, "--least-seconds", "9")
    assert Workspace(workspace).verified is None


def test_somebody_too_quick_is_left_out_where_no_controls_are_shown(built: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "workspace"))
    settings = questions_file(tmp_path, control_share=0, exclude={"seconds": 2, "fewest": 6})
    with hosted(folder, settings) as site:
        ada = site.annotator("Ada")
        replies = [ada.answer(task).status_code for task in ada.tasks(5)]
    assert replies == [200, 200, 200, 409, 409]  # two answers to each


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("annotators: 3\nannotators: 5\n", "the key 'annotators' stands there twice"),
        ('{"questions": [{"id": "a", "id": "b", "text": "?"}]}', "the key 'id' stands there twice"),
        ("name: 2024-13-45", "month must be in"),
        ("seed: !!float none", "could not convert"),
        ("[" * 5000, "recursion"),
        ('questions: [{id: a, text: b, answers: ["yes", "yes ", "no"]}]', "two different answers"),
        ('questions: [{id: a, text: "  "}]', "questions.0.text"),
        ("control_share: 0\nexclude: {repeat_consistency: 0.5}", "control_share is 0"),
    ],
)
def test_a_questions_file_that_is_damaged_or_contradicts_itself_is_one_line(
    text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "questions.yaml").write_text(text)
    with pytest.raises(UserError, match=message) as refused:
        load_questionnaire(tmp_path / "questions.yaml")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("command_line", "message"),
    [
        (("serve", "--port", "70000"), "not in the range"),
        (("invite", "Ada", "--days", "nan"), "not in the range"),
        (("package", "Ada", "--out", "x.zip", "--days", "nan"), "not in the range"),
        (("decide", "--least-seconds", "-1"), "not in the range"),
    ],
)
def test_numbers_beyond_their_range_are_refused(workspace: Path, command_line: tuple[str, ...], message: str) -> None:
    done = command(command_line[0], workspace, *command_line[1:])
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--certainty", "0.9"), "expected --certainty with --rule dawid-skene, got it with majority"),
        (("--fewest", "4"), "expected --fewest of at most 3"),
        (("--rule", "dawid-skene", "--certainty", "nan"), "expected a certainty from 0.5"),
    ],
)
def test_a_rule_that_could_not_do_what_is_asked_is_refused(
    workspace: Path, options: tuple[str, ...], message: str
) -> None:
    assert message in str(command("decide", workspace, *options).exception)


@pytest.mark.parametrize(
    ("given", "link"),
    [
        ("https://Verify.Example.org", "https://verify.example.org"),
        ("https://verify.example.org:443/", "https://verify.example.org"),
        ("http://machine:80", "http://machine"),
        ("http://[::1]:9000", "http://[::1]:9000"),
        ("https://prüfung.example", "https://xn--prfung-4ya.example"),
    ],
)
def test_an_address_is_written_as_browsers_will_say_it(given: str, link: str) -> None:
    address = resolve_address("127.0.0.1", 8642, given)
    assert address.url == link
    assert link.split("//")[1] in address.hosts
    assert link in address.origins


def test_the_port_that_browsers_leave_out_is_left_out_of_the_hosts_too() -> None:
    address = resolve_address("127.0.0.1", 80, None)
    assert {"127.0.0.1", "localhost", "[::1]"} <= address.hosts
    assert "127.0.0.1" not in resolve_address("127.0.0.1", 8642, None).hosts


@pytest.mark.parametrize("url", ["https://user:word@host", "https://host:99999", "https://host#x", "https://a..b"])
def test_an_address_with_more_than_a_host_and_a_port_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="without a path"):
        resolve_address("127.0.0.1", 8642, url)


@pytest.mark.postgres
def test_text_that_postgresql_keeps_nowhere_is_refused_as_such(built: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "workspace"))
    with postgres() as url, served(folder, "--database", url) as site:
        ada, admin = site.annotator("Ada"), site.administrator()
        assert ada.answer({"task": "\x00"}).status_code == 422
        assert ada.http.get("/picture/%00").status_code == 422
        assert admin.post("/api/admin/revoke", {"annotator": "\x00"}).status_code == 404
        reason = {"annotator": "Ada", "excluded": True, "reason": "\x00"}
        assert admin.post("/api/admin/exclude", reason).status_code == 422
        assert ada.tasks(1)
