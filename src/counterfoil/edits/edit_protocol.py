"""The protocol of an edit: its author writes `apply`, everything else has a default.

Edits of the old form, with `__call__` instead of `apply`, are adapted for one release.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from counterfoil.edits.composition import Composition
from counterfoil.edits.subject import Subject
from counterfoil.errors import UserError
from counterfoil.types import Attribute, Classifier, DonorRule, EditLevel, Picture

_SELF_EXPLAINING = {"", "random", "other", "gray"}  # levels that add nothing to the edit's name
MAY_STAY = frozenset({"control", "size", "position", "direction"})  # attributes whose pictures may look as before
LEAST_CHANGE = 0.02  # share of its region that an edit must change visibly
LEAST_CHANGE_OF_COLOUR = 0.2  # the same of an edit of colour alone
_INNER_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What an edit asks the renderer for."""

    donor: DonorRule | None = None  # another photo: of which class relative to the sample's
    candidates: int = 1  # donors to choose from; `resolve` chooses where there is more than one
    photo: bool = False  # start from the photo at its own size; the renderer reduces the result
    surrogate: str | None = None  # address of a model that chooses or guides the picture
    gpu: bool = False  # makes its pictures on the GPU
    scene: bool = False  # the donor lends a scene without an object, the same one to all such edits of a photo


@dataclass(frozen=True, kw_only=True)
class Supplied:
    """What the renderer gives to the edit of one variant, according to its `needs`."""

    label: str = ""  # the photo's label
    seed: int = 0  # the variant's
    donors: Sequence[Subject] = ()
    donor_labels: Sequence[str] = ()  # of the donors, in order
    load_surrogate: Callable[[], Classifier] | None = None

    @property
    def donor(self) -> Subject:
        """The donor; the first where there are several."""
        if not self.donors:
            raise LookupError("no donor was supplied: an edit that takes one says so in `needs`")
        return self.donors[0]

    @property
    def surrogate(self) -> Classifier:
        """The model that `needs` names."""
        if self.load_surrogate is None:
            raise LookupError("no surrogate was supplied: an edit that asks one says so in `needs`")
        return self.load_surrogate()

    def true_scores(self, images: Sequence[NDArray[np.uint8]]) -> list[float]:
        """The probability that the surrogate gives the photo's label, for each image."""
        column = self.surrogate.labels.index(self.label)
        return [float(score) for score in self.surrogate(images)[:, column]]


class Resolution(NamedTuple):
    """The choice of an edit; its settings and donor are enough to render the picture again."""

    edit: Edit
    donor: int = 0  # index among the supplied donors


class ShownFill(NamedTuple):
    """The fill that a picture shows, and the share of the filled picture that was its hole."""

    name: str
    hole_share: float

    @classmethod
    def of(cls, subject: Subject) -> ShownFill:
        """The fill of a subject's own hole; raises `Unusable` without enough background."""
        return cls(subject.fill.name, float(subject.hole.mean()))


class RecipeEdit(NamedTuple):
    """An edit as a recipe names it."""

    edit: str
    settings: Mapping[str, Any]


