"""Every command with --json prints one document that its schema describes; -q and -v; what a shell completes."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete

from command_documents import SCHEMA, read_document
from command_line import counterfoil, subcommands
from counterfoil.cli import commands
from counterfoil.cli.command_output import ALIASES, to_plain
from counterfoil.store.workspace import Workspace
from locations import ROOT
from planted import write_photos

jsonschema = pytest.importorskip("jsonschema")
HONEST, SMALL = "python:planted:honest", "python:planted:fails_on_small_objects"
RECIPE = "working_size: 96\njudge_fills: false\nedits:\n - edit: control\n - {edit: size, levels: {rate: [0.05]}}\n"
SERVERS = {
    "verify serve": ("verify", "serve", "workspace", "--port", "0"),
    "photos review": ("photos", "review", "images", "--masks", "reviewed", "--no-browser", "--port", "0"),
}


def list_names(group: click.Group, before: str = "") -> list[str]:
    """Every command by the words after `counterfoil`."""
    names = []
    for name, command in subcommands(group).items():
        names += list_names(command, f"{before}{name} ") if isinstance(command, click.Group) else [f"{before}{name}"]
    return names


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos, a recipe and a file of answers; the commands below work on each other's output, in their order."""
    folder = tmp_path_factory.mktemp("output")
    write_photos(folder, 8)
    (folder / "short.yaml").write_text(RECIPE)
    rows = ["model,sample,condition,correct"]
    rows += [f"m,{photo},{kind},{int(kind == 'original')}" for photo in range(12) for kind in ("original", "fog")]
    (folder / "answers.csv").write_text("\n".join(rows))
    return folder


PHOTOS = ("--images", "images", "--masks", "masks", "--recipe", "short.yaml")
CALLS: dict[str, tuple[str, ...]] = {
    "run": ("run", *PHOTOS, "--model", f"A={HONEST}", "--model", f"B={SMALL}", "--out", "run"),
    "build": ("build", *PHOTOS, "--out", "workspace"),
    "shards status": ("shards", "status", "run"),
    "shards merge": ("shards", "merge", "run"),
    "report": ("report", "run", "--out", "page"),
    "show": ("show", "run", "--out", "sheet.svg"),
    "compare": ("compare", "run", "run", "--first", "A", "--second", "B"),
    "gate": ("gate", "run", "--model", "A", "--max-drop", "size=99"),
    "plan": ("plan", "--drop", "20"),
    "analyse run": ("analyse", "run", "run"),
    "check": ("check", "run"),
    "evaluate": ("evaluate", "workspace", "--model", HONEST, "--out", "evaluated"),
    "pictures quality": ("pictures", "quality", "workspace", "--keep-all"),
    "mine": ("mine", "workspace", "--surrogate", SMALL),
    "freeze": ("freeze", "workspace", "--name", "B", "--version", "1.0.0", "--out", "frozen", "--not-mined"),
    "benchmark diff": ("benchmark", "diff", "frozen", "frozen"),
    "benchmark leaderboard": ("benchmark", "leaderboard", "imagenet-e"),
    "photos convert": ("photos", "convert", "--images", "images", "--to", "coco", "--out", "coco"),
    "import": ("import", "answers.csv", "--out", "imported"),
    "models check": ("models", "check", HONEST),
    "list": ("list", "edits"),
    "version": ("version",),
    "paint": ("paint", "--images", "images", "--masks", "masks", "--recipe", "short.yaml", "--out", "painted"),
    "verify invite": ("verify", "invite", "workspace", "Ada"),
    "verify status": ("verify", "status", "workspace"),
    "verify package": ("verify", "package", "workspace", "Ada", "--out", "package.zip"),
    "verify export": ("verify", "export", "workspace", "--out", "answers.json", "--format", "json"),
    "verify import": ("verify", "import", "workspace", "answers.json"),
    "analyse prompts": ("analyse", "prompts", "workspace"),
}
# commands that refuse here, in a line; their documents of success are read by tests/verification and tests/remedies
REFUSED = {
    "pictures rebuild": (("pictures", "rebuild", "workspace", "none"), "expected"),
    "verify changed": (("verify", "changed", "workspace"), "expected people's decisions"),
    "verify decide": (("verify", "decide", "workspace"), "expected answers of annotators, got none yet"),
    "repair": (("repair", "run", "--model", HONEST, "--out", "repaired"), "expected"),
    "demo": (("demo", "--limit", "0"), "expected limit of at least 1, got 0"),
}


