"""The columns of a model that gives English names, recognised as ImageNet's by their names."""

from __future__ import annotations

from collections.abc import Sequence

from counterfoil.labels.space import imagenet1k

_RECOGNISED = 0.95  # the share of names that must fit; libraries spell a few classes in their own way


def imagenet_columns(texts: Sequence[str]) -> tuple[str, ...] | None:
    """The WordNet ids of columns called "tench, Tinca tinca" and so on; None where they are not ImageNet's.

    Every name is looked up by itself, so columns in another order keep their meaning. A name that ImageNet uses
    twice ("crane") or not at all takes the place left over, where all other columns stand in ImageNet's own order.
    """
    known = imagenet1k()
    if len(texts) != len(known.labels):
        return None
    found = [known.lookup(text) for text in texts]
    certain = [candidates[0] for candidates in found if len(candidates) == 1]
    if len(certain) < _RECOGNISED * len(texts) or len(set(certain)) < len(certain):
        return None
    left_over = [label for label in known.labels if label not in set(certain)]
    uncertain = [place for place, candidates in enumerate(found) if len(candidates) != 1]
    in_order = all(known.labels[place] == found[place][0] for place in range(len(texts)) if place not in set(uncertain))
    if uncertain and not in_order:
        return None
    fill = dict(zip(uncertain, left_over, strict=True))
    return tuple(fill.get(place) or found[place][0] for place in range(len(texts)))