class Edit(ABC):
    """One change of one attribute: a frozen dataclass whose fields are its settings.

    Only `attribute` and `apply` have to be written, and `level` where there are no settings.
    """

    attribute: ClassVar[Attribute]
    places: ClassVar[tuple[str, ...]] = ()  # settings that are file locations: no part of a seed
    version: ClassVar[int] = 1  # raised when the pictures of unchanged settings change; part of the ids from 2 on
    later: ClassVar[tuple[str, ...]] = ()  # settings of newer releases: no part of seeds and ids at their defaults
    words: ClassVar[str] = ""  # what is done, as the subject of "costs 12 points"; the class's name unless given

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Let a setting of the wrong type be refused in one line where the class checks its settings."""
        super().__init_subclass__(**arguments)
        check = vars(cls).get("__post_init__")
        if check is not None:
            cls.__post_init__ = _refuse_wrong_types(check)  # type: ignore[attr-defined]

    @property
    def level(self) -> str:
        """The strength or kind of the change, as in the tables; the first setting unless overridden."""
        settings = dataclasses.fields(self)  # type: ignore[arg-type]
        if not settings:
            raise NotImplementedError(f"{type(self).__name__} has no settings to take its level from: define `level`")
        value = getattr(self, settings[0].name)
        return f"{value:g}" if isinstance(value, float) else str(value)

    @property
    def needs(self) -> Needs:
        """What the renderer must supply; nothing unless overridden."""
        return Needs()

    @property
    def shows_fill(self) -> bool:
        """Whether filled pixels are visible in the picture, those of a donor's background included."""
        return False

    @property
    def moves_object(self) -> bool:
        """Whether the object leaves its outline, so that a cut by the photo's border would show."""
        return False

    @property
    def uses_mask(self) -> bool:
        """Whether the picture depends on where the mask's edge lies; False for changes of the whole picture."""
        return True

    @property
    def picture_version(self) -> int:
        """The version of its pictures, which the manifest records; with those of its parts where it has parts."""
        return self.version

    @property
    def least_change(self) -> float:
        """The change that a picture must show to count, as `edits/visible_change.py` measures it.

        A share of the background for edits of the background, of the picture for corruptions, else of the object. None
        for controls, and for size, position and direction: a ball that is turned looks as before, and counts.
        """
        return 0.0 if self.attribute in MAY_STAY else LEAST_CHANGE

    def settle(self) -> Edit:
        """The edit as this machine can make it: another one where a file that it takes cannot be had.

        Asked once, when a run is planned, so that all its workers make the same; the report says what was changed.
        """
        return self

    def choose(self, seed: int) -> Edit:
        """Make a choice that needs no pixels, such as a file of a folder, when the variant is planned."""
        return self

    def resolve(self, subject: Subject, supplied: Supplied) -> Resolution:
        """Make a choice that needs pixels, donors or the surrogate, before the picture is made."""
        return Resolution(self)

    def check_surrogate(self, surrogate: Classifier) -> None:  # noqa: B027 - most edits have nothing to refuse
        """Raise `UserError`, before the work begins, where this surrogate does not suit the settings."""

    def check_subject(self, subject: Subject) -> None:  # noqa: B027 - most edits take any photo
        """Raise `Unusable` where the edit cannot be made of this photo whatever the donor; before donors are tried."""

    def check_donor(self, donor: Subject) -> None:  # noqa: B027 - most edits take any donor
        """Raise `Unusable` where this donor does not suit the edit; other donors are then tried."""

    def check_fit(self, subject: Subject, donor: Subject, exposed: bool = False) -> None:  # noqa: B027 - as above
        """Raise `Unusable` where this donor does not suit this photo; other donors are then tried.

        `exposed`: another edit follows that shows what the object hides now.
        """

    @classmethod
    def reference(cls, level: str) -> EditLevel | None:
        """What the edit at this level is compared with, so that the difference is its attribute; None: the original."""
        return None

    @classmethod
    def on_own_ground(cls, level: str) -> EditLevel | None:
        """The same change on the photo's own background, of an edit that makes it in another scene; else None."""
        return None

    @classmethod
    def shows_fill_at(cls, level: str) -> bool:
        """Whether filled pixels are visible at this level; as with the default settings unless overridden."""
        return cls().shows_fill

    @classmethod
    def crossed(cls, name: str, level: str) -> tuple[EditLevel, EditLevel] | None:
        """The two edits that this one (under its registered name) makes at once, by their levels; None: it is one."""
        return None

    @property
    def required_edits(self) -> tuple[RecipeEdit, ...]:
        """The edits that a recipe must contain beside this one: those that it is compared with."""
        return ()

    @abstractmethod
    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Make the picture, at the size of `subject.picture`; raise `Unusable` where the edit cannot apply."""

    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """The same picture as data, of which a device can make many at once; here what `apply` made on the CPU.

        An edit whose picture is made of operations derives from `ComposedEdit` and writes this instead of `apply`.
        """
        return Composition.of(self.apply(subject, rng, supplied))

    def behind(self, subject: Subject, supplied: Supplied) -> NDArray[np.uint8] | None:
        """What the object hides in the picture that `apply` makes, where that is known without a fill of its hole."""
        return None

    def find_shown_fill(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> ShownFill | None:
        """The fill in the picture that `apply` makes of the same; None where it shows none, or it is not known."""
        return ShownFill.of(subject) if self.shows_fill else None

    @classmethod
    def describe(cls, level: str) -> str:
        """The edit at this level, as the subject of a sentence; old runs may hold levels of any form."""
        return describe_level(cls.words or to_kebab(cls.__name__), level)

    def _repr_html_(self) -> str:
        """Photos before and after the edit, as a notebook shows them."""
        from counterfoil.edits.edit_strip import render_edit  # it imports this module

        return render_edit(self)

    def __call__(self, picture: Picture, rng: np.random.Generator, donor: Picture | None = None) -> Picture:
        """Edit one picture without a run, for tests and notebooks."""
        donors = () if donor is None else (Subject(donor),)
        return self.apply(Subject(picture), rng, Supplied(donors=donors))


class ComposedEdit(Edit):
    """An edit that returns its picture as data: it writes `compose`, and its picture is what that draws."""

    @abstractmethod
    def compose(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Composition:
        """The picture as data, at the size of `subject.picture`; raise `Unusable` where the edit cannot apply."""

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Draw what `compose` returns."""
        return self.compose(subject, rng, supplied).draw()


