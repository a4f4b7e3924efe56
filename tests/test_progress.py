"""Every stage shows that it lives, counts what the user has, and says the time left."""

from __future__ import annotations

import io
import multiprocessing

import pytest

from counterfoil.progress import (
    BarView,
    Extent,
    ForkedCounter,
    ItemProgress,
    NotebookBar,
    ProgressLines,
    ProgressMeter,
    ThreadCounter,
    describe_seconds,
    find_notebook_display,
    open_meter,
    show_progress,
)


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def written(extent: Extent, *looks: tuple[float, float]) -> list[str]:
    """The lines of a stage that adds so many units, then is looked at after so many seconds."""
    stream, clock = io.StringIO(), Clock()
    meter = ProgressMeter(ThreadCounter(extent.done), ProgressLines(extent, stream, clock))
    with open_meter(meter, look=None):
        for seconds, number in looks:
            clock.now += seconds
            meter.add(number)
            meter.refresh()
    return stream.getvalue().splitlines()


def test_a_stage_is_shown_before_its_first_item_is_finished() -> None:
    lines = written(Extent(stage="painting", unit="pictures", total=8), (1.0, 0), (0.5, 0), (10, 0), (10, 2))
    assert lines == [
        "painting: 0 of 8 pictures (0 %), 1 s so far",
        "painting: 0 of 8 pictures (0 %), 12 s so far",
        "painting: 2 of 8 pictures (25 %), about 1 min 4 s left",
    ]


def test_the_time_left_counts_only_the_work_of_this_session() -> None:
    extent = Extent(stage="editing", unit="pictures", total=100, done=60)
    assert written(extent, (30, 10)) == ["editing: 70 of 100 pictures (70 %), about 1 min 30 s left"]


def test_a_slow_start_does_not_count_for_ever() -> None:
    extent = Extent(stage="editing", unit="pictures", total=1000)
    looks = [(60.0, 1), *[(10.0, 20)] * 8]  # a minute for the first picture, then two pictures a second
    first, *_, last = written(extent, *looks)
    assert first == "editing: 1 of 1,000 pictures (0 %), 1 min so far"  # no guess from a single picture
    assert last == "editing: 161 of 1,000 pictures (16 %), about 7 min left"


def test_where_a_unit_takes_longer_than_a_minute_the_last_few_units_give_the_pace() -> None:
    extent = Extent(stage="painting", unit="pictures", total=20)
    assert written(extent, *[(100.0, 1)] * 10)[-1] == "painting: 10 of 20 pictures (50 %), about 16 min 40 s left"


def test_finished_work_ends_in_a_line_and_interrupted_work_does_not() -> None:
    extent = Extent(stage="editing", unit="pictures", total=4)
    assert written(extent, (0.1, 4)) == ["editing: 4 of 4 pictures, done in 0 s"]
    assert written(extent, (0.1, 3)) == []
    assert written(Extent(stage="editing", unit="pictures", total=4, done=4), (0.1, 0)) == []


def test_a_stage_that_cannot_be_counted_is_shown_where_it_takes_longer_than_a_second() -> None:
    assert written(Extent(stage="loading models"), (0.9, 0)) == []
    lines = written(Extent(stage="loading models"), (1, 0), (11, 0))
    assert lines == ["loading models: 1 s so far", "loading models: 12 s so far", "loading models: done in 12 s"]


def test_only_the_innermost_stage_is_shown() -> None:
    clock, stream = Clock(), io.StringIO()
    outer, inner = (
        ProgressMeter(ThreadCounter(0), ProgressLines(Extent(stage=name), stream, clock))
        for name in ("loading", "fetching")
    )
    with open_meter(outer, look=None), open_meter(inner, look=None):
        clock.now += 5
        outer.refresh()
        inner.refresh()
    assert stream.getvalue().splitlines() == ["fetching: 5 s so far", "fetching: done in 5 s"]


def test_an_item_counts_its_parts_and_then_what_is_left_of_it() -> None:
    meter = ProgressMeter(ThreadCounter(0), None)
    item = ItemProgress(meter, 12)
    for _ in range(5):
        item.add(0.5)
    assert meter.counter.read() == 2.5
    item.finish()
    item.add()
    assert meter.counter.read() == 12


def test_forked_processes_add_to_one_count() -> None:
    counter = ForkedCounter(2)
    process = multiprocessing.get_context("fork").Process(target=counter.add, args=(3,))
    process.start()
    process.join()
    assert counter.read() == 5


def test_pieces_of_several_pictures_are_counted_in_pictures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks = [range(32), range(32), range(6)]
    extent = Extent(stage="asking models", unit="pictures", total=100, done=30)
    monkeypatch.delenv("COUNTERFOIL_PROGRESS", raising=False)
    assert list(show_progress(chunks, extent, len)) == chunks
    assert capsys.readouterr().err.splitlines()[-1].startswith("asking models: 100 of 100 pictures, done in ")
    monkeypatch.setenv("COUNTERFOIL_PROGRESS", "off")
    assert list(show_progress(chunks, extent, len)) == chunks
    assert capsys.readouterr().err == ""


def test_times_are_said_in_words() -> None:
    assert [describe_seconds(seconds) for seconds in (0.4, 59.4, 60, 200, 7530)] == [
        "0 s", "59 s", "1 min", "3 min 20 s", "2 h 5 min",
    ]  # fmt: skip


class Cell:
    """What a cell of a notebook shows: `display` as IPython has it, and the handle that it returns."""

    def __init__(self) -> None:
        self.shown: list[BarView] = []

    def display(self, view: BarView, *, display_id: bool) -> Cell:
        assert display_id
        self.shown.append(view)
        return self

    def update(self, view: BarView) -> None:
        self.shown[-1] = view


def drawn(extent: Extent, *looks: tuple[float, float]) -> list[BarView]:
    cell, clock = Cell(), Clock()
    meter = ProgressMeter(ThreadCounter(extent.done), NotebookBar(extent, cell.display, clock))
    with open_meter(meter, look=None):
        for seconds, number in looks:
            clock.now += seconds
            meter.add(number)
            meter.refresh()
    return cell.shown


def test_a_notebook_has_one_bar_for_a_stage_that_is_drawn_again() -> None:
    extent = Extent(stage="editing <photos>", unit="pictures", total=8)
    (half,) = drawn(extent, (0.5, 0), (10, 2), (5, 2))
    assert repr(half) == "editing <photos>: 4 of 8 pictures (50 %), about 16 s left"
    assert half._repr_html_().startswith('<div><progress value="4" max="8"></progress> editing &lt;photos&gt;: 4 of 8')
    (whole,) = drawn(extent, (0.5, 0), (10, 8))
    assert (repr(whole), whole.count) == ("editing <photos>: 8 of 8 pictures, done in 10 s", 8)


def test_a_brief_stage_leaves_nothing_in_a_notebook() -> None:
    extent = Extent(stage="judging")
    assert drawn(extent, (0.5, 0)) == []
    (gone,) = drawn(extent, (0.5, 0), (3, 0))
    assert gone._repr_html_() == ""


def test_outside_a_notebook_there_is_no_cell() -> None:
    assert find_notebook_display() is None
