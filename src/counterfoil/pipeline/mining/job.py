"""What mining was asked to do, checked at the door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from counterfoil.errors import UserError
from counterfoil.mine import Balance, Rule, family_of
from counterfoil.models import ModelOptions


@dataclass(frozen=True)
class MiningJob:
    """The whole configuration of mining."""

    workspace: Path
    surrogates: tuple[str, ...]  # model addresses
    targets: tuple[str, ...] = ()
    rule: Rule = field(default_factory=Rule)
    balance: Balance | None = None
    most_per_group: int | None = None  # pictures of a group where balanced; None for the smallest group's number
    families: Mapping[str, str] = field(default_factory=dict)  # by address, where the address does not tell
    classes: str | None = None
    options: ModelOptions = field(default_factory=ModelOptions)
    workers: int | None = None
    batch_size: int = 16
    command: str = ""

    def __post_init__(self) -> None:
        self.rule.check(len(self.surrogates))
        for role, names in (("surrogate", self.surrogates), ("target", self.targets)):
            if len(set(names)) < len(names):
                raise UserError(f"expected each {role} once, got {', '.join(names)}")
        both = sorted(set(self.surrogates) & set(self.targets))
        if both:
            raise UserError(
                f"expected targets that had no say in the choice, but {both[0]} is a surrogate too; drop it from one"
            )
        self._check_balance()
        strangers = sorted(set(self.families) - {*self.surrogates, *self.targets})
        if strangers:
            raise UserError(f"expected --family NAME=ADDRESS with the address of a model, got '{strangers[0]}'")

    def _check_balance(self) -> None:
        if self.most_per_group is not None and self.balance is None:
            raise UserError("expected --balance with --most-per-group, got none; give --balance class")
        if self.most_per_group is not None and self.most_per_group < 1:
            raise UserError(f"expected at least 1 picture per group, got {self.most_per_group}")

    def family(self, address: str) -> str:
        """The family of a model: as told, else as its address says."""
        return self.families.get(address) or family_of(address)
