"""The golden scenarios: commands of the command line whose output a refactoring must not change."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

from golden_annotators import served
from golden_inputs import ARCHIVES

PATIENCE_SECONDS = 120
LITE0, LITE1, LCNET = "embedded:efficientnet-lite0", "embedded:efficientnet-lite1", "embedded:pp-lcnetv2"
COLOUR, NEXT_COLOUR = "python:golden_models:colour", "python:golden_models:next_colour"
PARTS_BEFORE_KILL = 8  # the halting model waits for the same number


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Commands that write into one folder, and the scenarios whose files they read."""

    name: str
    record: Callable[[Recorder], None]
    needs: tuple[str, ...] = ()


SCENARIOS: dict[str, Scenario] = {}


def add_scenario(name: str, record: Callable[[Recorder], None], *needs: str) -> None:
    """Add a scenario to those that are recorded, after what it needs."""
    SCENARIOS[name] = Scenario(name=name, record=record, needs=needs)


def scenario(name: str, *needs: str) -> Callable[[Callable[[Recorder], None]], Callable[[Recorder], None]]:
    """Add a function to the scenarios under this name."""

    def add(record: Callable[[Recorder], None]) -> Callable[[Recorder], None]:
        add_scenario(name, record, *needs)
        return record

    return add


@dataclass
class Recorder:
    """Runs the commands of one scenario; paths are relative to OUT, so that recorded paths are too."""

    checkout: Path
    out: Path
    name: str
    faults: list[str] = field(default_factory=list)
    _steps: int = 0

    @property
    def folder(self) -> Path:
        """Where the scenario writes."""
        return self.out / self.name

    def path(self, name: str) -> str:
        """A file of the scenario as its commands are given it."""
        return f"{self.name}/{name}"

    def environment(self, **further: str) -> dict[str, str]:
        """The variables of a command's process."""
        path = os.pathsep.join([str(self.checkout / "src"), str(self.out / "inputs")])
        return {**os.environ, "PYTHONPATH": path, "COLUMNS": "100", "PYTHONWARNINGS": "ignore", **further}

    def command(self, *arguments: object) -> list[str]:
        """A command of Counterfoil as arguments of a process."""
        return [sys.executable, "-u", "-m", "counterfoil", *map(str, arguments)]

    def run(self, *arguments: object, status: int = 0, file: str = "") -> str:
        """Run a command, keep what it prints and note a fault where its exit status is another one."""
        done = subprocess.run(
            self.command(*arguments), cwd=self.out, env=self.environment(), capture_output=True, text=True, check=False
        )
        self._steps += 1
        words = [str(argument) for argument in arguments]
        name = file or f"{self._steps:02d}-{words[0]}.txt"
        text = f"$ counterfoil {' '.join(words)}\nexit status {done.returncode}\n{done.stdout}"
        messages = [line for line in done.stderr.splitlines() if not re.search(r"\d+%.*\d+/\d+|^fetch(ing|ed) ", line)]
        if messages:
            text += "--- standard error\n" + "\n".join(messages) + "\n"
        (self.folder / "steps").mkdir(exist_ok=True)
        (self.folder / "steps" / name).write_text(text)
        if done.returncode != status:
            last = (messages or ["no message"])[-1]
            self.faults.append(f"{' '.join(words)}: exit status {done.returncode}, expected {status}: {last}")
        return done.stdout

    def start(self, *arguments: object, **variables: str) -> subprocess.Popen[str]:
        """Start a command in a group of processes of its own."""
        return subprocess.Popen(
            self.command(*arguments), cwd=self.out, env=self.environment(**variables), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def copy(self, source: str, target: str) -> str:
        """Copy another scenario's folder into this one; commands that write into a workspace get a copy."""
        shutil.copytree(self.out / source, self.folder / target)
        return self.path(target)


def add_runs() -> None:
    """Add a run with each recipe that does not paint, and the default recipe in several ways."""
    limits = {
        "attributes": 12, "imagenet-9": 12, "ximagenet-12": 12, "imagenet-c": 12, "everything": 6,
    }  # fmt: skip
    for recipe, limit in limits.items():
        add_scenario(f"run-{recipe}", run_with("--recipe", recipe, "--limit", limit, "--model", LITE0))
    attributes = ("--recipe", "attributes", "--limit", 12)
    add_scenario("run-workers-1", run_with(*attributes, "--model", LITE0, "--workers", 1))
    add_scenario("run-workers-2", run_with(*attributes, "--model", LITE0, "--workers", 2))
    add_scenario("run-batch-1", run_with(*attributes, "--model", LITE0, "--batch-size", 1))
    add_scenario("run-batch-16", run_with(*attributes, "--model", LITE0, "--batch-size", 16))
    add_scenario("run-two-models", run_with(*attributes, "--model", LITE0, "--model", LCNET))
    add_scenario("run-seed-1", run_with("--limit", 4, "--seed", 1, "--model", LCNET, "--scoring", "subset"))


def run_with(*arguments: object) -> Callable[[Recorder], None]:
    """A scenario of one run over the demo photos."""

    def record(recorder: Recorder) -> None:
        recorder.run("run", "--images", "demo:", *arguments, "--out", recorder.path("run"))

    return record


add_runs()


@scenario("run-killed")
def record_killed_run(recorder: Recorder) -> None:
    """Kill a run in the middle, with all of its processes, and finish it."""
    arguments = ("run", "--images", "demo:", "--limit", 12, "--workers", 1, "--model", "python:golden_models:halting",
                 "--out", recorder.path("run"))  # fmt: skip
    parts = recorder.folder / "run" / "work" / "parts"
    process = recorder.start(*arguments, GOLDEN_PARTS=str(parts))
    until = time.monotonic() + PATIENCE_SECONDS
    while len(list(parts.glob("[!.]*"))) < PARTS_BEFORE_KILL:
        if process.poll() is not None or time.monotonic() > until:
            recorder.faults.append("the run to kill wrote no parts; is their folder work/parts?")
            break
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    recorder.run(*arguments)


@scenario("reports", "run-two-models", "run-attributes", "run-workers-1")
def record_reports(recorder: Recorder) -> None:
    """Report, compare and hold finished runs to bounds."""
    both, first, second = "run-two-models/run", "run-attributes/run", "run-workers-1/run"
    recorder.run("report", both, "--out", recorder.path("report"), "--export", "all")
    recorder.run("report", first, "--out", recorder.path("plain"))
    named = ("--as", "first", "--as", "second")
    recorder.run("report", first, second, *named, "--out", recorder.path("together"), "--export", "all")
    recorder.run("compare", both, both, "--first", LITE0, "--second", LCNET)
    recorder.run("compare", both, both, "--first", LITE0, "--second", LCNET, "--json")
    recorder.run("compare", first, second, *named, "--csv")
    recorder.run("gate", both, "--max-drop", "any=100", "--junit", recorder.path("gate.xml"))
    recorder.run("gate", first, "--max-drop", "any=5", "--bound", "lower", status=1)
    recorder.run("gate", first, "--max-drop", "occlusion=5", "--min-accuracy", 90, status=3)
    recorder.run("gate", first, "--max-drop", "size:0.05=50", "--bound", "point", "--model", LITE0)


@scenario("build")
def record_build(recorder: Recorder) -> None:
    """Build a small workspace, and one with the default recipe."""
    recipe = ("--recipe", "inputs/recipe.yaml")
    recorder.run("build", "--images", "demo:", "--limit", 8, *recipe, "--out", recorder.path("workspace"))
    recorder.run("build", "--images", "demo:", "--limit", 3, "--out", recorder.path("attributes"))


@scenario("rebuild", "build", "run-attributes")
def record_rebuild(recorder: Recorder) -> None:
    """Make single pictures of a run and of a workspace again, one of an edit."""
    for kind, folder, most in (("run", "run-attributes/run", 3), ("built", "build/attributes", 6)):
        table = pq.read_table(recorder.out / folder / "variants.parquet")
        first = dict(reversed(list(zip(table["edit"].to_pylist(), table["id"].to_pylist(), strict=True))))
        for edit, variant in sorted(first.items())[:most]:
            recorder.run("rebuild", folder, variant, "--out", recorder.path(f"{kind}-{edit}.png"))


@scenario("mine", "build")
def record_mining(recorder: Recorder) -> None:
    """Mine a workspace with two surrogates and a target, by two rules."""
    models = ("--surrogate", LITE0, "--surrogate", LITE1, "--target", LCNET)
    recorder.run("mine", recorder.copy("build/workspace", "workspace"), *models, "--at-least", 1)
    other = recorder.copy("build/workspace", "below")
    recorder.run("mine", other, *models, "--below", 0.5, "--original", "none", "--balance", "attribute")


@scenario("verify", "mine", "build")
def record_verification(recorder: Recorder) -> None:
    """Serve a mined workspace, let three people answer by rule, decide, export, import."""
    workspace = recorder.copy("mine/workspace", "workspace")
    with served(recorder.start("verify", "serve", workspace, "--port", 0)) as site:
        for name in ("Ann", "Ben", "Cleo"):
            site.annotate(name)
    recorder.run("verify", "status", workspace)
    for rule in ("unanimity", "dawid-skene", "majority"):
        recorder.run("verify", "decide", workspace, "--rule", rule)
        shutil.copy(recorder.folder / "workspace" / "verified.json", recorder.folder / f"verified-{rule}.json")
    for form in ("csv", "json", "label-studio", "label-studio-setup"):
        ending = {"csv": "csv", "label-studio-setup": "xml"}.get(form, "json")
        file = recorder.path(f"answers-{form}.{ending}")
        recorder.run("verify", "export", workspace, "--format", form, "--out", file)
    imported = recorder.copy("mine/workspace", "imported")
    with served(recorder.start("verify", "serve", imported, "--port", 0)):
        pass  # serving begins the verification that answers are taken into
    recorder.run("verify", "package", imported, "Dora", "--count", 3, "--out", recorder.path("package.zip"))
    recorder.run("verify", "import", imported, recorder.path("answers-csv.csv"))
    recorder.run("verify", "decide", imported)
    recorder.run("verify", "status", imported)
    run = recorder.path("run")
    recorder.run("evaluate", workspace, "--model", COLOUR, "--model", LITE0, "--out", run)
    recorder.run("verify", "changed", workspace, "--run", run)


@scenario("freeze", "verify", "build")
def record_freezing(recorder: Recorder) -> None:
    """Freeze a verified workspace in three layouts, check each, and compare two versions."""
    named = ("--name", "golden", "--licence", "CC0-1.0", "--published", "2026-01-02")
    for layout in ("folder", "parquet", "webdataset"):
        out = recorder.path(layout)
        recorder.run(
            "freeze", "verify/workspace", *named, "--version", "1.0.0", "--format", layout, "--out", out,
            "--description", "Pictures of the golden scenarios.", "--url", "https://example.org/golden",
        )  # fmt: skip
        recorder.run("check", out)
        recorder.run("check", out, "--json", "--files-only")
    more = ("--unverified", "--not-mined", "--previous", recorder.path("folder"))
    recorder.run("freeze", "verify/workspace", *named, "--version", "2.0.0", *more, "--out", recorder.path("second"))
    recorder.run("diff", recorder.path("folder"), recorder.path("second"))
    recorder.run("diff", recorder.path("folder"), recorder.path("second"), "--json")
    bare = ("--no-originals", "--scoring", "subset")
    recorder.run("freeze", "build/workspace", *named, "--version", "1.0.0", *bare, "--out", recorder.path("bare"))
    broken = recorder.copy("freeze/folder", "broken")
    picture = min((recorder.out / broken).rglob("*.png"))
    picture.write_bytes(picture.read_bytes()[:-20])
    recorder.run("check", broken, status=1)


@scenario("evaluate-frozen", "freeze", "build")
def record_evaluation(recorder: Recorder) -> None:
    """Evaluate networks on the frozen benchmark in each layout, and on a workspace."""
    for layout in ("folder", "parquet", "webdataset"):
        recorder.run("evaluate", f"freeze/{layout}", "--model", LCNET, "--out", recorder.path(layout))
    many = ("--model", LITE0, "--model", LCNET, "--workers", 1, "--batch-size", 3)
    recorder.run("evaluate", "freeze/second", *many, "--out", recorder.path("second"))
    recorder.run("evaluate", "freeze/second", "--limit", 3, "--model", LITE0, "--out", recorder.path("few"))
    recorder.run("evaluate", "build/workspace", "--model", LITE0, "--out", recorder.path("workspace"))
    recorder.run("report", recorder.path("second"), "--export", "all", "--out", recorder.path("report"))
    recorder.run("evaluate", "freeze/broken", "--model", LITE0, "--out", recorder.path("broken"), status=2)


def archive_addresses() -> dict[str, str]:
    """Name of a run to the address of the archive that it is over."""
    addresses = {name: f"{name}:inputs/archives/{name}" for name in ARCHIVES}
    for name in ("imagenet-9-challenge", "imagenet-9-challenge-all"):
        addresses[name] = f"{name}:inputs/archives/imagenet-9"
    addresses["imagenet-e-tar"] = "imagenet-e:inputs/archives/imagenet-e.tar"
    addresses["ximagenet-12-zip"] = "ximagenet-12:inputs/archives/ximagenet-12.zip"
    return addresses


@scenario("archives")
def record_archives(recorder: Recorder) -> None:
    """Evaluate on a small copy of each published archive."""
    for name, address in archive_addresses().items():
        second = ("--model", NEXT_COLOUR) if name in ("imagenet-e", "imagenet-c") else ()
        recorder.run("evaluate", address, "--model", COLOUR, *second, "--out", recorder.path(name))


@scenario("leaderboards", "archives")
def record_leaderboards(recorder: Recorder) -> None:
    """Show each benchmark's published numbers beside a run, and one in every format."""
    for name in ARCHIVES:
        recorder.run("leaderboard", name, f"archives/{name}", file=f"{name}.txt")
    for name in ("imagenet-b", "imagenet-x"):
        recorder.run("leaderboard", name, file=f"{name}.txt")
    for form, ending in {"text": "txt", "markdown": "md", "json": "json", "html": "html"}.items():
        file = recorder.path(f"imagenet-e.{ending}")
        recorder.run("leaderboard", "imagenet-e", "archives/imagenet-e", "--format", form, "--out", file)


@scenario("convert", "build")
def record_conversion(recorder: Recorder) -> None:
    """Write twelve photos in each format, and read each format back."""
    images, masks = recorder.folder / "images", recorder.folder / "masks"
    recorder.run("convert", "--images", "ximagenet-12:inputs/archives/ximagenet-12", "--to", "folder",
                 "--out", recorder.path("from-archive"), status=2)  # fmt: skip
    recorder.run("convert", "--images", "demo:", "--to", "folder", "--out", recorder.path("all"))
    source = next((recorder.folder / "all").rglob("images"), recorder.folder / "all")
    chosen = sorted(path for path in source.rglob("*") if path.is_file())[::6]
    for path in chosen:
        place = path.relative_to(source)
        (images / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, images / place)
        mask = (source.parent / "masks" / place).with_suffix(".png")
        if mask.is_file():
            (masks / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(mask, (masks / place).with_suffix(".png"))
    shutil.rmtree(recorder.folder / "all")
    photos = ("--images", recorder.path("images"), "--masks", recorder.path("masks"))
    forms = ("coco", "labelme", "voc", "webdataset", "parquet", "fiftyone")
    for form in (*forms, "folder"):
        recorder.run("convert", *photos, "--to", form, "--out", recorder.path(form))
    for form in forms:
        jsons = sorted((recorder.folder / form).glob("*.json"))
        where = recorder.path(f"{form}/{jsons[0].name}") if form == "coco" and jsons else recorder.path(form)
        recorder.run("convert", "--images", f"{form}:{where}", "--to", "folder", "--out", recorder.path(f"{form}-back"))
    recorder.run("run", *photos, "--limit", 3, "--recipe", "inputs/recipe.yaml", "--model", LITE0,
                 "--out", recorder.path("run"))  # fmt: skip


@scenario("paint")
def record_painting(recorder: Recorder) -> None:
    """Paint from words with a painter of known behaviour, look at the quality, and compare prompts."""
    painter = ("--painter", "python:golden_models:noise")
    words = ("--recipe", "imagenet-d", *painter, "--categories", "alarm_clock,mug")
    recorder.run("paint", *words, "--limit", 60, "--out", recorder.path("words"))
    photos = (
        "--images",
        "inputs/archives/ximagenet-12/image",
        "--masks",
        "inputs/archives/ximagenet-12/standard_masks",
    )
    around = ("--recipe", "ximagenet-12-ai", *painter, *photos)
    recorder.run("paint", *around, "--limit", 6, "--out", recorder.path("around"))
    recorder.run("quality", recorder.path("words"), "--distance", 12)
    recorder.run("mine", recorder.path("words"), "--surrogate", COLOUR, "--surrogate", NEXT_COLOUR,
                 "--classes", "imagenet-d", "--original", "none")  # fmt: skip
    recorder.run("analyse", "prompts", recorder.path("words"), "--compared", 20, "--out", recorder.path("prompts.json"))


@scenario("demo")
def record_demo(recorder: Recorder) -> None:
    """The demonstration on three photos."""
    recorder.run("demo", "--limit", 3, "--out", recorder.path("demo"))


@scenario("plan")
def record_plans(recorder: Recorder) -> None:
    """How many photos are needed, asked in several ways."""
    recorder.run("plan", "--drop", 5)
    recorder.run("plan", "--drop", 2, "--power", 0.9, "--accuracy", 76, "--correlation", 0.3, "--comparisons", 24)
    recorder.run("plan", "--drop", 3, "--discordance", 12)
    recorder.run("plan", "--drop", 90, "--accuracy", 40, status=2)


@scenario("lists")
def record_lists(recorder: Recorder) -> None:
    """What there is: edits, recipes, models, painters, sources; one model in detail."""
    for what in ("edits", "recipes", "models", "painters", "sources"):
        recorder.run("list", what, file=f"{what}.txt")
    recorder.run("version")
    for model in (LITE0, LCNET, COLOUR):
        recorder.run("models", "check", model)


@scenario("errors", "run-attributes", "build")
def record_errors(recorder: Recorder) -> None:
    """Mistakes of users: one line each and exit status 2."""
    photos = ("--images", "demo:", "--limit", 2)
    out = ("--out", recorder.path("out"))
    for arguments in (
        ("run", *photos, "--model", LITE0, "--recipe", "atributes", *out),
        ("run", *photos, "--model", "embedded:efficientnet-lite9", *out),
        ("run", *photos, "--model", "no-such:model", *out),
        ("run", "--images", "no-such-folder", "--model", LITE0, *out),
        ("run", *photos, "--model", LITE0, "--out", "run-attributes/run"),
        ("run", *photos, "--model", LITE0, "--batch-size", 0, *out),
        ("evaluate", "imagenet-e:inputs/archives/imagenet-a", "--model", LITE0, *out),
        ("evaluate", "imagenet-q:inputs", "--model", LITE0, *out),
        ("rebuild", "build/workspace", "0000"),
        ("report", "inputs", *out),
        ("check", "build/workspace"),
        ("freeze", "build/workspace", "--name", "x", "--version", "one", *out),
        ("mine", "build/workspace", "--surrogate", LITE0, "--at-least", 5),
        ("gate", "run-attributes/run", "--max-drop", "colour"),
        ("leaderboard", "imagenet-q"),
        ("convert", "--images", "coco:inputs/labels.json", "--to", "voc", *out),
        ("verify", "decide", "build/workspace"),
        ("no-such-command",),
    ):
        recorder.run(*arguments, status=2)


@scenario("help")
def record_help(recorder: Recorder) -> None:
    """The help of every command, found by reading the lists of commands."""
    waiting: list[list[str]] = [[]]
    while waiting:
        words = waiting.pop(0)
        text = recorder.run(*words, "--help", file=f"{'-'.join(['counterfoil', *words])}.txt")
        commands = text.partition("\nCommands:\n")[2]
        waiting += [[*words, name] for name in re.findall(r"^  ([a-z]\S*)", commands, re.MULTILINE)]


def add_painting_runs() -> None:
    """Add the recipes that paint backgrounds with the embedded diffusion model, half a CPU minute a photo."""
    for recipe in ("imagenet-e", "imagenet-d-photo", "painted"):
        add_scenario(f"run-{recipe}", run_with("--recipe", recipe, "--limit", 2, "--model", LITE0))


add_painting_runs()  # last: they take half of the time