def _refuse_wrong_types(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """The check of a class's settings, in which a comparison of a text with a number becomes a `UserError`."""

    @functools.wraps(check)
    def checked(edit: Any) -> None:
        try:
            check(edit)
        except (TypeError, ValueError) as error:
            values = ", ".join(f"{field.name}={getattr(edit, field.name)!r}" for field in dataclasses.fields(edit))
            raise UserError(f"edit {type(edit).__name__}: expected settings of other types, got {values}") from error

    return checked


def describe_level(words: str, level: str) -> str:
    """Words with the level in brackets; a level that adds nothing is left out."""
    return words if level in _SELF_EXPLAINING else f"{words} ({level})"


def to_kebab(name: str) -> str:
    """A class's name as registered: "background-swap" for "BackgroundSwap"."""
    return _INNER_CAPITAL.sub("-", name).lower()


def cross_with_size(name: str, level: str) -> tuple[EditLevel, EditLevel] | None:
    """The parts of a level such as "random@0.05": the size alone, and the edit at the object's own size."""
    own, _, rate = level.partition("@")
    return (EditLevel("size", rate), EditLevel(name, own)) if rate else None


def require_size(rate: float | None, grounded: bool = False, faithful: bool = False) -> tuple[RecipeEdit, ...]:
    """The unmoved, unturned object at the same size, where there is one."""
    chosen = {name: True for name, value in (("grounded", grounded), ("faithful", faithful)) if value}
    return () if rate is None else (RecipeEdit("size", {"rate": rate, **chosen}),)


def reference_at_rate(level: str) -> EditLevel | None:
    """The unmoved, unturned object at the size that a level such as "random@0.05" names; None without a size."""
    _, _, rate = level.partition("@")
    return EditLevel("size", rate) if rate else None


def format_percent(level: str) -> str:
    """A level that is a share, in percent; empty where it is not a number."""
    try:
        return f"{float(level) * 100:g} %"
    except ValueError:
        return ""


def adapt_old_edit(kind: type[Any]) -> type[Edit]:
    """A subclass with the new methods that calls the old ones; warns, since the next release drops it."""
    warnings.warn(
        f"{kind.__module__}.{kind.__name__} is an edit of the old form: derive it from counterfoil.Edit and rename"
        " `__call__` to `apply(subject, rng, supplied)`; the next release no longer takes the old form",
        DeprecationWarning,
        stacklevel=2,
    )
    members = {"__module__": kind.__module__, "__doc__": kind.__doc__}
    return cast("type[Edit]", dataclasses.dataclass(frozen=True)(type(kind.__name__, (kind, _OldForm), members)))


class _OldForm(Edit):
    """The new methods in terms of the old ones; the old class comes before this one."""

    @property
    def needs(self) -> Needs:
        """The donor, photo and GPU that the old fields and properties name."""
        # These names are the old contract of other packages' classes, which have no type here.
        return Needs(
            donor=getattr(self, "donors", None),
            photo=bool(getattr(self, "from_photo", False)),
            gpu=getattr(self, "device", None) == "cuda",
        )

    def choose(self, seed: int) -> Edit:
        """Calls the old `chosen`."""
        chosen = getattr(self, "chosen", None)
        return cast("Edit", chosen(seed)) if chosen is not None else self

    def apply(self, subject: Subject, rng: np.random.Generator, supplied: Supplied) -> Picture:
        """Calls the old `__call__`."""
        if self.needs.donor is None:
            return self(subject.picture, rng)
        return self(subject.picture, rng, supplied.donor.picture)
