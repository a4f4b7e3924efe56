"""The records and protocols that all packages use.

Records are frozen, can be written as Parquet and JSON, and hold no pixels; only `Picture` does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray


Attribute: TypeAlias = str  # open: an edit of another package may bring its own
ATTRIBUTES: tuple[Attribute, ...] = (
    "original", "control", "background", "presence", "size", "position", "direction", "colour", "blur", "texture",
    "material", "occlusion", "text", "second-object", "light", "shape", "corruption", "combination",
)  # fmt: skip
# The attributes of doubled pictures: the same edit made with another fill or another mask. They measure the tool and
# are no rows of their own: no finding, accuracy, gallery or chart counts them.
SECOND_FILL, GROWN_MASK, SHRUNK_MASK = "second-fill", "grown-mask", "shrunk-mask"
TOOL_CHECKS: frozenset[Attribute] = frozenset({SECOND_FILL, GROWN_MASK, SHRUNK_MASK})
PredictionOutcome: TypeAlias = Literal["scored", "unparsed", "refused", "error"]
DonorRule: TypeAlias = Literal["other", "same", "next", "any"]

Item = TypeVar("Item")
Output = TypeVar("Output")


class EditLevel(NamedTuple):
    """An edit at one level, by the names in the tables."""

    edit: str
    level: str

    def __str__(self) -> str:
        return f"{self.edit} {self.level}".strip()


class Picture(NamedTuple):
    """The only type that holds pixels."""

    image: NDArray[np.uint8]  # (height, width, 3), RGB
    alpha: NDArray[np.uint8]  # (height, width), 255 on the object, 0 off it, between at soft edges


class Provenance(NamedTuple):
    """Where a photo comes from and what may be done with it; empty where its source does not say."""

    origin: str = ""
    licence: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """A photo with its label, unedited."""

    id: str  # "<label folder>/<stem>", unique in its source
    label: str
    image: str  # path of the photo, relative to its source where that is a folder
    mask: str | None  # path of the mask; None where the segmenter has to make one
    digest: str  # sha256 over the bytes of photo and mask
    origin: str = ""
    licence: str = ""

    @property
    def provenance(self) -> Provenance:
        """Origin and licence."""
        return Provenance(self.origin, self.licence)


@dataclass(frozen=True)
class Variant:
    """One picture shown to models: an edit of a sample, or the original."""

    id: str
    sample_id: str | None
    label: str
    attribute: Attribute
    edit: str  # registered name of the edit: "background-swap"
    level: str
    settings: str  # JSON of the edit's fields, keys sorted
    seed: int  # 64 bits from the content, independent of the order of work
    donor_id: str | None = None  # the sample that lends its background, where the edit takes one
    replicate: int = 0
    version: int = 1  # of the edit that made the picture; another version makes other pixels


@dataclass(frozen=True)
class StoredVariant:
    """A finished picture of a collection, and its path there."""

    variant: Variant
    file: str  # path within the collection
    sha256: str = ""  # of the pixels, where they were hashed when the picture was made
    sample_digest: str = ""  # of the photo it was made from, where known
    object_share: float = float("nan")  # percent of the picture that the object covers
    photos: tuple[Provenance, ...] = ()  # of its photo, then of the donor; empty where the collection does not say


@dataclass(frozen=True)
class MiningResult:
    """The pictures that mining kept of a workspace, and the models that chose them."""

    kept: tuple[str, ...]  # variant ids
    rule: str  # in words: "wrong for at least 2 of 3 surrogates, right on the original"
    surrogates: Mapping[str, str]  # model name to the digest of its weights
    workspace_digest: str


@dataclass(frozen=True)
class Verdict:
    """One person's answer to one question about one picture."""

    variant_id: str
    annotator: str
    question: str  # question id
    answer: str
    seconds: float  # from showing the picture to the answer
    time: str = ""  # when it was given, ISO 8601
    version: int = 1  # a correction is a new row with the next number; the highest counts
    control: Literal["", "good", "bad", "repeat"] = ""  # why a hidden control was shown; "" for the work itself


@dataclass(frozen=True)
class Decision:
    """The combined decision of all annotators on one picture."""

    variant_id: str
    kept: bool
    answers: Mapping[str, Mapping[str, int]]  # question id -> answer -> how many gave it
    decided: Mapping[str, str]  # question id -> the answer that the rule gives, "undecided" where it gives none


