"""What mining found: the page, the sentences, the tables."""

from counterfoil.report.mining.content import (
    Curve,
    CurvePoint,
    Kept,
    MinedModel,
    MiningContent,
    SelectionBias,
    SizeYield,
    SpreadRow,
    Transfer,
    WrongAnswers,
    Yield,
)
from counterfoil.report.mining.page import render_mining
from counterfoil.report.mining.records import mining_csv, mining_record
from counterfoil.report.mining.words import mining_lines

__all__ = [
    "Curve", "CurvePoint", "Kept", "MinedModel", "MiningContent", "SelectionBias", "SizeYield", "SpreadRow", "Transfer",
    "WrongAnswers", "Yield", "mining_csv", "mining_lines", "mining_record", "render_mining",
]  # fmt: skip
