"""How many photos a drop takes to be seen."""

from __future__ import annotations

import click

from counterfoil.analyse import Change, change_from_accuracy, change_from_discordance, photos_needed

_ALPHA = 0.05


@click.command()
@click.option("--drop", type=click.FloatRange(0, 100, min_open=True), required=True, help="the drop to see, in points")
@click.option(
    "--power",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.8,
    show_default=True,
    help="with which probability it is to be seen",
)
@click.option(
    "--accuracy",
    type=click.FloatRange(0, 100),
    default=80.0,
    show_default=True,
    help="accuracy on the originals, percent",
)
@click.option(
    "--correlation",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="of right answers before and after the edit",
)
@click.option(
    "--discordance",
    type=click.FloatRange(0, 100, min_open=True),
    default=None,
    help="percent of photos whose answer changes; from a trial run, instead of accuracy and correlation",
)
@click.option(
    "--comparisons",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="rows of the table that Holm's adjustment is over",
)
def plan(
    drop: float, power: float, accuracy: float, correlation: float, discordance: float | None, comparisons: int
) -> None:  # fmt: skip
    """Say how many photos are needed to see a drop."""
    if discordance is None:
        change = change_from_accuracy(drop / 100, accuracy / 100, correlation)
    else:
        change = change_from_discordance(drop / 100, discordance / 100)
    needed = photos_needed(change, power=power, alpha=_ALPHA / comparisons)
    click.echo(_sentence(needed, change, power, comparisons))


def _sentence(needed: int, change: Change, power: float, comparisons: int) -> str:
    lost, gained = 100 * change.lost, 100 * change.gained
    among = f", among {comparisons} comparisons" if comparisons > 1 else ""
    return (
        f"{needed:,} photos: a drop of {lost - gained:g} points ({lost:.1f} % of photos lost, {gained:.1f} % gained) "
        f"then has p < {_ALPHA:g} by McNemar's exact test{among} with probability {power:g}."
    )