@dataclass(frozen=True, kw_only=True)
class AnnotatorRecord:
    """How one anonymous annotator did on the hidden controls."""

    answers: int  # to questions about the work itself
    controls: int  # pictures known to be good or bad
    controls_right: int
    repeats: int  # questions about a picture shown again
    repeats_same: int
    median_seconds: float  # per picture
    counted: bool = True  # False where the answers were left out


@dataclass(frozen=True, kw_only=True)
class VerificationResult:
    """The annotators' decisions on a workspace, one per picture that has enough answers."""

    rule: str
    questions: Mapping[str, str]  # question id -> its words
    annotators: int
    agreement: Mapping[str, Mapping[str, float]]  # question id -> measure -> value
    decisions: tuple[Decision, ...]
    workspace_digest: str
    records: tuple[AnnotatorRecord, ...] = ()  # one per annotator, in no order of names
    doubts: tuple[str, ...] = ()  # reasons to doubt the answers, one sentence each


@dataclass(frozen=True)
class Prediction:
    """One model's answer to one variant."""

    variant_id: str
    ranked: tuple[str, ...]  # labels, best first
    scores: tuple[float, ...]  # probabilities of `ranked`
    true_score: float  # probability of the true label
    outcome: PredictionOutcome = "scored"
    text: str = ""  # what a vision-language model wrote, or why there is no answer


@dataclass(frozen=True)
class Skipped:
    """A picture that could not be used, and why; every one is reported."""

    sample_id: str
    stage: Literal["source", "segment", "edit", "evaluate"]
    edit: str  # "" where the whole photo was lost
    reason: str


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """The preprocessing of a classifier; printed and stored with every run."""

    size: tuple[int, int]  # (height, width) of the network's input
    resize: int | None  # shorter side before the centre crop; None squeezes the whole picture to `size`
    interpolation: Literal["bilinear", "bicubic", "lanczos"] = "bilinear"
    mean: tuple[float, float, float] = (123.675, 116.28, 103.53)  # in levels 0..255
    std: tuple[float, float, float] = (58.395, 57.12, 57.375)
    colour_order: Literal["RGB", "BGR"] = "RGB"
    layout: Literal["NCHW", "NHWC"] = "NCHW"


@dataclass(frozen=True, kw_only=True)
class PhotoInput(Preprocessing):
    """Preprocessing inside the network, which takes the photo in levels 0..255; the rest describes its first view."""

    takes: str = "the photo at its own size"


