"""A vision-language model over HTTP, against a server that behaves and misbehaves."""

from __future__ import annotations

import json
import logging
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import numpy as np
import pytest

from counterfoil.errors import UserError
from counterfoil.models.endpoint import Limits, read_endpoint_settings
from counterfoil.models.inference import bind_labels, predict, predict_again, should_retry
from counterfoil.models.request_retry import compute_wait
from counterfoil.models.vlm import VisionLanguageModel, load_vlm
from counterfoil.types import Prediction, Usage
from vlm_server import (
    Act,
    Exchange,
    FakeEndpoint,
    break_off,
    choose,
    dribble,
    fail,
    hang,
    picture,
    raw,
    reset,
    say,
    serving,
    variant,
)  # fmt: skip

KEY = "sk-secret-0123456789abcdef"
Load = Callable[..., VisionLanguageModel]


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with serving() as started:
        yield started


@pytest.fixture
def load(endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Loads a model of two classes, with quick retries."""
    loaded: list[VisionLanguageModel] = []
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    settings = {
        "URL": endpoint.url,
        "KEY": KEY,
        "FIRST_WAIT_SECONDS": "0.001",
        "ATTEMPTS": "4",
        "PATIENCE_SECONDS": "60",
    }

    def make(query: str = "", **changes: str) -> VisionLanguageModel:
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        for name, value in {**settings, **changes}.items():
            monkeypatch.setenv(f"COUNTERFOIL_VLM_{name}", value)
        place = f"tester/vlm:7b?labels=pen,wok{query}"
        loaded.append(load_vlm(f"vlm:{place}", place))
        return loaded[-1]

    yield make
    endpoint.released.set()
    for model in loaded:
        model.close()


def ask(model: VisionLanguageModel, count: int = 1) -> list[Prediction]:
    """The truth is always a pen."""
    return predict(model, [variant(n) for n in range(count)], [picture(n) for n in range(count)], batch_size=16)


def test_right_and_wrong_answers_are_scored(endpoint: FakeEndpoint, load: Load) -> None:
    endpoint.acts = {0: [say("A pen.")], 1: [say("It is a WOK")]}
    right, wrong = ask(load(), 2)
    assert right == Prediction("v0", ("pen",), (1.0,), 1.0, "scored", "A pen.")
    assert wrong == Prediction("v1", ("wok",), (1.0,), 0.0, "scored", "It is a WOK")


def test_the_request_is_that_of_the_protocol(endpoint: FakeEndpoint, load: Load) -> None:
    ask(load("&order=faithful"))
    body = endpoint.exchanges[0].body
    content = body.pop("messages")[0]["content"]
    assert body == {"model": "tester/vlm:7b", "max_tokens": 100, "temperature": 0.0}
    assert content[1]["text"] == ("What is the main object in this image? Choose from the following list: pen, wok.")
    assert content[0]["image_url"]["url"].startswith("data:image/jpeg;base64,")
    assert endpoint.keys == {f"Bearer {KEY}"}


def test_settings_of_newer_models_reach_the_request(endpoint: FakeEndpoint, load: Load) -> None:
    ask(load("&token_key=max_completion_tokens&answer_tokens=2000&temperature=default"))
    body = endpoint.exchanges[0].body
    assert body["max_completion_tokens"] == 2000
    assert not {"max_tokens", "temperature"} & set(body)


def test_a_large_picture_is_shrunk_and_a_small_one_sent_as_it_is(endpoint: FakeEndpoint, load: Load) -> None:
    rng = np.random.default_rng(0)
    large = rng.integers(0, 256, (300, 900, 3), np.uint8)
    small = rng.integers(0, 256, (30, 50, 3), np.uint8)
    model = load("&format=png&longest_side=256")
    model.predict([variant(0), variant(1)], [large, small])
    arrived = {exchange.image.size: exchange for exchange in endpoint.exchanges}
    assert set(arrived) == {(256, 85), (50, 30)}
    assert np.array_equal(np.asarray(arrived[50, 30].image), small)  # PNG: to the bit


OUTCOMES: list[tuple[str, list[Act], str, int]] = [
    ("right", [say("pen")], "scored", 1),
    ("in parts", [say([{"type": "text", "text": "a pen"}])], "scored", 1),
    ("rambling, both named", [say("It could be a pen, or a wok, or both.")], "unparsed", 1),
    ("rambling, neither named", [say("What a lovely picture of a table " * 200)], "unparsed", 1),
    ("cut off by its length", [say("The main object in this", finish_reason="length")], "unparsed", 1),
    ("nothing said", [say(None)], "unparsed", 1),
    ("refused in words", [say("I'm sorry, I can't help with that.")], "refused", 1),
    ("refused by field", [say(None, refusal="No pen for you.")], "refused", 1),
    ("stopped by a filter", [say("a pen", finish_reason="content_filter")], "refused", 1),
    ("stopped before", [fail(400, {"code": "content_filter", "message": "no"})], "refused", 1),
    ("flagged by a gateway", [fail(403, {"code": 403, "metadata": {"flagged_input": "x"}})], "refused", 1),
    ("too many, then right", [fail(429, {"message": "slow down"}, Retry_After="0"), say("pen")], "scored", 2),
    ("down thrice, then right", [fail(500), fail(502), fail(503), say("pen")], "scored", 4),
    ("cut JSON, then right", [raw(b'{"choices": [{"message": {"con'), say("pen")], "scored", 2),
    ("half the bytes, then right", [break_off, say("pen")], "scored", 2),
    ("reset, then right", [reset, say("pen")], "scored", 2),
    ("no completion, then right", [raw(b'{"choices": []}'), raw(b"[]"), raw(b"<html>"), say("pen")], "scored", 4),
    ("failure in disguise", [raw(b'{"error": {"code": 429, "message": "busy"}}'), say("pen")], "scored", 2),
    ("always too many", [fail(429, {"message": "slow down"})], "error", 4),
    ("always down", [fail(500)], "error", 4),
    ("always cut", [raw(b'{"choices": [{"mess')], "error", 4),
    ("always half", [break_off], "error", 4),
    ("always reset", [reset], "error", 4),
    ("endless reply", [raw(b" " * (5 << 20))], "error", 4),
    ("bad request", [fail(400, {"message": "image too odd"})], "error", 1),
    ("unprocessable", [fail(422, "no")], "error", 1),
    ("must wait too long", [fail(429, {"message": "much later"}, Retry_After="100")], "error", 1),
]


def test_every_misbehaviour_has_its_outcome_and_its_number_of_requests(endpoint: FakeEndpoint, load: Load) -> None:
    endpoint.acts = {number: acts for number, (_, acts, _, _) in enumerate(OUTCOMES)}
    model = load()
    found = ask(model, len(OUTCOMES))
    table = {row[0]: (row[2], row[3]) for row in OUTCOMES}
    requests = endpoint.requests()
    assert {row[0]: (found[n].outcome, requests[n]) for n, row in enumerate(OUTCOMES)} == table
    assert Counter(prediction.outcome for prediction in found) == model.usage.outcomes
    assert model.usage.outcomes == {"scored": 9, "unparsed": 4, "refused": 5, "error": 9}
    assert model.usage.requests == sum(row[3] for row in OUTCOMES)


def test_what_was_not_scored_is_never_a_wrong_answer(endpoint: FakeEndpoint, load: Load) -> None:
    endpoint.acts = {number: acts for number, (_, acts, _, _) in enumerate(OUTCOMES)}
    for prediction in ask(load(), len(OUTCOMES)):
        if prediction.outcome != "scored":
            assert not prediction.ranked
            assert not prediction.scores
            assert np.isnan(prediction.true_score)


def test_an_error_says_why(endpoint: FakeEndpoint, load: Load) -> None:
    endpoint.acts = {0: [fail(500, {"message": "disk full"})], 1: [fail(400, {"message": "image too odd"})], 2: [reset]}
    texts = [prediction.text for prediction in ask(load(), 3)]
    assert texts[:2] == ["status 500 disk full, after 4 attempts", "status 400 image too odd"]
    assert texts[2].startswith("the connection broke off (")


@pytest.mark.parametrize("act", [hang, dribble])
def test_an_answer_that_does_not_come_in_time_is_an_error(endpoint: FakeEndpoint, load: Load, act: Act) -> None:
    endpoint.acts = {0: [act]}
    model = load(TIMEOUT_SECONDS="0.2", ATTEMPTS="2")
    (found,) = ask(model)
    assert (found.outcome, found.text) == ("error", "no answer within 0.2 s, after 2 attempts")
    assert model.usage.requests == 2


def test_after_an_answer_that_did_not_come_the_next_one_counts(endpoint: FakeEndpoint, load: Load) -> None:
    endpoint.acts = {0: [hang, say("pen")]}
    (found,) = ask(load(TIMEOUT_SECONDS="2"))  # long enough for a good answer, however busy the machine
    assert found.outcome == "scored"
    assert endpoint.requests() == {0: 2}


def test_waits_double_are_bounded_and_not_in_step() -> None:
    limits = Limits()
    for attempt in range(10):
        waits = [compute_wait(limits, attempt, None) for _ in range(200)]
        bound = min(60, 2**attempt)
        assert bound / 2 <= min(waits) < max(waits) <= bound
        assert max(waits) - min(waits) > bound / 4


def test_what_the_endpoint_asks_for_is_waited(endpoint: FakeEndpoint, load: Load) -> None:
    assert min(compute_wait(Limits(), 0, 7.0) for _ in range(100)) >= 7
    soon = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=200), usegmt=True)
    past = format_datetime(datetime.now(timezone.utc) - timedelta(hours=3), usegmt=True)
    endpoint.acts = {
        0: [fail(429, Retry_After=soon), say("pen")],
        1: [fail(429, Retry_After=past), say("pen")],
        2: [fail(429, Retry_After="soon"), say("pen")],
        3: [fail(429, Retry_After="0.05"), say("pen")],
    }
    model = load()
    assert [prediction.outcome for prediction in ask(model, 4)] == ["error", "scored", "scored", "scored"]
    assert model.usage.waited_seconds >= 0.05


@pytest.mark.parametrize(
    ("act", "complaint"),
    [
        (fail(401, {"message": f"Incorrect API key provided: {KEY}"}), "401 Unauthorized"),
        (fail(404, {"message": "no such model"}), "404 Not Found"),
        (fail(307, Location="http://127.0.0.1:1/"), "307"),
        (fail(429, {"code": "insufficient_quota", "message": "pay"}), "the quota is spent"),
    ],
)
def test_a_wrong_door_stops_the_run_at_once(endpoint: FakeEndpoint, load: Load, act: Act, complaint: str) -> None:
    endpoint.otherwise = act
    model = load(CONCURRENCY="1")
    with pytest.raises(UserError, match=complaint) as stopped:
        ask(model, 20)
    assert "key in COUNTERFOIL_VLM_KEY" in str(stopped.value)
    with pytest.raises(UserError, match=complaint):  # another thread's photo: not even one request
        ask(model)
    assert len(endpoint.exchanges) == 1


def test_an_endpoint_that_was_never_there_stops_the_run(load: Load) -> None:
    with pytest.raises(UserError, match="expected an endpoint at the URL"):
        ask(load(URL="http://127.0.0.1:1/v1"))


def test_an_endpoint_that_goes_away_later_is_an_error(endpoint: FakeEndpoint, load: Load) -> None:
    with serving() as other:
        model = load(URL=other.url)
        assert ask(model)[0].outcome == "scored"
    assert ask(model)[0].outcome == "error"


def test_the_key_appears_nowhere(endpoint: FakeEndpoint, load: Load, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint.acts = {
        0: [say(f"a pen, and your key is {KEY}")],
        1: [fail(400, {"message": f"bad header: Bearer {KEY} at {endpoint.url}/chat/completions"})],
        2: [fail(500, {"message": f"crash with {KEY}"})],
        3: [fail(401, {"message": f"wrong key {KEY[:9]}"})],
    }
    model = load()
    found = ask(model, 3)
    with pytest.raises(UserError) as stopped:
        model.predict([variant(3)], [picture(3)])
    seen = [repr(found), repr(model), str(vars(model.options)), model.digest, model.usage.sentence, caplog.text,
            "".join(traceback.format_exception(stopped.value))]  # fmt: skip
    assert endpoint.keys == {f"Bearer {KEY}"}
    assert not [text for text in seen if KEY in text or KEY[:9] in text]
    assert "127.0.0.1" not in found[1].text


def test_without_a_key_none_is_sent(endpoint: FakeEndpoint, load: Load) -> None:
    ask(load(KEY=""))
    assert endpoint.keys == {None}


def test_the_key_of_one_service_is_not_sent_to_another() -> None:
    openai = {"OPENAI_API_KEY": "openai", "OPENAI_BASE_URL": "https://one.example/v1"}
    assert read_endpoint_settings(openai).key == "openai"
    assert read_endpoint_settings({**openai, "COUNTERFOIL_VLM_URL": "http://two.example/v1"}).key == ""
    assert read_endpoint_settings({**openai, "COUNTERFOIL_VLM_KEY": "own"}).key == "own"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("http://h:8/v1", "http://h:8/v1/chat/completions"),
        ("http://h:8/v1/", "http://h:8/v1/chat/completions"),
        ("http://h", "http://h/chat/completions"),
        ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
        ("https://h/v1?api-version=2", "https://h/v1/chat/completions?api-version=2"),
    ],
)
def test_the_base_url_may_be_written_in_several_ways(given: str, wanted: str) -> None:
    assert str(read_endpoint_settings({"COUNTERFOIL_VLM_URL": given}).url) == wanted


@pytest.mark.parametrize(
    ("environment", "complaint"),
    [
        ({}, "expected the endpoint's base URL in COUNTERFOIL_VLM_URL"),
        ({"COUNTERFOIL_VLM_URL": "localhost:8000/hidden"}, "expected a URL with http"),
        ({"COUNTERFOIL_VLM_URL": "http://me:hidden@h/v1"}, "without user and password"),
        ({"COUNTERFOIL_VLM_URL": "http://h:hidden/v1"}, "expected a URL such as"),
        ({"COUNTERFOIL_VLM_URL": "http://h", "COUNTERFOIL_VLM_KEY": "hid\nden"}, "plain characters"),
        ({"COUNTERFOIL_VLM_URL": "http://h", "COUNTERFOIL_VLM_KEY": "hiddén"}, "plain characters"),
        ({"COUNTERFOIL_VLM_URL": "http://h", "COUNTERFOIL_VLM_CONCURRENCY": "0"}, "COUNTERFOIL_VLM_CONCURRENCY: .*'0'"),
        ({"COUNTERFOIL_VLM_URL": "http://h", "COUNTERFOIL_VLM_ATTEMPTS": "ten"}, "COUNTERFOIL_VLM_ATTEMPTS: .*'ten'"),
    ],
)
def test_a_wrong_environment_is_said_without_repeating_secrets(environment: dict[str, str], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint) as refused:
        read_endpoint_settings(environment)
    assert "hid" not in str(refused.value)


def test_the_bound_on_concurrency_is_reached_and_kept_over_all_threads(endpoint: FakeEndpoint, load: Load) -> None:
    lock, full = threading.Lock(), threading.Event()
    active, most = 0, 0

    def crowd(exchange: Exchange) -> None:
        nonlocal active, most
        with lock:
            active += 1
            most = max(most, active)
        if active >= 3:
            full.set()
        full.wait(60)
        with lock:
            active -= 1
        say("pen")(exchange)

    endpoint.otherwise = crowd
    model = load(CONCURRENCY="3")
    with ThreadPoolExecutor(4) as photos:
        found = [prediction for part in photos.map(lambda _: ask(model, 5), range(4)) for prediction in part]
    assert most == 3
    assert len(found) == 20
    assert {prediction.outcome for prediction in found} == {"scored"}


def test_answers_come_in_the_order_of_the_variants(endpoint: FakeEndpoint, load: Load) -> None:
    endpoint.otherwise = choose(lambda exchange: f"pen {exchange.number}")
    found = ask(load(CONCURRENCY="8"), 24)
    assert [(prediction.variant_id, prediction.text) for prediction in found] == [
        (f"v{number}", f"pen {number}") for number in range(24)
    ]


def test_the_order_in_the_question_is_drawn_and_comes_again(endpoint: FakeEndpoint, load: Load) -> None:
    endpoint.otherwise = choose(lambda exchange: exchange.choices[0])  # a model that always takes the first
    first, again = ask(load(), 30), ask(load(), 30)
    assert first == again
    assert 0 < sum(prediction.true_score for prediction in first) < 30
    assert sum(prediction.true_score for prediction in ask(load("&order=faithful"), 30)) == 30


def test_a_rerun_asks_only_what_ended_in_an_error(endpoint: FakeEndpoint, load: Load) -> None:
    variants = [variant(number) for number in range(8)]
    endpoint.acts = {2: [fail(503)], 5: [reset], 6: [say("I cannot help.")], 7: [say("a table")]}
    model = load()
    earlier = ask(model, 8)
    assert should_retry(model, earlier)
    endpoint.acts, endpoint.otherwise = {}, say("wok")
    endpoint.forget()
    made: list[str] = []

    def image_of(one: object) -> object:
        made.append(one.id)  # type: ignore[attr-defined]
        return picture(int(made[-1][1:]))

    later = predict_again(model, variants, earlier, image_of)  # type: ignore[arg-type]
    assert endpoint.requests() == {2: 1, 5: 1}
    assert made == ["v2", "v5"]
    assert [prediction.outcome for prediction in later] == ["scored"] * 6 + ["refused", "unparsed"]
    assert [later[n] for n in (0, 1, 3, 4, 6, 7)] == [earlier[n] for n in (0, 1, 3, 4, 6, 7)]
    assert later[2].ranked == later[5].ranked == ("wok",)
    assert not should_retry(model, later)


def test_tokens_cost_and_time_are_counted(endpoint: FakeEndpoint, load: Load) -> None:
    endpoint.acts = {1: [fail(500), say("pen")], 2: [say("pen", usage=None)]}
    model = load(INPUT_PRICE="2.5", OUTPUT_PRICE="10")
    ask(model, 4)
    usage = model.usage
    assert (usage.questions, usage.requests, usage.unmetered) == (4, 5, 1)
    assert (usage.input_tokens, usage.output_tokens) == (300, 21)
    assert usage.cost == pytest.approx(300 * 2.5e-6 + 21 * 10e-6)
    assert usage.served == {"served-1": 4}
    assert usage.request_seconds > 0
    assert "at least 300 + 21 tokens, cost at least 0.0010" in usage.sentence
    twice = usage.plus(usage)
    assert (twice.requests, twice.outcomes) == (10, {"scored": 8})
    assert twice.cost == pytest.approx(2 * usage.cost)
    assert Usage.of(json.loads(json.dumps(usage.record(), allow_nan=False))) == usage


def test_without_prices_the_cost_is_unknown_not_nothing(load: Load) -> None:
    model = load()
    ask(model)
    assert np.isnan(model.usage.cost)
    assert "cost unknown" in model.usage.sentence
    assert np.isnan(Usage.of(json.loads(json.dumps(model.usage.record(), allow_nan=False))).cost)
    assert "nothing asked" in Usage().sentence


def test_wrong_choices_come_from_the_photos_classes(endpoint: FakeEndpoint, load: Load) -> None:
    place = "m?labels=imagenet-d"
    load()  # sets the environment
    model = load_vlm(f"vlm:{place}", place)
    narrow = bind_labels(model, ["wok", "pen", "tie"])
    narrow.predict([variant(n) for n in range(20)], [picture(n) for n in range(20)])
    offered = {name for exchange in endpoint.exchanges for name in exchange.choices}
    assert offered == {"pen", "wok", "tie"}
    assert narrow.digest != model.digest
    model.close()
    with pytest.raises(UserError, match="no column for 1 of them: 'unicorn'"):
        bind_labels(model, ["pen", "unicorn"])


def test_as_a_classifier_it_chooses_among_all_labels(endpoint: FakeEndpoint, load: Load) -> None:
    endpoint.acts = {0: [say("the wok")], 1: [say("both: pen, wok")], 2: [fail(500)]}
    model = load()
    scores = model([picture(0), picture(1), picture(2)])
    assert scores[0].tolist() == [0, 1]
    assert np.isnan(scores[1:]).all()
    assert endpoint.exchanges[0].choices == ["pen", "wok"]


def test_the_digest_covers_what_shapes_an_answer_and_nothing_else(load: Load) -> None:
    assert load().digest == load(CONCURRENCY="9", URL="http://127.0.0.1:1/v1", KEY="other").digest
    others = ["&order=faithful", "&seed=1", "&format=png", "&match=words", "&answer_tokens=5", "&temperature=1"]
    assert len({load(query).digest for query in ["", *others]}) == 1 + len(others)


def test_a_closed_line_ends_its_waits(endpoint: FakeEndpoint, load: Load) -> None:
    asked = threading.Event()

    def busy(exchange: Exchange) -> None:
        fail(429, {"message": "later"}, Retry_After="50")(exchange)
        asked.set()

    endpoint.otherwise = busy
    model = load()
    with ThreadPoolExecutor(1) as other:
        told = other.submit(ask, model)
        asked.wait()
        model.close()
        assert told.result(timeout=300)[0].outcome == "error"
