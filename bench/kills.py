"""Kills commands with SIGKILL at random moments, starts them again, and compares what they wrote.

    python bench/kills.py [--trials 3] [--seed 0] [--only mine ...]

Each command is run once without disturbance. Then, in each trial, it is started in the same place and killed once to
three times at a random moment, and at last left alone. Every file must be the same, byte for byte, but for `work/`
(parts hold the time they took), the list of checksums, which names those, and the milliseconds of a network that
`repair` measures. The program ends with status 1 where a file differs, or is missing or too many, or a start fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

HELPERS = Path(__file__).parent.parent / "tests" / "helpers"
sys.path.insert(0, str(HELPERS))
from planted import write_photos  # noqa: E402
from repairable import write_small_object_network  # noqa: E402
from scale import MODEL, MODEL_CODE, write_tiny_photos  # noqa: E402

RECIPE = "working_size: 64\njudge_fills: false\nedits: [{edit: jpeg}, {edit: background-swap}, {edit: grayscale}]\n"
SECOND = """

class Lights(Shades):
    def __call__(self, images):
        return super().__call__(images)[:, ::-1]
"""
SIZES = "judge_fills: false\nedits: [{edit: size, levels: {rate: [0.1, 0.05]}}]\n"
_MEASURED = re.compile(rb'"milliseconds\w*": [\d.e-]+|[\d.]+ \xe2\x86\x92 [\d.]+<br>')  # in repair.json, on its page
_ENDED_WELL = (0, 1, 3, 4)  # not repaired, too few photos, not judged


def make_steps(folder: Path) -> dict[str, tuple[list[object], str, str]]:
    """By name: the words of a command, the folder that it writes, and the one that this folder begins as."""
    source = ["--images", folder / "images", "--masks", folder / "masks", "--recipe", folder / "recipe.yaml"]
    second = ["--model", MODEL.replace("Shades", "Lights")]
    images, masks = folder / "coloured" / "images", folder / "coloured" / "masks"
    sizes = ["--recipe", folder / "sizes.yaml", "--fitting-recipe", folder / "sizes.yaml"]
    network = ["--model", f"onnx:{folder / 'network.onnx'}", "--elsewhere", images, "--allow-loss", 10]
    mined = ["--surrogate", MODEL, "--target", second[1], "--original", "none"]
    return {
        "run": (["run", *source, "--model", MODEL, *second, "--out", folder / "run"], "run", ""),
        "build": (["build", *source, "--out", folder / "space"], "space", ""),
        "evaluate": (
            ["evaluate", folder / "built", "--model", MODEL, *second, "--out", folder / "answers"], "answers", "",
        ),
        "mine": (["mine", folder / "mined", *mined], "mined", "built"),
        "freeze": (
            ["freeze", folder / "built", "--out", folder / "frozen", "--name", "kills", "--version", "1.0.0"],
            "frozen", "",
        ),
        "paint": (
            ["paint", "--recipe", "imagenet-d", "--painter", "python:painted:words", "--categories", "backpack",
             "--values", "beach,striped", "--out", folder / "painted"], "painted", "",
        ),
        "repair": (
            ["repair", "--images", images, "--masks", masks, *sizes, *network, "--method", "zoom", "--workers", 1,
             "--out", folder / "repaired"], "repaired", "",
        ),
    }  # fmt: skip


def start(words: Sequence[object], folder: Path) -> subprocess.Popen[str]:
    """The command in a session of its own, so that its worker processes can be killed with it."""
    paths = [str(folder), str(HELPERS), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "COUNTERFOIL_RESULTS_MB": "0"}
    return subprocess.Popen(
        [sys.executable, "-m", "counterfoil", *map(str, words), "--quiet"], env=environment, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def finish(words: Sequence[object], folder: Path) -> str:
    """Run the command to its end; returns what it said where it failed."""
    process = start(words, folder)
    said = process.communicate()[1]
    return "" if process.returncode in _ENDED_WELL else said or f"status {process.returncode}"


def read_files(folder: Path) -> dict[str, bytes]:
    """The files that must be the same."""
    return {
        path.relative_to(folder).as_posix(): _MEASURED.sub(b"", path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "work" not in path.relative_to(folder).parts and path.name != "checksums.json"
    }


def compare(expected: Mapping[str, bytes], got: Mapping[str, bytes]) -> str:
    """Which files differ."""
    names = [name for name in sorted({*expected, *got}) if expected.get(name) != got.get(name)]
    return ", ".join(names)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=())
    asked = parser.parse_args()
    rng, failures = np.random.default_rng(asked.seed), 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_tiny_photos(folder, 24)
        (folder / "recipe.yaml").write_text(RECIPE)
        (folder / "scale_model.py").write_text(MODEL_CODE + SECOND)
        (folder / "sizes.yaml").write_text(SIZES)
        (folder / "coloured").mkdir()
        write_photos(folder / "coloured", 36)
        write_small_object_network(folder / "network.onnx")
        steps = make_steps(folder)
        said = finish([*steps["build"][0][:-1], folder / "built"], folder)
        if said:
            raise SystemExit(f"build: {said}")
        for name, (words, target, first) in steps.items():
            if asked.only and name not in asked.only:
                continue
            kills, wrong = 0, []
            prepare(folder, target, first)
            began = time.monotonic()
            said = finish(words, folder)
            lasted = time.monotonic() - began
            if said:
                raise SystemExit(f"{name}: {said}")
            expected = read_files(folder / target)
            for _ in range(asked.trials):
                prepare(folder, target, first)
                for _ in range(int(rng.integers(1, 4))):
                    kills += kill_once(words, folder, float(rng.uniform(0.3, 1.0)) * lasted)
                said = finish(words, folder) or compare(expected, read_files(folder / target))
                wrong += [said] if said else []
            failures += len(wrong)
            print(f"{name}: {kills} kills in {asked.trials} trials, {len(expected)} files:"
                  f" {'; '.join(wrong) or 'all the same'}", flush=True)  # fmt: skip
    raise SystemExit(1 if failures else 0)


def prepare(folder: Path, target: str, first: str) -> None:
    """The folder that a command writes, as it was before."""
    shutil.rmtree(folder / target, ignore_errors=True)
    if first:
        shutil.copytree(folder / first, folder / target)


def kill_once(words: Sequence[object], folder: Path, seconds: float) -> bool:
    """Start the command and kill it after some seconds; False where it had ended before."""
    process = start(words, folder)
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return True
    return False


if __name__ == "__main__":
    main()