@dataclass(frozen=True)
class Drop:
    """How much accuracy one edit at one level costs one model; accuracies in percent, drops in points."""

    model: str
    attribute: Attribute
    edit: str
    level: str
    n: int
    accuracy_original: float
    accuracy_control: float
    accuracy: float
    drop: float
    ci_low: float
    ci_high: float
    drop_vs_control: float
    p_value: float  # of `drop_vs_reference`
    object_share: float = float("nan")  # mean share of the picture that the object covers, in percent
    _: KW_ONLY
    reference: str = "original"  # what the edit is compared with: "original", or an edit and its level, "size 0.05"
    n_reference: int = 0  # photos scored under the edit and under its reference: `drop_vs_reference` and p are of them
    accuracy_reference: float = float("nan")
    drop_vs_reference: float = float("nan")  # findings and verdicts are about this one
    reference_low: float = float("nan")  # its interval: 95 % for all rows of a family together, tool included
    reference_high: float = float("nan")
    tool_uncertainty: float = float("nan")  # points by which two fills or masks differ; 0 where neither shows
    family: str = ""  # the tests that are corrected together, see statistics/families.py
    p_adjusted: float = float("nan")  # `p_value` corrected within its family
    controls: str = ""  # that the interval allows for: "control", "control + fill-control", empty where none applies
    drop_vs_fill_control: float = float("nan")  # counted from `fill-control`, which fills a hole beside the object


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The usage of an endpoint in one session; `plus` adds up the sessions of a resumed run."""

    questions: int = 0
    requests: int = 0  # more than questions where requests were retried
    input_tokens: int = 0
    output_tokens: int = 0
    unmetered: int = 0  # replies that did not say how many tokens they took
    request_seconds: float = 0.0  # over all requests, also those at the same time
    waited_seconds: float = 0.0  # before further attempts
    cost: float = math.nan  # NaN where no prices were given
    outcomes: Mapping[str, int] = field(default_factory=dict)
    served: Mapping[str, int] = field(default_factory=dict)  # the models that the endpoint says it used

    def plus(self, other: Usage) -> Usage:
        """The sum of both."""
        mine, theirs = asdict(self), asdict(other)
        return Usage(**{name: _sum(value, theirs[name]) for name, value in mine.items()})

    def record(self) -> dict[str, Any]:
        """As JSON, which has no NaN: an unknown cost is null."""
        return {**asdict(self), "cost": None if math.isnan(self.cost) else self.cost}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Usage:
        """The usage that a record holds."""
        return cls(**{**record, "cost": math.nan if record["cost"] is None else record["cost"]})

    @property
    def sentence(self) -> str:
        """The usage in one sentence."""
        at_least = "at least " if self.unmetered else ""
        outcomes = ", ".join(f"{n:,} {outcome}" for outcome, n in sorted(self.outcomes.items())) or "nothing asked"
        cost = "cost unknown (no prices given)" if math.isnan(self.cost) else f"cost {at_least}{self.cost:.4f}"
        return (
            f"{self.questions:,} questions ({outcomes}) in {self.requests:,} requests, {at_least}"
            f"{self.input_tokens:,} + {self.output_tokens:,} tokens, {cost}, {self.request_seconds:.0f} s of requests,"
            f" {self.waited_seconds:.0f} s of waiting"
        )


def _sum(mine: Any, theirs: Any) -> Any:
    return dict(Counter(mine) + Counter(theirs)) if isinstance(mine, dict) else mine + theirs


class Source(Protocol):
    """A source of photos: lists its samples, reads pixels on demand; `SourceBase` has the defaults."""

    @property
    def images(self) -> str | Path:
        """The address it was opened from, kept in the record of a run to find the photos again."""

    @property
    def masks(self) -> str | Path | None:
        """The separate folder of masks; None where there is none."""

    @property
    def labels(self) -> Sequence[str]:
        """The classes it names, whether or not a photo of them can be used; empty where it cannot tell."""

    def samples(self) -> tuple[Sequence[Sample], Sequence[Skipped]]:
        """Every sample in a fixed order, and what was skipped."""

    def read(self, sample: Sample) -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
        """The photo, upright, and its mask where there is one; raises `Unusable` where that fails."""


class SourceBase:
    """Defaults of a `Source`; its author writes `images`, `samples` and `read`."""

    @cached_property
    def masks(self) -> str | Path | None:
        """None: no separate folder."""
        return None

    @cached_property
    def labels(self) -> Sequence[str]:
        """Empty: unknown before the samples are listed."""
        return ()


class Classifier(Protocol):
    """The minimum that users write: pictures in, one probability per label out; `python:` makes a `Model` of it."""

    @property
    def labels(self) -> Sequence[str]:
        """The name of each column of the scores."""

    def __call__(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """Probabilities, (len(images), len(labels))."""


class Model(Classifier, Protocol):
    """A model as a run sees it; `ModelBase` has defaults for all but the first three and the scores."""

    @property
    def name(self) -> str:
        """The address it was loaded from, with changes such as the precision."""

    @property
    def preprocessing(self) -> Preprocessing | None:
        """What is done to a picture before the network sees it; None where that is not known."""

    @property
    def digest(self) -> str:
        """Hash of the weights."""

    @property
    def details(self) -> tuple[object, ...]:
        """What its answers depend on besides weights, preprocessing and labels, such as the runtime."""

    @property
    def identity(self) -> str:
        """Hash of all that its answers depend on; answers of another identity are not reused."""

    @property
    def device(self) -> str:
        """Where it runs, as torch names devices: cpu, cuda, cuda:1."""

    @property
    def parameters(self) -> int | None:
        """How many numbers were learnt; None where that is not known."""

    @property
    def prepared_by(self) -> str:
        """Which code prepares the pictures, in words; empty where that is not known."""

    @property
    def scoring(self) -> str:
        """How the columns compete, in words."""

    @property
    def note(self) -> str:
        """A note on its run, printed at the end; empty where there is none."""

    @property
    def usage(self) -> Usage | None:
        """The usage of an endpoint; None where there is none."""

    @property
    def retryable(self) -> bool:
        """Whether asking again may help after an error."""

    @property
    def gives_scores(self) -> bool:
        """Whether the columns of its scores may be regrouped; False for a model that answers in `predict` alone."""

    @property
    def base(self) -> Model:
        """The model whose columns are those of the network, before any are regrouped; itself where none are."""

    def regroup(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """The scores of this model's labels, (n, labels), from those of its `base`, (n, columns)."""

    def try_preprocessing(
        self, images: Sequence[NDArray[np.uint8]], preprocessing: Preprocessing
    ) -> NDArray[np.float32] | None:
        """The scores that another preprocessing gives; None where the preprocessing is not ours to change."""

    def predict(self, variants: Sequence[Variant], images: Sequence[NDArray[np.uint8]]) -> list[Prediction]:
        """One prediction per variant, in order; where there is no score, the outcome says why."""

    def among(self, labels: Sequence[str]) -> Model:
        """The same model for photos of these labels; a model that is asked to choose chooses among them."""

    def offering(self, distractors: Mapping[str, str]) -> Model:
        """The same model with these distractors, by sample, where it is asked to choose."""


