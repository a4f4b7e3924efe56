"""The pixels of a variant: its photo read, masked, reduced and edited, with its donors and choices resolved."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache, partial
from itertools import islice
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.assets.cache import cache_folder
from counterfoil.device_rendering.torch_renderer import MadePicture, PictureRequest
from counterfoil.edits.composition import Composition
from counterfoil.edits.cutout import LEFT
from counterfoil.edits.donors import Donors
from counterfoil.edits.edit_protocol import Edit, Needs, Supplied
from counterfoil.edits.fill_choice import load_same_fills
from counterfoil.edits.photo_border import name_sides
from counterfoil.edits.registry import EDITS, edit_named, settings_of
from counterfoil.edits.seeds import id_of_choice, seed_from, seed_of_attempt
from counterfoil.edits.subject import PLAIN_TOOLS, Subject, Tools
from counterfoil.edits.visible_change import check_change, check_counts, list_compared
from counterfoil.errors import Unusable, UserError
from counterfoil.mask_quality import MaskJudge
from counterfoil.models.model_loaders import load_model
from counterfoil.object_mask import MaskVerdict, as_mask, hard_object
from counterfoil.segmentation import Segmentation, Segmenter, make_segmenter
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.prediction_tables import ToolTrace
from counterfoil.store.result_cache import open_result_cache
from counterfoil.store.sample_table import SamplesById
from counterfoil.study.runs import Study
from counterfoil.study.thumbnails import PictureLoader
from counterfoil.types import (
    GROWN_MASK,
    SECOND_FILL,
    SHRUNK_MASK,
    Attribute,
    Model,
    Picture,
    Run,
    Sample,
    Source,
    Variant,
)

_BYTES_IN_MEMORY = 768 * 2**20  # of photos with their cutouts, to bound memory
_LEAST_BYTES_IN_MEMORY = 128 * 2**20  # of each worker process
_LEAST_BYTES_OF_THREAD = 48 * 2**20  # of each thread of one: the photo that it works on should stay
_MEASURED_AGAIN = 8  # photos used last, which may have grown
_ATTEMPTS = 16  # other donors tried where the planned one cannot be used
_ATTEMPTS_AT_SCENES = 96  # of photos that lend a scene: most show their object everywhere, which is known from its mask


class SubjectCache:
    """The photos that were used last, within a bound of memory; for several threads.

    Photos grow while they are edited, so those used last are measured again when one is added or finished. The sum is
    kept, since a sum over all photos for every photo would make the time quadratic.
    """

    def __init__(self, most_bytes: int = _BYTES_IN_MEMORY) -> None:
        self._subjects: OrderedDict[str, Subject] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._held, self._most, self._lock = 0, most_bytes, threading.Lock()

    def get(self, name: str) -> Subject | None:
        """The photo of this name; None where it is not here."""
        with self._lock:
            if name in self._subjects:
                self._subjects.move_to_end(name)
            return self._subjects.get(name)

    def add(self, name: str, read: Subject) -> Subject:
        """Add a photo and return it, or the one that another thread added meanwhile."""
        with self._lock:
            subject = self._subjects.setdefault(name, read)
            self._measure_last()
        return subject

    def bound(self, most_bytes: int) -> None:
        """Hold at most so many bytes from the next photo on."""
        self._most = most_bytes

    def settle(self) -> None:
        """Measure the photos used last when one is finished: where all photos fit, none is added any more."""
        with self._lock:
            self._measure_last()

    def _measure_last(self) -> None:
        for used in islice(reversed(self._subjects), _MEASURED_AGAIN):
            size = self._subjects[used].nbytes
            self._held += size - self._sizes.get(used, 0)
            self._sizes[used] = size
        while self._held > self._most and len(self._subjects) > 1:
            oldest, _ = self._subjects.popitem(last=False)
            self._held -= self._sizes.pop(oldest, 0)

    def drop(self, name: str) -> None:
        """Let go of a photo."""
        with self._lock:
            self._subjects.pop(name, None)
            self._held -= self._sizes.pop(name, 0)

    def __getstate__(self) -> dict[str, int]:
        return {"most_bytes": self._most}  # a copy in another process begins empty

    def __setstate__(self, state: dict[str, int]) -> None:
        self.__init__(**state)  # type: ignore[misc]


@dataclass(frozen=True, kw_only=True)
class Renderer:
    """Resolves and renders variants; several threads may use one renderer."""

    source: Source
    samples: Mapping[str, Sample]
    working_size: int | None
    segmenter: Segmenter
    judge: MaskJudge | None = None  # tests the masks; without it none is doubtful
    keeps_doubtful: bool = False  # use doubtful masks as if they were not
    tools: Tools = PLAIN_TOOLS
    surrogates: dict[str, Model] = field(default_factory=dict)  # by address; others are loaded when asked for
    _subjects: SubjectCache = field(default_factory=SubjectCache, repr=False, compare=False)
    _verdicts: dict[str, MaskVerdict] = field(default_factory=dict, repr=False, compare=False)  # by sample
    _refused: dict[tuple[str, type[Edit], str], str] = field(default_factory=dict, repr=False, compare=False)  # donors
    _load_lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @cached_property
    def donors(self) -> Donors:
        """The choice of donors among the samples."""
        return Donors(self.samples.samples if isinstance(self.samples, SamplesById) else [*self.samples.values()])

    def subject(self, sample_id: str) -> Subject:
        """The sample ready to edit, cached if used recently; raises `Unusable` with the reason."""
        subject = self._subjects.get(sample_id)
        return self._subjects.add(sample_id, self._read(self.samples[sample_id])) if subject is None else subject

    def share_memory(self, workers: int, threads: int = 1) -> None:
        """Hold only this process's part of the memory for photos, as one of so many workers, each with such threads."""
        least = max(_LEAST_BYTES_IN_MEMORY, threads * _LEAST_BYTES_OF_THREAD)
        self._subjects.bound(max(least, _BYTES_IN_MEMORY // workers))

    def finish(self, sample_id: str, may_lend: bool) -> None:
        """Let go of a finished photo, or count what it holds now where it may be a donor of other photos' pictures."""
        if may_lend:
            self._subjects.settle()
        else:
            self._subjects.drop(sample_id)

    def _read(self, sample: Sample) -> Subject:
        image, given = self.source.read(sample)
        found = self.segmenter(image) if given is None else as_mask(given)
        mask = found.mask if isinstance(found, Segmentation) else found
        if not hard_object(mask.values).any():
            raise Unusable("the mask is empty")
        if self.judge is not None and sample.id not in self._verdicts:
            self._verdicts[sample.id] = self.judge.decide(sample.id, image, found)
        photo = Picture(image, mask.values)
        reduced = resize_to_working_size(photo, self.working_size)
        return Subject(photo, reduced, origin=mask.origin, doubt=self._doubt(sample.id), tools=self.tools)

    def _doubt(self, sample_id: str) -> str:
        """Why a mask that a network found is not used; empty where it is. A mask by hand is its owner's word."""
        verdict = self._verdicts.get(sample_id)
        if verdict is None or self.keeps_doubtful or verdict.origin != "salience":
            return ""
        return "; ".join(verdict.reasons)

    def mask_verdict(self, sample_id: str) -> MaskVerdict | None:
        """The verdict on a sample's mask; None where it was not read, or masks are not tested."""
        return self._verdicts.get(sample_id)

    def render(self, variant: Variant) -> Picture:
        """The variant's pixels; raises `Unusable` where the edit cannot apply."""
        subject = _change_tool(self.subject(str(variant.sample_id)), variant.attribute)
        if variant.attribute == "original":
            return subject.photo
        edit = _load_edit(variant.edit, variant.settings)
        supplied, rng = self._supply_chosen(variant, edit), np.random.default_rng(variant.seed)
        if edit.needs.photo:
            return resize_to_working_size(edit.apply(subject.at_full_size, rng, supplied), self.working_size)
        return edit.apply(subject, rng, supplied)

    def make_request(self, planned: Variant) -> tuple[Variant, PictureRequest]:
        """As `make`, with the picture as data for a device; `check_made` says whether enough changed there."""
        variant = self.resolve(planned)
        return variant, self.request(variant)

    def request(self, variant: Variant) -> PictureRequest:
        """As `render`, with the picture as data for a device."""
        photo = self.subject(str(variant.sample_id))
        if variant.attribute == "original":
            return PictureRequest(composition=Composition.of(photo.photo))
        edit = _load_edit(variant.edit, variant.settings)
        if edit.needs.photo:
            composition = Composition.of(self.render(variant))
        else:
            subject, rng = _change_tool(photo, variant.attribute), np.random.default_rng(variant.seed)
            composition = edit.compose(subject, rng, self._supply_chosen(variant, edit))
            composition.check()
        compared = list_compared(edit, photo) if composition.image.shape == photo.picture.alpha.shape else ()
        return PictureRequest(composition=composition, before=compared, by_level=edit.attribute == "corruption")

    def check_made(self, variant: Variant, made: MadePicture) -> None:
        """Raises `Unusable` where an object left its picture on the device, or nothing visibly changed."""
        if variant.attribute == "original":
            return
        edit = _load_edit(variant.edit, variant.settings)
        if made.left_picture:
            raise Unusable(LEFT)
        check_counts(edit, self.subject(str(variant.sample_id)), made.changed)

    def trace(self, variant: Variant) -> ToolTrace:
        """How a rendered variant was made: the fill that it shows, its hole, and the borders its object stays at."""
        if variant.attribute == "original":
            return ToolTrace()
        edit = _load_edit(variant.edit, variant.settings)
        subject = _change_tool(self.subject(str(variant.sample_id)), variant.attribute)
        anchor = name_sides(subject.cut_sides) if edit.moves_object else ""
        try:
            rng = np.random.default_rng(variant.seed)
            shown = edit.find_shown_fill(subject, rng, self._supply_chosen(variant, edit))
        except Unusable:  # the picture could be made without a fill
            shown = None
        if shown is None:
            return ToolTrace(anchor=anchor)
        return ToolTrace(fill=shown.name, hole_share=100 * shown.hole_share, anchor=anchor)

    def _supply_chosen(self, variant: Variant, edit: Edit) -> Supplied:
        """What the edit of a variant whose choices are made gets; a donor is filled again where the variant says so."""
        donors = [] if variant.donor_id is None else [self.samples[variant.donor_id]]
        supplied = self._supply(variant, edit.needs, donors)
        if variant.attribute != SECOND_FILL:
            return supplied
        return replace(supplied, donors=[donor.with_second_fill for donor in supplied.donors])

    def make(self, planned: Variant) -> tuple[Variant, Picture]:
        """A planned variant with its choices made, and its pixels; raises `Unusable` where nothing visibly changes."""
        variant = self.resolve(planned)
        picture = self.render(variant)
        if variant.attribute != "original":
            check_change(_load_edit(variant.edit, variant.settings), self.subject(str(variant.sample_id)), picture)
        return variant, picture

    def resolve(self, variant: Variant) -> Variant:
        """The variant with its choices made, so that rendering it makes no further choice."""
        if variant.attribute == "original":
            return variant
        edit, subject = _load_edit(variant.edit, variant.settings), self.subject(str(variant.sample_id))
        edit.check_subject(subject)
        donors = self._choose_donors(variant, edit)
        if edit.needs.donor is not None and not donors:
            raise Unusable("none of 0 donors has a background to lend")
        supplied = self._supply(variant, edit.needs, donors)
        resolution = edit.resolve(subject.at_full_size if edit.needs.photo else subject, supplied)
        if resolution.edit != edit:
            settings = json.dumps(settings_of(resolution.edit), sort_keys=True)
            level = resolution.edit.level  # names how it was chosen, where that matters: "20-adv by candidates"
            variant = replace(variant, id=id_of_choice(variant.id, settings), settings=settings, level=level)
        if edit.needs.candidates > 1 or (donors and donors[0].id != variant.donor_id):
            donor = donors[resolution.donor]
            return replace(variant, id=id_of_choice(variant.id, donor.digest), donor_id=donor.id)
        return variant

    def candidates(self, variant: Variant) -> list[Sample]:
        """The distinct donors that `resolve` chooses from, each drawn with its own seed.

        Fewer where there are not enough samples; none for edits that do not choose.
        """
        needs = Needs() if variant.attribute == "original" else _load_edit(variant.edit, variant.settings).needs
        if needs.donor is None or needs.candidates < 2:
            return []
        drawn: dict[str, Sample] = {}
        for attempt in range(4 * needs.candidates):
            donor = self._draw_donor(variant, needs, attempt)
            if donor is not None and len(drawn) < needs.candidates:
                drawn.setdefault(donor.id, donor)
        return list(drawn.values())

    def _choose_donors(self, variant: Variant, edit: Edit) -> list[Sample]:
        """The usable donors among those that the edit asks for."""
        needs = edit.needs
        if variant.donor_id is None or needs.donor is None:
            return []
        subject = self.subject(str(variant.sample_id))
        if needs.candidates > 1:
            return [donor for donor in self.candidates(variant) if self._is_usable(donor, edit, subject)]
        planned = self.samples[variant.donor_id]
        if self._is_usable(planned, edit, subject):
            return [planned]
        # Where a donor's photo is broken or does not suit the edit, the next donors are tried.
        tried = {planned.id}
        for attempt in range(_ATTEMPTS_AT_SCENES if needs.scene else _ATTEMPTS):
            donor = self._draw_donor(variant, needs, attempt)
            if donor is not None and donor.id not in tried:
                tried.add(donor.id)
                if self._is_usable(donor, edit, subject):
                    return [donor]
        self._check_donor(planned, edit, subject)  # raises with the reason why it cannot be used
        return [planned]

    def _draw_donor(self, variant: Variant, needs: Needs, attempt: int) -> Sample | None:
        sample, seed = self.samples[str(variant.sample_id)], variant.seed
        if needs.scene:  # the same donors in the same order for all edits in a scene
            seed = seed_from(sample.digest, self.samples[str(variant.donor_id)].digest)
        return None if needs.donor is None else self.donors.choose(sample, needs.donor, seed_of_attempt(seed, attempt))

    def _is_usable(self, donor: Sample, edit: Edit, subject: Subject) -> bool:
        try:
            self._check_donor(donor, edit, subject)
        except Unusable:
            return False
        return True

    def _check_donor(self, donor: Sample, edit: Edit, subject: Subject) -> None:
        """Raises `Unusable` where the donor cannot be read or does not suit the edit of this photo."""
        key = donor.id, type(edit), json.dumps(settings_of(edit), sort_keys=True)  # the parts of a combination differ
        if key in self._refused:  # judging it again would fill it again
            raise Unusable(self._refused[key])
        lender = self._read_donor(donor.id)
        if lender.doubt:
            raise Unusable(f"the donor {donor.id} cannot be used: its mask is doubtful: {lender.doubt}")
        try:
            edit.check_donor(lender)
        except Unusable as error:
            self._refused[key] = str(error)
            raise
        edit.check_fit(subject, lender)

    def _read_donor(self, sample_id: str) -> Subject:
        try:
            return self.subject(sample_id)
        except Unusable as error:
            raise Unusable(f"the donor {sample_id} cannot be used: {error}") from error

    def _supply(self, variant: Variant, needs: Needs, donors: Sequence[Sample]) -> Supplied:
        return Supplied(
            label=variant.label,
            seed=variant.seed,
            donors=[self._read_donor(donor.id) for donor in donors],
            donor_labels=[donor.label for donor in donors],
            load_surrogate=None if needs.surrogate is None else partial(self._load_surrogate, needs.surrogate),
        )

    def _load_surrogate(self, address: str) -> Model:
        with self._load_lock:
            if address not in self.surrogates:
                self.surrogates[address] = load_model(address)
            return self.surrogates[address]


def _change_tool(subject: Subject, attribute: Attribute) -> Subject:
    """The subject with the fill or the mask that a doubled picture is made with; itself for other pictures."""
    if attribute == SECOND_FILL:
        return subject.with_second_fill
    if attribute == GROWN_MASK:
        return subject.with_grown_mask
    return subject.with_shrunk_mask if attribute == SHRUNK_MASK else subject


def _load_edit(name: str, settings: str) -> Edit:
    return _make_edit(name, settings, EDITS.get(name))


@lru_cache(maxsize=1024)
def _make_edit(name: str, settings: str, _kind: type[Edit] | None) -> Edit:
    """Kept by the class too: in a notebook, a function may be given again under its name."""
    return edit_named(name, json.loads(settings))


def resize_to_working_size(picture: Picture, working_size: int | None) -> Picture:
    """The picture with its shorter side at the working size; smaller pictures stay as they are."""
    height, width = picture.alpha.shape
    if working_size is None or min(height, width) <= working_size:
        return picture
    scale = working_size / min(height, width)
    size = (round(width * scale), round(height * scale))
    trimap = as_mask(picture.alpha).origin == "trimap"
    method = cv2.INTER_NEAREST if trimap else cv2.INTER_AREA  # "unknown" must not blend into a graded edge
    image = cv2.resize(picture.image, size, interpolation=cv2.INTER_AREA)
    alpha = cv2.resize(picture.alpha, size, interpolation=method)
    return Picture(np.asarray(image, np.uint8), np.asarray(alpha, np.uint8))


def make_variant_renderer(study: Study) -> PictureLoader:
    """A function that renders variants of a recorded run again; it returns None where the photo is gone."""

    @cache
    def renderer() -> Renderer | None:
        return _make_renderer(study.manifest, study.runs[0])

    def make(variant: Variant) -> Picture | None:
        opened = renderer()
        if opened is None:
            return None
        try:
            return opened.render(variant)
        except (Unusable, UserError):  # the photo was moved or changed; the page shows no picture
            return None

    return make


def _make_renderer(table: Mapping[str, NDArray[Any]], run: Run) -> Renderer | None:
    """A renderer of the run's photos and masks; None where the masks came from a segmenter."""
    first = {name: row for row, name in reversed(list(enumerate(table["sample_id"])))}
    samples = {name: _read_sample(table, name, row) for name, row in first.items()}
    if not samples or any(sample.mask is None for sample in samples.values()):
        return None
    return Renderer(
        source=open_source(run.images, run.masks),
        samples=samples,
        working_size=int(table["working_size"][0]) or None,
        segmenter=make_segmenter(list(samples.values())),
        tools=replace(load_same_tools(run), cache=open_result_cache(cache_folder())),
    )


def load_same_tools(run: Run) -> Tools:
    """The fills and refusals that a run was made with."""
    return Tools(fills=load_same_fills(run.fills), allow_cut=run.allow_cut, refine=run.refine_cutouts)


def _read_sample(table: Mapping[str, NDArray[Any]], name: str, row: int) -> Sample:
    image, mask, label, digest = (table[column][row] for column in ("image", "mask", "label", "sample_digest"))
    return Sample(id=name, label=label, image=image, mask=mask or None, digest=digest)
