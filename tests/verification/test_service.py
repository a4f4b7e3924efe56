"""The served page by real HTTP: tasks, answers, controls, people, decisions."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from counterfoil.errors import UserError
from counterfoil.labels.label_space import imagenet1k
from counterfoil.store.parquet import read_table
from counterfoil.store.run_checksums import record_checksums
from counterfoil.store.workspace import Workspace
from counterfoil.types import MiningResult, StoredVariant, Variant
from counterfoil.verification.hidden_controls import choose_pictures, find_confusable_classes
from counterfoil.verification.questionnaire import Questionnaire, load_questionnaire
from verify_site import YES, Site, answer_everything, build_workspace, command, hosted, questions_file, served

PHOTOS = 2
WORK = 14  # edited pictures: seven of each photo


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_workspace(tmp_path_factory.mktemp("built"), PHOTOS)


@pytest.fixture
def workspace(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "workspace"))


@pytest.fixture
def site(workspace: Path) -> Iterator[Site]:
    with hosted(workspace) as found:
        yield found


def variants(workspace: Path) -> dict[str, str]:
    """Attribute by variant id."""
    table = read_table(workspace / "variants.parquet")
    return dict(zip(table["id"], table["attribute"], strict=True))


def verdict_rows(workspace: Path, tmp_path: Path) -> list[dict[str, object]]:
    assert command("export", workspace, "--format", "json", "--out", tmp_path / "out.json").exit_code == 0
    rows: list[dict[str, object]] = json.loads((tmp_path / "out.json").read_text())["verdicts"]
    return rows


def test_three_annotators_answer_every_edited_picture_and_the_majority_decides(
    workspace: Path, site: Site, tmp_path: Path
) -> None:
    edited = {name for name, attribute in variants(workspace).items() if attribute not in ("original", "control")}
    for name, answer in (("Ada", "yes"), ("Ben", "no"), ("Cy", "yes")):
        answer_everything(site.annotator(name), {"recognisable": answer, "only": "yes"})
    rows = verdict_rows(workspace, tmp_path)
    work = Counter((row["variant_id"], row["question"]) for row in rows if not row["control"])
    assert set(work) == {(name, question) for name in edited for question in ("recognisable", "only")}
    assert set(work.values()) == {3}
    told = command("decide", workspace)
    assert told.exit_code == 0, told.output
    verified = Workspace(workspace).verified
    assert verified is not None
    assert {decision.variant_id for decision in verified.decisions if decision.kept} == edited
    assert verified.decisions[0].answers["recognisable"] == {"yes": 2, "no": 1}
    assert verified.agreement["only"]["percent_agreement"] == pytest.approx(100)
    assert verified.agreement["recognisable"]["percent_agreement"] == pytest.approx(100 / 3)
    unanimous = command("decide", workspace, "--rule", "unanimity")
    assert f"kept 0 of {len(edited)} pictures" in unanimous.output


def test_nobody_gets_a_picture_twice_except_as_a_repeat_and_controls_look_like_the_work(
    workspace: Path, tmp_path: Path
) -> None:
    with hosted(workspace, questions_file(tmp_path, annotators=2, control_share=0.4)) as site:
        tasks = [task for browser in site.annotators(["Ada", "Ben"]) for task in answer_everything(browser)]
    rows = [row for row in verdict_rows(workspace, tmp_path) if row["question"] == "only"]
    times = Counter((row["annotator"], row["variant_id"], row["control"] == "repeat") for row in rows)
    assert set(times.values()) == {1}
    kinds = Counter(str(row["control"]) for row in rows)
    assert all(kinds[kind] > 0 for kind in ("good", "bad", "repeat"))
    assert kinds[""] == 2 * WORK

    assert len(tasks) == len(rows)
    for name, length in (("task", 22), ("picture", len("/picture/") + 22)):
        assert len({task[name] for task in tasks}) == len(tasks)
        assert {len(task[name]) for task in tasks} == {length}
    keys = {"task", "class_name", "definition", "references", "picture", "original", "questions"}
    assert {frozenset(task) for task in tasks} == {frozenset(keys)}
    assert not any(name in json.dumps(tasks) for name in variants(workspace))


def test_a_known_bad_control_shows_another_class_and_a_good_one_its_own(workspace: Path, tmp_path: Path) -> None:
    settings = questions_file(tmp_path, annotators=1, control_share=0.4)
    table = read_table(workspace / "variants.parquet")
    labels = dict(zip(table["id"], table["label"], strict=True))
    files = {
        hashlib.sha256((workspace / row.file).read_bytes()).hexdigest(): row.variant.id
        for row in Workspace(workspace).pictures
    }
    with hosted(workspace, settings) as site:
        browser = site.annotator("Ada")
        shown = {}
        while tasks := browser.tasks(10):
            for task in tasks:
                pixels = browser.http.get(task["picture"]).content
                shown[files[hashlib.sha256(pixels).hexdigest()]] = task["class_name"]
                browser.answer(task)
    rows = {str(row["variant_id"]): row["control"] for row in verdict_rows(workspace, tmp_path)}
    assert {"good", "bad", ""} <= set(rows.values())
    for variant, control in rows.items():
        assert (shown[variant] == labels[variant]) == (control != "bad")


def test_a_known_bad_control_is_never_under_a_class_that_somebody_might_mix_up_with_it() -> None:
    tench, goldfish, ball, tennis = "n01440764", "n01443537", "n04254680", "n04409515"
    pictures = [
        StoredVariant(
            Variant(
                id=f"{label}-{place}-{attribute}",
                sample_id=f"{label}/{place}",
                label=label,
                attribute=attribute,
                edit="",
                level="",
                settings="{}",
                seed=0,
            ),
            "",
        )
        for label in (tench, goldfish, ball, tennis)
        for place in range(20)
        for attribute in ("original", "size")
    ]
    work = [row.variant.id for row in pictures if row.variant.attribute == "size"]
    shown = choose_pictures(pictures, work, Questionnaire(control_share=0.5), find_confusable_classes(imagenet1k()))
    own = {row.variant.id: row.variant.label for row in pictures}
    pairs = {frozenset((own[row.variant_id], row.label)) for row in shown if row.role == "bad"}
    fish, balls = (tench, goldfish), (ball, tennis)  # "soccer ball" and "tennis ball" share a word
    assert pairs == {frozenset((first, second)) for first in fish for second in balls}


def test_next_gives_the_same_tasks_until_they_are_answered(site: Site) -> None:
    browser = site.annotator("Ada")
    first = browser.tasks(4)
    assert browser.tasks(4) == first
    assert browser.answer(first[0]).status_code == 200
    assert browser.tasks(4)[:3] == first[1:]


def test_the_same_answer_sent_twice_counts_once(workspace: Path, site: Site, tmp_path: Path) -> None:
    browser = site.annotator("Ada")
    task = browser.tasks(1)[0]
    replies = [browser.answer(task, key="the-same-key").json() for _ in range(3)]
    assert all(reply["ok"] for reply in replies)
    assert replies[0]["progress"] == replies[2]["progress"]
    other = browser.answer(task, {"recognisable": "no", "only": "no"}, key="the-same-key")
    assert other.status_code == 409  # it would be acknowledged and not stored
    assert {row["answer"] for row in verdict_rows(workspace, tmp_path)} == {"yes"}
    assert len(verdict_rows(workspace, tmp_path)) == 2


def test_undo_takes_back_one_answer_after_the_other_and_a_new_one_is_a_new_version(
    workspace: Path, site: Site, tmp_path: Path
) -> None:
    browser = site.annotator("Ada")
    first, second = browser.tasks(2)
    browser.answer(first, {"recognisable": "no", "only": "yes"})
    browser.answer(second)
    back = browser.post("/api/undo", {}).json()["task"]
    assert back == {**second, "answers": {"recognisable": "yes", "only": "yes"}}
    again = browser.post("/api/undo", {}).json()["task"]
    assert again == {**first, "answers": {"recognisable": "no", "only": "yes"}}
    assert browser.post("/api/undo", {}).json()["task"] is None
    assert [task["task"] for task in browser.tasks(2)] == [first["task"], second["task"]]
    browser.answer(first)
    rows = [row for row in verdict_rows(workspace, tmp_path) if row["question"] == "recognisable"]
    assert [(row["answer"], row["version"]) for row in rows] == [("no", 1), ("yes", 3)]


def test_answers_that_were_not_asked_for_are_refused(site: Site) -> None:
    browser = site.annotator("Ada")
    task = browser.tasks(1)[0]
    for answers in ({"recognisable": "yes"}, {**{"recognisable": "yes", "only": "yes"}, "more": "yes"},
                    {"recognisable": "perhaps", "only": "yes"}):  # fmt: skip
        assert browser.answer(task, answers).status_code == 409
    assert browser.answer({"task": "nobody's"}).status_code == 409
    assert browser.http.get("/api/me/progress").json()["progress"]["done"] == 0


def test_an_expired_lease_goes_to_somebody_else(workspace: Path, tmp_path: Path) -> None:
    settings = questions_file(tmp_path, annotators=1, control_share=0, lease_minutes=0.0001)
    with hosted(workspace, settings) as site:
        late = site.annotator("Late")
        tasks = late.tasks(WORK)
        assert len(tasks) == WORK
        given = len(answer_everything(site.annotator("Quick")))
        replies = Counter(late.answer(task).status_code for task in tasks)
    assert given > 0
    assert replies == {200: WORK - given, 409: given}
    rows = [row["variant_id"] for row in verdict_rows(workspace, tmp_path) if row["question"] == "only"]
    assert len(rows) == len(set(rows)) == WORK


def test_two_who_work_at_once_get_equal_shares(workspace: Path, tmp_path: Path) -> None:
    settings = questions_file(tmp_path, annotators=1, control_share=0)
    with hosted(workspace, settings) as site:
        fast, slow = site.annotators(["Fast", "Slow"])
        slow.tasks(1)
        assert len(answer_everything(fast)) == WORK // 2
        assert len(answer_everything(slow)) == WORK // 2


def test_somebody_left_out_does_not_count_and_the_pictures_go_to_others(workspace: Path, tmp_path: Path) -> None:
    settings = questions_file(tmp_path, annotators=1, control_share=0)
    with hosted(workspace, settings) as site:
        bad, good = site.annotators(["Bad", "Good"])
        answer_everything(bad)
        held = bad.tasks(1) or [bad.post("/api/undo", {}).json()["task"]]
        site.administrator().post("/api/admin/exclude", {"annotator": "Bad", "excluded": True, "reason": "asleep"})
        assert bad.post("/api/next", {"count": 5}).json()["finished"]
        assert bad.answer(held[0]).status_code == 409
        answer_everything(good)
        people = {row["name"]: row for row in site.administrator().http.get("/api/admin/summary").json()["annotators"]}
    assert (people["Bad"]["excluded"], people["Bad"]["reason"]) == (True, "asleep")
    assert not people["Good"]["excluded"]
    assert command("decide", workspace).exit_code == 0
    verified = Workspace(workspace).verified
    assert verified is not None
    assert verified.annotators == 1
    assert len(verified.decisions) == WORK


def test_the_rule_leaves_out_an_annotator_who_fails_the_controls(workspace: Path, tmp_path: Path) -> None:
    rule = {"control_accuracy": 0.8, "fewest": 3}
    settings = questions_file(tmp_path, annotators=2, control_share=0.5, exclude=rule)
    with hosted(workspace, settings) as site:
        always_no = site.annotator("No")
        while tasks := always_no.tasks(10):
            replies = [always_no.answer(task, {"recognisable": "no", "only": "no"}).status_code for task in tasks]
        people = site.administrator().http.get("/api/admin/summary").json()["annotators"]
    assert replies[-1] == 409
    assert people[0]["excluded"]
    assert "control pictures judged right" in people[0]["reason"]


def test_the_last_word_of_the_administrator_counts(workspace: Path, tmp_path: Path) -> None:
    settings = questions_file(tmp_path, annotators=2, control_share=0)
    with hosted(workspace, settings) as site:
        ada, ben = site.annotators(["Ada", "Ben"])
        answer_everything(ada)
        answer_everything(ben, {"recognisable": "no", "only": "yes"})
        admin = site.administrator()
        found = admin.http.get("/api/admin/summary").json()
        assert len(found["disagreements"]) == WORK
        one = found["disagreements"][0]
        assert one["questions"] == ["recognisable"]
        assert one["answers"]["Ben"]["recognisable"] == "no"
        assert admin.http.get(one["picture"]).headers["content-type"] == "image/png"
        word = {"id": one["id"], "question": "recognisable", "answer": "yes"}
        assert admin.post("/api/admin/adjudicate", word).json() == {"ok": True}
        assert admin.post("/api/admin/adjudicate", {**word, "answer": "perhaps"}).status_code == 409
        now = admin.http.get("/api/admin/summary").json()
        assert now["decisions"] == {"kept": 1, "dropped": 0, "undecided": WORK - 1, "too_few": 0}
        assert now["disagreement_count"] == WORK
    assert f"kept 1 of {WORK} pictures" in command("decide", workspace).output


def test_the_original_stands_beside_the_picture_where_the_protocol_says_so(workspace: Path, tmp_path: Path) -> None:
    with hosted(workspace, questions_file(tmp_path, show_original=True)) as site:
        browser = site.annotator("Ada")
        task = browser.tasks(1)[0]
        assert browser.http.get(task["original"]).headers["content-type"] == "image/png"
        assert task["original"] != task["picture"]


def test_what_mining_kept_is_what_people_are_asked(workspace: Path) -> None:
    kept = [name for name, attribute in variants(workspace).items() if attribute == "size"][:3]
    found = Workspace(workspace)
    found.keep_mined(MiningResult(tuple(kept), "all", {}, found.digest))
    with hosted(workspace) as site:
        progress = site.administrator().http.get("/api/admin/summary").json()["progress"]
    assert progress == {"pictures": 3, "finished": 0, "done": 0, "total": 9}


def test_a_server_that_restarts_goes_on_with_sessions_links_and_leases(workspace: Path) -> None:
    with served(workspace) as site:
        link = site.invite("Ada")
        browser = site.visit(link)
        tasks = browser.tasks(3)
        port = site.port
        site.kill()
    with served(workspace, "--port", port) as again:
        assert browser.tasks(3) == tasks
        assert again.visit(link).tasks(3) == tasks


def test_a_verification_without_answers_or_not_begun_says_so(workspace: Path) -> None:
    not_begun = command("decide", workspace)
    assert isinstance(not_begun.exception, UserError)
    assert "verify serve" in str(not_begun.exception)
    with hosted(workspace):
        none_yet = command("decide", workspace)
    assert isinstance(none_yet.exception, UserError)
    assert "got none yet" in str(none_yet.exception)
    assert Workspace(workspace).verified is None


def test_a_workspace_that_changed_since_is_refused_but_the_answers_come_out(workspace: Path, tmp_path: Path) -> None:
    with hosted(workspace) as site:
        answer_everything(site.annotator("Ada"))
    command("export", workspace, "--out", tmp_path / "before.csv")
    other = build_workspace(tmp_path / "other", photos=3)
    shutil.copy(other / "variants.parquet", workspace / "variants.parquet")
    tasks = ("--format", "label-studio", "--out", tmp_path / "tasks.json")
    for refused in (command("status", workspace), command("export", workspace, *tasks)):
        assert isinstance(refused.exception, UserError)
        assert "variants.parquet is not as it was written" in str(refused.exception)
    record_checksums(workspace)  # as if it had been built anew
    for refused in (command("status", workspace), command("export", workspace, *tasks)):
        assert "have changed since" in str(refused.exception)
    manifest = workspace / "variants.parquet"
    manifest.write_bytes(manifest.read_bytes() + b" ")
    assert command("export", workspace, "--out", tmp_path / "after.csv").exit_code == 0
    assert (tmp_path / "after.csv").read_text() == (tmp_path / "before.csv").read_text()


def test_other_questions_than_those_it_began_with_are_refused(workspace: Path, tmp_path: Path) -> None:
    with hosted(workspace):
        pass
    refused = command("serve", workspace, "--questions", questions_file(tmp_path, annotators=5))
    assert isinstance(refused.exception, UserError)
    assert "annotators differ now" in str(refused.exception)


def test_a_missing_package_names_the_extra(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "alembic", None)
    refused = command("status", workspace)
    assert isinstance(refused.exception, UserError)
    assert "pip install 'counterfoil[web]'" in str(refused.exception)


QUESTION = {"id": "seen", "text": "Is the {class} seen?"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"questions": [QUESTION, QUESTION]}, "two questions have the same id 'seen'"),
        ({"questions": [QUESTION, {**QUESTION, "id": "other"}]}, "the same text"),
        ({"questions": [{**QUESTION, "keep_if": "maybe"}]}, "none of its answers"),
        ({"questions": [{**QUESTION, "answers": ["yes"]}]}, "two different answers"),
        ({"questions": [{**QUESTION, "answers": ["yes", "yes"]}]}, "two different answers"),
        ({"questions": [{**QUESTION, "text": "Is {it} seen?"}]}, "only {class} is filled in"),
        ({"questions": []}, "at least 1"),
        ({"questions": [{**QUESTION, "keepif": "yes"}]}, "unknown key 'questions.0.keepif'"),
        ({"anotators": 3}, "unknown key 'anotators'"),
        ({"control_share": 0, "exclude": {"control_accuracy": 0.8}}, "control_share is 0"),
        ({"exclude": {}}, "needs a bound"),
        ({"annotators": 0}, "'annotators'"),
        ([], "holds no keys"),
    ],
)  # fmt: skip
def test_contradictory_questions_are_one_clear_line(content: object, told: str, tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UserError) as refused:
        load_questionnaire(path)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_bare_yes_in_yaml_is_the_word(tmp_path: Path) -> None:
    path = tmp_path / "questions.yaml"
    path.write_text("questions:\n- id: seen\n  text: Seen?\n  answers: [yes, no]\n  keep_if: yes\n")
    question = load_questionnaire(path).questions[0]
    assert (question.answers, question.keep_if) == (("yes", "no"), "yes")


def test_exports_come_back_in_and_count_once(workspace: Path, built: Path, tmp_path: Path) -> None:
    settings = questions_file(tmp_path, annotators=2)
    with hosted(workspace, settings) as site:
        ada, ben = site.annotators(["Ada", "Ben"])
        answer_everything(ada)
        answer_everything(ben, {"recognisable": "no", "only": "unsure"})
        ada.answer(ada.post("/api/undo", {}).json()["task"], {"recognisable": "no", "only": "no"})
    before = verdict_rows(workspace, tmp_path)
    copy = Path(shutil.copytree(built, tmp_path / "copy"))
    with hosted(copy, settings):
        pass
    for form, name in (("csv", "out.csv"), ("json", "again.json"), ("label-studio", "tasks.json")):
        assert command("export", workspace, "--format", form, "--out", tmp_path / name).exit_code == 0
        told = command("import", copy, tmp_path / name)
        assert told.exit_code == 0, told.exception
        assert ("were there already" in told.output) == (form != "csv")
        assert "differ" not in told.output
    after = verdict_rows(copy, tmp_path)
    assert in_order(before) == in_order(after)


def in_order(rows: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    """What was answered, corrections after what they correct; an answer taken back leaves a gap in the versions."""
    ordered = sorted(rows, key=lambda row: (row["variant_id"], row["annotator"], row["question"], int(row["version"])))
    told = ("variant_id", "annotator", "question", "answer", "control", "seconds")
    return [tuple(str(row[name]) for name in told) for row in ordered]


def test_import_never_goes_beyond_n(workspace: Path, tmp_path: Path) -> None:
    with hosted(workspace, questions_file(tmp_path, annotators=1, control_share=0)) as site:
        answer_everything(site.annotator("Ada"))
    variant = verdict_rows(workspace, tmp_path)[0]["variant_id"]
    lines = [
        "variant_id,annotator,question,answer",
        *(f"{variant},Eve,{name},yes" for name in ("recognisable", "only")),
    ]
    (tmp_path / "more.csv").write_text("\n".join(lines))
    told = command("import", workspace, tmp_path / "more.csv")
    assert "0 answers imported" in told.output
    assert "enough annotators" in told.output


def test_an_offline_package_comes_back_in_and_counts_once(workspace: Path, tmp_path: Path) -> None:
    with hosted(workspace, questions_file(tmp_path, annotators=1)) as site:
        told = command("package", workspace, "Far", "--count", "30", "--out", tmp_path / "far.zip")
        assert told.exit_code == 0, told.exception
        near = answer_everything(site.annotator("Near"))
    with zipfile.ZipFile(tmp_path / "far.zip") as archive:
        name = next(name for name in archive.namelist() if name.endswith("tasks.js"))
        package = json.loads(archive.read(name).decode().split("=", 1)[1].rstrip("; \n"))
    answers = [
        {"task": task["task"], "answers": YES, "seconds": 2.0, "time": "2026-01-02T03:04:05+00:00"}
        for task in package["tasks"]
    ]
    saved = {"format": "counterfoil-offline-answers", "answers": answers}
    (tmp_path / "far.json").write_text(
        json.dumps({**saved, "ticket": package["ticket"], "signature": package["signature"]})
    )
    assert f"{len(answers)} answers imported" in command("import", workspace, tmp_path / "far.json").output
    assert f"{len(answers)} left out: they were there already" in (
        command("import", workspace, tmp_path / "far.json").output
    )
    rows = [row for row in verdict_rows(workspace, tmp_path) if row["question"] == "only"]
    assert len([row for row in rows if not row["control"]]) == WORK
    assert {row["annotator"]: str(row["time"])[:10] for row in rows}["Far"] == "2026-01-02"
    assert len(near) + len(answers) == len(rows)


def test_the_state_of_things_is_told_in_words(workspace: Path, tmp_path: Path) -> None:
    with hosted(workspace, questions_file(tmp_path, annotators=2, control_share=0)) as site:
        ada, ben = site.annotators(["Ada", "Ben"])
        answer_everything(ada)
        waiting = f"kept 0 of {WORK} pictures; dropped 0, undecided 0, too few answers {WORK}"
        assert all(waiting in command(name, workspace).output for name in ("status", "decide"))
        answer_everything(ben)
    told = command("status", workspace).output
    assert f"answers: {2 * WORK} of {2 * WORK}" in told
    assert f"by majority: kept {WORK} of {WORK} pictures; dropped 0, undecided 0, too few answers 0" in told
    assert f"Ada: {WORK} answered, median 1.5 s" in told
    assert "agreement on 'only' over 14 pictures: percent 100.00" in told
    links = command("invite", workspace, "Cy", "Di", "--url", "https://verify.example.org").output.splitlines()
    assert [line.split("/join/")[0] for line in links] == [
        f"{name}: https://verify.example.org" for name in ("Cy", "Di")
    ]
