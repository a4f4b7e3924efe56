"""Adjudication: the administrator's answers to questions on which annotators disagree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from sqlalchemy import Connection, insert, select

from counterfoil.statistics.annotators import UNDECIDED
from counterfoil.types import Decision
from counterfoil.verification.schema import adjudications, pictures

Adjudications: TypeAlias = Mapping[tuple[str, str], str]  # variant and question to answer


def store_adjudication(
    connection: Connection, picture_id: int, person_id: int, answer: tuple[str, str], now: float
) -> bool:
    """Append an administrator's answer (question, answer); False where the picture is not to be verified."""
    work = select(pictures.c.id).where(pictures.c.id == picture_id, pictures.c.role == "work")
    if connection.execute(work).first() is None:
        return False
    row = {"picture_id": picture_id, "person_id": person_id, "given_at": now}
    connection.execute(insert(adjudications).values(**row, question=answer[0], answer=answer[1]))
    return True


def read_adjudications(connection: Connection) -> Adjudications:
    """Return the administrators' last answer for each picture and question."""
    query = (
        select(pictures.c.variant_id, adjudications.c.question, adjudications.c.answer)
        .join(pictures, pictures.c.id == adjudications.c.picture_id)
        .order_by(adjudications.c.id)
    )
    return {(variant, question): answer for variant, question, answer in connection.execute(query)}


def apply_adjudications(
    decisions: Iterable[Decision], adjudicated: Adjudications, keep_if: Mapping[str, str]
) -> list[Decision]:
    """Return the decisions with administrators' answers in place of the annotators', and those made by them alone."""
    rows = list(decisions)
    known = {row.variant_id for row in rows}
    for variant in dict.fromkeys(variant for variant, _ in adjudicated if variant not in known):
        rows.append(Decision(variant, False, {question: {} for question in keep_if}, dict.fromkeys(keep_if, UNDECIDED)))
    return [_apply(row, adjudicated, keep_if) for row in rows]


def has_enough_answers(row: Decision, fewest: int, adjudicated: Adjudications) -> bool:
    """Whether every question about a picture has enough answers, or an administrator's."""
    return all(
        sum(given.values()) >= fewest or (row.variant_id, question) in adjudicated
        for question, given in row.answers.items()
    )


def _apply(row: Decision, adjudicated: Adjudications, keep_if: Mapping[str, str]) -> Decision:
    decided = {question: adjudicated.get((row.variant_id, question), own) for question, own in row.decided.items()}
    kept = all(decided[question] == wanted for question, wanted in keep_if.items())
    return replace(row, decided=decided, kept=kept)
