"""HTTP requests sent concurrently and retried after failures, with waits between attempts, and their total usage."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from counterfoil.errors import UserError
from counterfoil.models.endpoint import ChatCompletion, Endpoint, EndpointSettings, Limits, Transient
from counterfoil.types import Usage


class Meter:
    """Adds up usage from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._usage = Usage(cost=0.0)

    def add(self, more: Usage) -> None:
        """Add to the counts; the cost is NaN where no prices are given."""
        with self._lock:
            self._usage = self._usage.plus(more)

    @property
    def usage(self) -> Usage:
        """The count so far."""
        with self._lock:
            return self._usage


Item = TypeVar("Item")
Result = TypeVar("Result")

_LONGEST_WAIT = 60.0  # seconds, where the endpoint does not ask for more


class RetriesExhausted(Exception):
    """Every attempt failed; holds the reason of the last one."""


class RequestQueue:
    """Sends requests for all threads of a run, so that the concurrency limit holds for the whole run."""

    def __init__(self, settings: EndpointSettings) -> None:
        self._limits = settings.limits
        self._endpoint = Endpoint(settings)
        self._meter = Meter()
        self._closed = threading.Event()
        self._refused: UserError | None = None  # once every request must fail, no thread sends another
        self._pool = ThreadPoolExecutor(settings.limits.concurrency, thread_name_prefix="counterfoil-vlm")

    @property
    def usage(self) -> Usage:
        """The usage so far."""
        return self._meter.usage

    def count(self, outcome: str) -> None:
        """Count the outcome of a question."""
        self._meter.add(Usage(questions=1, outcomes={outcome: 1}, cost=0.0))

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The results of work on items, in order; as many run at once as the concurrency limit allows."""
        return list(self._pool.map(work, items))

    def close(self) -> None:
        """End every wait, cancel pending requests, close the connections."""
        self._closed.set()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._endpoint.close()

    def ask(self, body: Mapping[str, Any]) -> ChatCompletion:
        """The reply to a request, retried after transient failures; raises `RetriesExhausted` where all fail."""
        # The waiting thread keeps its slot, so an overloaded endpoint gets fewer requests.
        waited = 0.0
        for attempt in range(self._limits.attempts):
            try:
                return self._ask_once(body)
            except Transient as problem:
                last = problem
                wait = compute_wait(self._limits, attempt, problem.wait_seconds)
            if attempt + 1 == self._limits.attempts or waited + wait > self._limits.patience_seconds:
                break
            waited += self._wait(wait)
        raise self._give_up(last, attempt + 1)

    def _ask_once(self, body: Mapping[str, Any]) -> ChatCompletion:
        if self._closed.is_set():
            raise RetriesExhausted("the run was stopped")
        if self._refused is not None:
            raise UserError(str(self._refused))
        begun = time.monotonic()
        try:
            reply = self._endpoint.ask(body)
        except UserError as problem:
            self._refused = problem
            raise
        finally:
            self._meter.add(Usage(requests=1, request_seconds=time.monotonic() - begun, cost=0.0))
        self._meter.add(self._count_tokens(reply))
        return reply

    def _count_tokens(self, reply: ChatCompletion) -> Usage:
        tokens_in, tokens_out = reply.input_tokens or 0, reply.output_tokens or 0
        price_in, price_out = self._limits.input_price, self._limits.output_price
        priced = price_in is not None and price_out is not None
        return Usage(
            input_tokens=tokens_in,
            output_tokens=tokens_out,
            unmetered=int(reply.input_tokens is None or reply.output_tokens is None),
            cost=(tokens_in * (price_in or 0) + tokens_out * (price_out or 0)) / 1e6 if priced else float("nan"),
            served={reply.served: 1} if reply.served else {},
        )

    def _wait(self, seconds: float) -> float:
        begun = time.monotonic()
        self._closed.wait(seconds)
        taken = time.monotonic() - begun
        self._meter.add(Usage(waited_seconds=taken, cost=0.0))
        return taken

    def _give_up(self, problem: Transient, attempts: int) -> Exception:
        if not problem.reached and not self.usage.outcomes:
            return UserError(
                f"expected an endpoint at the URL in the environment, got {problem} in {attempts} attempts;"
                " start the server or correct the URL, then run the same command again"
            )
        return RetriesExhausted(f"{problem}, after {attempts} attempts")


def compute_wait(limits: Limits, attempt: int, asked_for: float | None) -> float:
    """Seconds before the next attempt: what the endpoint asked for, else doubled each time; with random jitter."""
    jitter = random.random()
    if asked_for is not None:
        return asked_for + jitter * limits.first_wait_seconds
    return min(_LONGEST_WAIT, limits.first_wait_seconds * 2.0**attempt) * (0.5 + 0.5 * jitter)
