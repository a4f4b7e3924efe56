"""Which pictures of a workspace go into a benchmark: those kept by mining and by verification, and their originals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from counterfoil.benchmark.manifest import REFERENCES
from counterfoil.errors import UserError
from counterfoil.store.workspace import Workspace
from counterfoil.types import Decision, MiningResult, StoredVariant, VerificationResult


@dataclass(frozen=True)
class BenchmarkSelection:
    """The selection rule; None follows what was done to the workspace."""

    workspace: Workspace
    use_mined: bool | None = None
    use_verified: bool | None = None
    originals: bool = True

    @cached_property
    def mined(self) -> MiningResult | None:
        """The mining result, where it is used; raises `UserError` where it is of other pictures."""
        if self.use_mined is False:
            return None
        mined = self.workspace.mined
        if mined is None and self.use_mined:
            raise UserError(
                f"expected a workspace that was mined, but nothing was mined in '{self.workspace.folder}' yet;"
                " run `counterfoil mine` first, or leave out --mined"
            )
        if mined is not None:
            self.workspace.check_unchanged(mined.workspace_digest, "it was mined")
        return mined

    @cached_property
    def verified(self) -> VerificationResult | None:
        """The verification result, where it is used; raises `UserError` where it is of other pictures."""
        if self.use_verified is False:
            return None
        verified = self.workspace.verified
        if verified is None and self.use_verified:
            raise UserError(
                f"expected people's verdicts, but there are none yet in '{self.workspace.folder}';"
                " let people answer with `counterfoil verify`, or say --unverified"
            )
        if verified is not None:
            self.workspace.check_unchanged(verified.workspace_digest, "people verified it")
        return verified

    @cached_property
    def decisions(self) -> dict[str, Decision]:
        """People's decisions, by variant."""
        return {decision.variant_id: decision for decision in self.verified.decisions} if self.verified else {}

    def kept(self) -> tuple[tuple[StoredVariant, ...], Counter[str]]:
        """The selected pictures, and how many were left out, by reason."""
        left_out: Counter[str] = Counter()
        tested = [one for one in self.workspace.pictures if one.variant.attribute not in REFERENCES]
        for reason, holds in self._rules():
            fitting = [one for one in tested if holds(one)]
            left_out[reason] += len(tested) - len(fitting)
            tested = fitting
        references = self._references(tested)
        chosen = (*references, *tested)
        unused = len(self.workspace.pictures) - len(chosen) - left_out.total()
        there = sum(one.variant.attribute in REFERENCES for one in self.workspace.pictures)
        if unused != there - len(references):
            raise RuntimeError(f"{self.workspace.folder}: {unused} pictures are neither chosen nor left out")
        return chosen, left_out

    def _rules(self) -> Sequence[tuple[str, Callable[[StoredVariant], bool]]]:
        """Pairs of a reason to leave a picture out and the condition that keeps it in."""
        rules: list[tuple[str, Callable[[StoredVariant], bool]]] = []
        if self.mined is not None:
            ids = set(self.mined.kept)
            rules.append(("not kept by mining", lambda one: one.variant.id in ids))
        if self.verified is not None:
            decisions = self.decisions
            rules.append(("answered by too few people", lambda one: one.variant.id in decisions))
            rules.append(("left undecided by people", lambda one: not _is_undecided(decisions[one.variant.id])))
            rules.append(("rejected by people", lambda one: decisions[one.variant.id].kept))
        return rules

    def _references(self, tested: Sequence[StoredVariant]) -> list[StoredVariant]:
        """The originals and controls of tested samples, unless people rejected them."""
        if not self.originals:
            return []
        samples = {one.variant.sample_id for one in tested}
        rejected = {name for name, decision in self.decisions.items() if not decision.kept}
        return [
            one
            for one in self.workspace.pictures
            if one.variant.attribute in REFERENCES and one.variant.sample_id in samples
            if one.variant.id not in rejected
        ]


def _is_undecided(decision: Decision) -> bool:
    """Whether people's answers led to no decision: such a picture is not kept, but it was not rejected either."""
    return "undecided" in decision.decided.values()
