"""The rule of benchmarks that are one set of pictures: top-1 and top-5, and which columns compete."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from counterfoil.pipeline.published.scores import notes_of, top1, top5
from counterfoil.pipeline.recorded.study import Study
from counterfoil.report import PaperTable

_ALL = "The arg-max over all of a model's columns counts."
_SUBSET = "Only the columns of the benchmark's {classes} classes compete (sub-set of the logits)."
_OTHER = {
    "subset": "The other convention, in which all columns compete, is --scoring all; the two are not comparable.",
    "all": "The other convention, in which only the benchmark's classes compete, is --scoring subset; the two are not"
    " comparable.",
}


def tables_of(title: str, classes: int, both: bool = False) -> Callable[[Study], Sequence[PaperTable]]:
    """The rule of one such benchmark; `both` where papers use either convention."""

    def tables(study: Study) -> Sequence[PaperTable]:
        way = "subset" if study.run.scoring.startswith("subset") else "all"
        rule = _SUBSET.format(classes=classes) if way == "subset" else _ALL
        best, among = top1(study), top5(study)
        rows = []
        for model in study.files:
            found = best.interval(model)
            rows.append((model, found.value, found.ci_low, found.ci_high, among.accuracy(model), float(found.n)))
        return [
            PaperTable(
                title, f"{rule} In percent, with Wilson's interval.",
                ("model", "top-1", "top-1, low", "top-1, high", "top-5", "pictures"), tuple(rows),
                notes_of(study, _OTHER[way] if both else ""),
            )
        ]  # fmt: skip

    return tables