def test_every_command_prints_a_document_that_its_schema_describes(folder: Path) -> None:
    from counterfoil.verification.project import begin_verification

    for name, words in CALLS.items():
        if name == "verify invite":
            begin_verification(folder / "workspace", None, None)
        done = counterfoil(*words, "--json", cwd=folder)
        assert done.returncode in (0, 3, 4), (name, done.stderr)
        document = read_document(done.stdout, name)
        assert "error" not in document, (name, document)
    picture = Workspace(folder / "workspace").pictures[0].variant.id
    rebuilt = read_document(
        counterfoil("rebuild", "workspace", picture, "--json", cwd=folder).stdout, "pictures rebuild"
    )
    assert Path(rebuilt["file"]).is_file()
    drops = json.loads(counterfoil("report", "run", "--out", "page", "--json", cwd=folder).stdout)["drops"]
    assert {row["model"] for row in drops} == {"A", "B"}
    assert max(drops, key=lambda row: row["drop"] or 0)["edit"] == "size"


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_a_document_too(folder: Path, name: str) -> None:
    words, beginning = REFUSED[name]
    done = counterfoil(*words, "--json", cwd=folder)
    assert done.returncode == 2
    document = read_document(done.stdout, name)
    assert document["error"].startswith(beginning)
    assert document["error"] in done.stderr


