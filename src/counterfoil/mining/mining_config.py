"""The configuration of mining, checked before any model is asked, and a model's family by its address."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from counterfoil.errors import UserError, expect_choice
from counterfoil.execution import Execution
from counterfoil.mining.rules import Rule
from counterfoil.models.model_options import ModelOptions
from counterfoil.run_config import check_counts, check_settings
from counterfoil.types import Model

Balance: TypeAlias = Literal["class", "attribute", "both"]


@dataclass(frozen=True, kw_only=True)
class MiningConfig:
    """The whole configuration of mining."""

    workspace: Path
    surrogates: tuple[str | Model, ...]  # addresses, or models themselves
    targets: tuple[str | Model, ...] = ()
    rule: Rule = field(default_factory=Rule)
    balance: Balance | None = None
    most_per_group: int | None = None  # pictures of a group when balanced; None for the smallest group's number
    families: Mapping[str, str] = field(default_factory=dict)  # by address, where the address does not name the family
    classes: str | None = None
    options: ModelOptions = field(default_factory=ModelOptions)
    workers: int | None = None
    batch_size: int = 16
    command: str = ""
    execution: Execution = field(default_factory=Execution)  # who asks the models

    def __post_init__(self) -> None:
        check_counts(workers=self.workers, most_per_group=self.most_per_group)
        check_settings(batch_size=self.batch_size, seed=0, options=self.options, classes=self.classes)
        expect_choice(self.balance, ("class", "attribute", "both", None), "balance")
        self.rule.check(len(self.surrogates))
        surrogates, targets = (list(map(address_of, models)) for models in (self.surrogates, self.targets))
        for role, names in (("surrogate", surrogates), ("target", targets)):
            if len(set(names)) < len(names):
                raise UserError(f"expected each {role} once, got {', '.join(names)}")
        both = sorted(set(surrogates) & set(targets))
        if both:
            raise UserError(
                f"expected targets that take no part in the choice, but {both[0]} is a surrogate too; drop it from one"
            )
        self._check_balance()
        strangers = sorted(set(self.families) - {*surrogates, *targets})
        if strangers:
            raise UserError(f"expected --family NAME=ADDRESS with the address of a model, got '{strangers[0]}'")

    def _check_balance(self) -> None:
        if self.most_per_group is not None and self.balance is None:
            raise UserError("expected --balance with --most-per-group, got none; give --balance class")

    def family(self, address: str) -> str:
        """The family of a model: as configured, else as its address says."""
        return self.families.get(address) or guess_family(address)


def address_of(model: str | Model) -> str:
    """The address of a model, or the name of one given as an object."""
    return model if isinstance(model, str) else model.name


_FAMILIES = (
    ("CLIP", r"clip|siglip|align"),
    ("vision-language model", r"llava|minigpt|qwen|gpt|blip|gemma|internvl|idefics|pixtral|^vlm\b|^https?:"),
    ("ConvNeXt", r"convnext"),
    ("EfficientNet", r"efficientnet|effnet"),
    ("MobileNet", r"mobilenet|mobileone|mobilevit"),
    ("PP-LCNet", r"lcnet"),
    ("Swin", r"swin"),
    ("DINO", r"dino"),
    ("MAE", r"\bmae\b|_mae"),
    ("BEiT", r"beit|eva0?2"),
    ("DeiT", r"deit|cait"),
    ("ViT", r"vit"),
    ("Mixer", r"mixer|resmlp"),
    ("DenseNet", r"densenet"),
    ("RegNet", r"regnet"),
    ("Inception", r"inception|xception|googlenet"),
    ("VGG", r"vgg"),
    ("AlexNet", r"alexnet"),
    ("SqueezeNet", r"squeezenet"),
    ("ShuffleNet", r"shufflenet"),
    ("ResNet", r"res(net|next|nest)|seresnet|\bbit\b"),
)  # the first match counts: a CLIP with a ViT inside is a CLIP


_FOLDERS = re.compile(r"[^:]*[/\\](?=[^:/\\]+\.(?:csv|onnx|parquet|pt|pth|py|safetensors)(?::|$))", re.IGNORECASE)


def guess_family(address: str) -> str:
    """Guess the family from the address, else from the first letters of its last part; a file's folders are ignored."""
    lowered = _FOLDERS.sub("", address).lower()
    for name, pattern in _FAMILIES:
        if re.search(pattern, lowered):
            return name
    last = re.split(r"[/:\\]", address.rstrip("/"))[-1]
    letters = re.match(r"[A-Za-z]+", last)
    return letters[0] if letters else address
