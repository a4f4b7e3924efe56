"""Dawid and Skene's model: true answers and every annotator's errors, estimated together by EM."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counterfoil.analyse.verdict_table import Ratings

_SMALLEST = 1e-10  # of a probability, so that its logarithm exists
_MOST_ROUNDS = 1_000
_MOST_RENAMED = 6  # answers whose orders are all looked at
_TOLERANCE = 1e-9  # on the gain in log-likelihood per picture


class _Given(NamedTuple):
    """The answers that were given, sorted by picture, and how many of everything there is."""

    picture: NDArray[np.intp]
    annotator: NDArray[np.intp]
    answer: NDArray[np.intp]
    shape: tuple[int, int, int]  # pictures, annotators, answers


def dawid_skene(ratings: Ratings) -> NDArray[np.float64]:
    """How likely each answer is the true one, (pictures, answers).

    Starts from the shares of votes, then weighs each annotator by the errors that the others' answers show.
    """
    picture, annotator = np.nonzero(ratings.codes >= 0)
    shape = (*ratings.codes.shape, len(ratings.answers))
    given = _Given(picture, annotator, ratings.codes[picture, annotator], shape)
    beliefs = _shares(ratings.counts)
    before = -np.inf
    for _ in range(_MOST_ROUNDS):
        errors, frequencies = _maximised(given, beliefs)
        beliefs, likelihood = _expected(given, errors, frequencies)
        if likelihood - before < _TOLERANCE:
            break
        before = likelihood
    return _named(given, beliefs)


def _named(given: _Given, beliefs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The beliefs under the names of answers that most of the answers given bear out.

    To the likelihood names mean nothing: with many careless annotators EM may settle where everybody is believed to say
    the opposite of what is true.
    """
    answers = given.shape[2]
    borne_out = [np.bincount(given.answer, beliefs[given.picture, true], answers) for true in range(answers)]
    orders = itertools.permutations(range(answers)) if answers <= _MOST_RENAMED else [tuple(range(answers))]
    best = max(orders, key=lambda order: sum(borne_out[true][answer] for answer, true in enumerate(order)))
    return np.ascontiguousarray(beliefs[:, best])


def _shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(counts / np.maximum(counts.sum(axis=-1, keepdims=True), _SMALLEST), np.float64)


def _maximised(given: _Given, beliefs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Errors and frequencies that make the answers likeliest, given the beliefs."""
    _, annotators, answers = given.shape
    cell = given.annotator * answers + given.answer
    sums = [np.bincount(cell, beliefs[given.picture, true], annotators * answers) for true in range(answers)]
    joint = np.stack(sums).reshape(answers, annotators, answers)
    return _shares(joint.transpose(1, 0, 2)), beliefs.mean(axis=0)


def _expected(
    given: _Given, errors: NDArray[np.float64], frequencies: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Beliefs given errors and frequencies, and the log-likelihood per picture."""
    pictures, _, answers = given.shape
    logs = np.log(np.maximum(errors, _SMALLEST))[given.annotator, :, given.answer]  # (given answers, true answers)
    summed = np.stack([np.bincount(given.picture, logs[:, true], pictures) for true in range(answers)], axis=1)
    scores = summed + np.log(np.maximum(frequencies, _SMALLEST))
    highest = scores.max(axis=1, keepdims=True)
    likelihoods = np.exp(scores - highest)
    total = likelihoods.sum(axis=1, keepdims=True)
    return likelihoods / total, float((np.log(total) + highest).mean())
