"""Every remedy on a folder of photos with masks, before and after by attribute, and gain a millisecond.

    python bench/repair.py PHOTOS [--masks MASKS] [--photos 192] [--model ADDRESS] [--out FOLDER]
    python bench/repair.py PHOTOS --masks MASKS --method train [--setting epochs=4]

PHOTOS is a folder of class folders. What is finished is kept in the folder, so a run that was stopped goes on.
`efficientnet-lite0` is that network in torch (bench/requirements.txt), which can also be trained; the embedded one is
the same weights as ONNX, which cannot.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from counterfoil.assets.cache import fetch_asset
from counterfoil.assets.embedded_networks import NETWORKS
from counterfoil.cli.repair_commands import split_settings
from counterfoil.models.model_objects import wrap_model
from counterfoil.models.preprocessing import prepare_input
from counterfoil.recipes.edit_recipe import Recipe, Step
from counterfoil.remedies.effects import Change, Effect
from counterfoil.remedies.repair_config import TRIED, RepairConfig
from counterfoil.remedies.repair_result import RepairResult
from counterfoil.remedies.repairer import execute_repair
from counterfoil.sources.demo_photos import DemoSource
from counterfoil.sources.source_loaders import open_source
from counterfoil.types import Model

IN_TORCH = "efficientnet-lite0"
JUDGED = Recipe(
    name="bench-repair",
    working_size=384,
    edits=(
        Step(edit="background-swap"),
        Step(edit="size", levels={"rate": [0.1, 0.05]}),
        Step(edit="position", settings={"rate": 0.05}),
        Step(edit="direction"),
        Step(edit="scene-swap"),
        Step(edit="scene-size", levels={"rate": [0.1, 0.05]}),
        Step(edit="scene-position", settings={"rate": 0.05}),
        Step(edit="scene-direction", settings={"rate": 0.05}),
        Step(edit="object-blur"),
        Step(edit="texture"),
    ),
)

FITTED = Recipe(
    name="bench-repair-fitting",
    working_size=384,
    edits=(
        Step(edit="background-swap", replicates=2),
        Step(edit="size", levels={"rate": [0.2, 0.07]}),
        Step(edit="position", settings={"rate": 0.12}),
        Step(edit="scene-swap"),
        Step(edit="scene-size", levels={"rate": [0.2, 0.07]}),
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("images", type=Path)
    parser.add_argument("--masks", type=Path)
    parser.add_argument("--photos", type=int, default=192)
    parser.add_argument("--model", default=IN_TORCH)
    parser.add_argument("--method", help="one remedy alone")
    parser.add_argument("--setting", action="append", default=[], help="NAME=VALUE of the method")
    parser.add_argument("--recipe", help="the edits that are judged, in place of those above: a name or a YAML file")
    parser.add_argument("--fitting-recipe", help="the edits that are fitted on")
    parser.add_argument("--elsewhere", type=Path, help="photos of other classes, in place of the demo photos")
    parser.add_argument("--out", type=Path, default=Path("build/bench-repair"))
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    config = RepairConfig(
        source=open_source(given.images, given.masks), recipe=given.recipe or JUDGED, limit=given.photos,
        model=open_in_torch() if given.model == IN_TORCH else given.model, method=given.method,
        fitting_recipe=given.fitting_recipe or FITTED, tried=TRIED, workers=given.workers, command="bench/repair.py",
        elsewhere=DemoSource() if given.elsewhere is None else open_source(given.elsewhere, None),
    )  # fmt: skip
    print_tables(execute_repair(config.with_settings(split_settings(given.setting)), given.out))


def open_in_torch() -> Model:
    """EfficientNet-Lite0 with the weights of the embedded network, prepared as that is."""
    import torch
    from efficientnet_lite_pytorch import EfficientNet  # type: ignore[import-not-found, unused-ignore]

    module = EfficientNet.from_pretrained(IN_TORCH, weights_path=str(fetch_asset(IN_TORCH))).eval()
    wanted = NETWORKS[IN_TORCH].preprocessing

    def transform(picture: Image.Image) -> Any:
        return torch.from_numpy(prepare_input(np.asarray(picture), wanted))

    return wrap_model(module, transform=transform, name=IN_TORCH)


def print_tables(result: RepairResult) -> None:
    """The five columns of each remedy, the gain a millisecond, and the chosen remedy by attribute."""
    before = result.milliseconds_before
    print(f"{len(result.table.photos)} photos, {len(result.plan.others)} of other classes; {before:.1f} ms before")
    print("| remedy | edited, all | edited, photos' classes | unedited | others | ms | gain a ms | drops that shrink |")
    print("|---|---|---|---|---|---|---|---|")
    for row in result.rows:
        extra = row.milliseconds - before
        gain = f"{row.among.change.value / extra:.2f}" if extra > 1 else "-"
        cells = [_cell(change) for change in (row.edited, row.among, row.unedited, row.others)]
        print(
            f"| {row.name} | {' | '.join(cells)} | {row.milliseconds:.1f} | {gain} | {', '.join(row.shrunk) or '-'} |"
        )
    print(f"\nchosen by the folds: {', '.join(result.chosen)}; verdict: {result.verdict.outcome}")
    for reason in result.verdict.reasons:
        print(f"- {reason}")
    print_attributes(result)
    print("\n| edit | drop, photos' classes: shrinks by | accuracy, all classes |")
    print("|---|---|---|")
    for effect in result.effects:
        name = f"{effect.edit} {effect.level}" if effect.edit else f"**{effect.attribute}**"
        print(f"| {name} | {_cell(effect.drop)} | {_cell(effect.every)} |")
    for name, effect in result.left_out.items():
        print(f"fitted without {name}: its drop shrinks by {_cell(effect.drop)}")


def print_attributes(result: RepairResult) -> None:
    """The drop of every attribute before, and by how much each remedy shrinks it."""
    names = [row.name for row in result.rows]
    print(f"\n| drop, photos' classes | n | before | {' | '.join(names)} |")
    print(f"|---|---|---|{'---|' * len(names)}")
    for place, attribute in enumerate(result.attributes):
        cells = [_shrunk(row.effects[place]) for row in result.rows]
        drop = attribute.drop
        print(f"| {attribute.attribute} | {drop.change.n} | {drop.before:.1f} | {' | '.join(cells)} |")


def _shrunk(effect: Effect) -> str:
    row = effect.drop.change
    bold = "**" if effect.is_significant else ""
    return f"{bold}{row.value:+.1f} [{row.ci_low:.1f}, {row.ci_high:.1f}]{bold}"


def _cell(change: Change | None) -> str:
    if change is None:
        return "-"
    row = change.change
    return f"{change.before:.1f} to {change.after:.1f}: {row.value:+.1f} [{row.ci_low:.1f}, {row.ci_high:.1f}]"


if __name__ == "__main__":
    main()