class Engine(Protocol):
    """Runs work in any order, each item exactly once."""

    def map(self, work: Callable[[Item], Output], items: Iterable[Item]) -> Iterator[Output]:
        """The results of `work` over `items` as they become ready."""


@dataclass(frozen=True, kw_only=True)
class SetupTrial:
    """Another set-up of a model (order of labels, preprocessing), tried on unedited photos beside the given one."""

    change: str  # in words: "the colours in the order BGR"
    remedy: str  # how to say it right
    photos: int
    gained: int  # photos that are right with it and wrong as given
    lost: int  # photos that are right as given and wrong with it
    right: int  # photos that are right with it
    later_gained: int = 0  # of these, on the photos that came after it was chosen for a closer look
    later_lost: int = 0
    far: float = 10.0  # the lead in points from which the given set-up is called wrong

    @property
    def gap(self) -> float:
        """By how many points of accuracy it is ahead of the given set-up."""
        return 100 * (self.gained - self.lost) / self.photos if self.photos else math.nan


@dataclass(frozen=True, kw_only=True)
class SanityRecord:
    """What was tried at the start of a run to find out whether a model is set up as it was trained."""

    photos: int = 0  # unedited photos that were shown; 0 where nothing could be tried
    right: int = 0  # with the set-up as given
    classes: int = 0  # columns that compete; 0 where that is not known
    tried: int = 0  # other set-ups, also those that are not listed
    chosen: int = 0  # of these, for a closer look with more photos
    trials: tuple[SetupTrial, ...] = ()  # best first


@dataclass(frozen=True, kw_only=True)
class Run:
    """The record of one run or evaluation; stored as run.json beside its tables."""

    command: str
    images: str
    masks: str | None
    recipe: str
    recipe_digest: str
    seed: int
    samples: int
    models: tuple[str, ...]
    model_digests: Mapping[str, str]
    preprocessing: Mapping[str, Preprocessing | None]
    environment: Mapping[str, str] = field(default_factory=dict)
    scoring: str = "all"  # which columns compete, and over which benchmark's classes
    collection: str = ""  # the finished pictures that were shown, by name; "" where photos were edited
    collection_digest: str = ""
    surrogates: Mapping[str, str] = field(default_factory=dict)  # chose the pictures; with digests of the weights
    notes: tuple[str, ...] = ()  # what every report on the collection must say
    main_edits: Mapping[str, EditLevel] = field(default_factory=dict)  # attribute to edit and level, see `Step`
    references: tuple[tuple[EditLevel, EditLevel], ...] = ()  # kinds of a collection, and what each is compared with
    segmenter: str = ""  # the network that found objects; "" where every photo had a mask
    doubtful_masks: str = "leave-out"  # whether its doubtful masks were left out or kept
    fills: str = ""  # what filled the holes: "exemplar or MI-GAN, judged, version 2"; "" in runs that recorded none
    allow_cut: bool = False  # whether objects that the photo's border cuts were moved like others
    refine_cutouts: bool = False  # whether what is background was taken out of cut-outs
    tool_checks: int = 0  # photos whose pictures were made again with another fill and another mask
    sanity: Mapping[str, SanityRecord] = field(default_factory=dict)  # by model: other set-ups that were tried
    rendering: str = ""  # what made the pictures of `rendered_edits`: "torch on cuda"; "" where OpenCV made all
    rendered_edits: tuple[str, ...] = ()