def test_every_command_has_a_schema_and_is_asked_here() -> None:
    names = [*list_names(commands), "version"]
    assert sorted(names) == sorted([*CALLS, *REFUSED, *SERVERS])
    shared = {"judgement", "drop", "contrast", "status", "error"}
    assert set(SCHEMA["$defs"]) - shared == set(names)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_key_of_the_schema_is_documented() -> None:
    page = (ROOT / "docs" / "json.md").read_text()
    for name in list_names(commands):
        assert f"\n## {name}\n" in page, name
        for key in SCHEMA["$defs"][name]["anyOf"][0]["required"]:
            assert f"`{key}`" in page, (name, key)


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_prints_its_document_when_it_listens(folder: Path, name: str) -> None:
    if name == "verify serve":
        counterfoil("build", *PHOTOS, "--out", "workspace", cwd=folder)
    command = [sys.executable, "-u", "-m", "counterfoil", *SERVERS[name], "--json"]
    given = {**os.environ, "COUNTERFOIL_PROGRESS": "off"}
    with subprocess.Popen(command, cwd=folder, env=given, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line == "}\n":
                break
        process.terminate()
    assert "error" not in read_document("".join(lines), name)


def test_the_demo_prints_its_document(tmp_path: Path) -> None:
    document = read_document(counterfoil("demo", "--limit", "1", "--out", tmp_path / "demo", "--json").stdout, "demo")
    assert "error" not in document


@pytest.mark.parametrize("old", sorted(ALIASES))
def test_old_names_still_work_and_are_not_listed(old: str) -> None:
    done = counterfoil(*old.split(), "--help")
    assert done.returncode == 0
    new = counterfoil(*ALIASES[old].split(), "--help").stdout
    assert done.stdout.replace(f"counterfoil {old}", f"counterfoil {ALIASES[old]}").split() == new.split()
    assert old not in list_names(commands)


def test_json_of_gate_and_analyse_can_also_be_a_file(folder: Path) -> None:
    done = counterfoil("gate", "run", "--model", "A", "--max-drop", "size=99", "--json", "gate.json", cwd=folder)
    assert "size" in done.stdout
    assert json.loads((folder / "gate.json").read_text())["format"] == 1


def test_quiet_leaves_no_line_but_errors_and_answers(folder: Path) -> None:
    done = counterfoil("report", "run", "--out", "page", "-q", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "expected" in counterfoil("report", "none", "--out", "page", "-q", cwd=folder).stderr
    assert "photos" in counterfoil("plan", "--drop", "20", "-q").stdout
    both = counterfoil("report", "run", "--out", "page", "-q", "--json", cwd=folder)
    assert read_document(both.stdout, "report")["exit_status"] == 0
    assert both.stderr == ""


def test_verbose_logs_stages_with_their_time_through_logging(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    done = counterfoil("report", "run", "--out", "page", "-v", cwd=folder)
    assert "counterfoil.progress: making the report: over after" in done.stderr
    assert "making the report" not in counterfoil("report", "run", "--out", "page", cwd=folder).stderr
    assert any(record.name.startswith("counterfoil.") for record in caplog.records)
    assert not logging.getLogger("counterfoil").handlers  # a command leaves nothing behind


def test_lines_go_to_standard_error_where_the_document_has_the_output(folder: Path) -> None:
    done = counterfoil("report", "run", "--out", "page", "--json", cwd=folder)
    assert "report: page/report.html" in done.stderr


def complete(*words: str) -> list[str]:
    """What a shell offers after these words."""
    *typed, last = words
    found = BashComplete(commands, {}, "counterfoil", "_X").get_completions(typed, last)
    return [item.value for item in found]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("run", "--model", "embedded:eff"), "embedded:efficientnet-lite0"),
        (("run", "--model", "Ours=on"), "Ours=onnx:"),
        (("models", "check", "tim"), "timm:"),
        (("run", "--recipe", "att"), "attributes"),
        (("paint", "--recipe", "imagenet-d"), "imagenet-d"),
        (("gate", "run", "--max-drop", "background-s"), "background-swap="),
        (("gate", "run", "--margin", "ba"), "background="),
        (("show", "run", "--attribute", "po"), "position"),
        (("run", "--images", "co"), "coco:"),
        (("sha",), "shards"),
        (("shards", "m"), "merge"),
    ],
)
def test_a_shell_completes_models_recipes_edits_and_commands(words: tuple[str, ...], offered: str) -> None:
    assert offered in complete(*words)


@pytest.mark.parametrize("words", [("run", "--recipe", "./"), ("run", "--images", "/")])
def test_where_no_name_fits_the_shell_completes_paths(words: tuple[str, ...]) -> None:
    assert complete(*words) == [""]


@pytest.mark.parametrize("make", [lambda: float("nan"), lambda: float("inf")])
def test_numbers_that_json_has_not_are_null(make: Callable[[], float]) -> None:
    assert to_plain({"a": (make(), Path("b"), {1})}) == {"a": [None, "b", [1]]}


@pytest.mark.parametrize(
    ("instruction", "words", "offered"),
    [
        ("bash_complete", "counterfoil run --model embedded:eff", "embedded:efficientnet-lite0"),
        ("zsh_complete", "counterfoil run --recipe imagenet-", "imagenet-e-pixels"),
        ("fish_complete", "counterfoil benchmark lead", "leaderboard"),
        ("zsh_source", "", "#compdef counterfoil"),
    ],
)
def test_a_shell_that_completes_a_line_is_answered_and_nothing_else_is_said(
    instruction: str, words: str, offered: str
) -> None:
    typed = words.split()
    code = "import sys; sys.argv = ['counterfoil']; from counterfoil.__main__ import main; main()"
    given = {"_COUNTERFOIL_COMPLETE": instruction, "COMP_WORDS": words, "COMP_CWORD": str(len(typed) - 1)}
    if instruction.startswith("fish"):
        given["COMP_CWORD"] = typed[-1]  # fish gives the word itself
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **given}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert offered in done.stdout
