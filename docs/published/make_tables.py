"""Write the published numbers into their pages again: `python docs/published/make_tables.py`.

A page shows a short table whole. Of a long one it shows the best rows and those of well-known models, says how many
there are, and names the command for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from counterfoil.published.catalogue import BENCHMARK_OF
from counterfoil.published.leaderboard import build_leaderboard, render_markdown
from counterfoil.published.published_numbers import MANY, Leaderboard, list_benchmarks

HERE = Path(__file__).parent
BEGIN, END = "<!-- published -->\n", "<!-- /published -->"
BEST = 5
COLUMNS: Mapping[str, tuple[str, ...]] = {"imagenet-c": ("mCE", "clean error")}  # AlexNet alone has fifteen more
WELL_KNOWN = {
    "resnet18.tv_in1k", "resnet50.tv_in1k", "resnet50.a1_in1k", "resnet152.tv_in1k", "resnext101_32x8d.tv_in1k",
    "resnext101_32x8d.fb_wsl_ig1b_ft_in1k", "densenet121.tv_in1k", "vgg16.tv_in1k", "inception_v3.tv_in1k",
    "mobilenetv2_100.ra_in1k", "efficientnet_lite0.ra_in1k", "efficientnet_b0.ra_in1k",
    "tf_efficientnet_b7.ns_jft_in1k", "convnext_tiny.fb_in1k", "convnext_base.fb_in22k_ft_in1k",
    "vit_small_patch16_224.augreg_in21k_ft_in1k", "vit_base_patch16_224.augreg_in21k_ft_in1k",
    "deit_base_patch16_224.fb_in1k",
    "swin_base_patch4_window7_224.ms_in1k", "beit_base_patch16_224.in22k_ft_in22k_in1k",
    "ViT-B-32/openai", "ViT-L-14/openai", "ViT-H-14/laion2b_s32b_b79k", "RN50/openai",
    "ResNet50, torchvision", "ResNet50, Augmix", "ViT-B/16, DAT", "EVA", "eva02_L_pt_m38m_medft_in21k_ft_in1k_p14",
    "resnet50", "resnet50_augmix", "resnet101", "vgg16_bn", "instagram-resnext101_32x48d",
    "efficientnet-l2-noisystudent",
}  # fmt: skip


def block(benchmark: str) -> str:
    """What stands between the marks of a benchmark's page."""
    board = build_leaderboard(benchmark)
    shown = _chosen(board) if len(board.rows) > MANY else _with_columns(board)
    table = render_markdown(shown).split("\n", 2)[2]
    if shown == board:
        return table
    rows = f"{len(shown.rows)} of {len(board.rows)} rows" if len(board.rows) > MANY else "Some columns"
    return (
        f"{rows}; everything: `counterfoil benchmark leaderboard {benchmark} --all`, or with `--format html` a page"
        f" that sorts and filters.\n\n{table}"
    )


def _chosen(board: Leaderboard) -> Leaderboard:
    kept = [row for place, row in enumerate(board.rows) if place < BEST or row.model in WELL_KNOWN]
    return replace(board, rows=tuple(kept))


def _with_columns(board: Leaderboard) -> Leaderboard:
    columns = COLUMNS.get(board.benchmark)
    if columns is None:
        return board
    rows = [replace(row, values={name: row.values[name] for name in columns if name in row.values})
            for row in board.rows]  # fmt: skip
    return replace(board, rows=tuple(rows))


def main() -> None:
    """Write every page."""
    for benchmark in list_benchmarks():
        if benchmark in BENCHMARK_OF:
            page = HERE / f"{benchmark}.md"
            before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
            page.write_text(f"{before}{BEGIN}{block(benchmark)}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
