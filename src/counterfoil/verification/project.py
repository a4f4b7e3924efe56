"""The verification of a workspace: started with a questionnaire, opened again later.

The questionnaire, the pictures and the digest of the workspace are stored when verification begins; a workspace or
questions that differ from them are refused afterwards.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import func, insert, select

from counterfoil.errors import Unusable, UserError
from counterfoil.sources.pixels import decode_picture, hash_pixels
from counterfoil.store.workspace import Workspace
from counterfoil.study.thumbnails import small_jpeg
from counterfoil.types import StoredVariant
from counterfoil.verification import schema
from counterfoil.verification.answer_quality import AnswerStatistics
from counterfoil.verification.class_guides import ClassGuide, check_described_classes, make_guides, name_classes
from counterfoil.verification.database import Database, open_database, sqlite_url
from counterfoil.verification.hidden_controls import (
    ShownPicture,
    choose_pictures,
    find_confusable_classes,
    hash_fraction,
)
from counterfoil.verification.questionnaire import Questionnaire, load_questionnaire
from counterfoil.verification.signing import Signer, load_signer


@dataclass(frozen=True)
class PictureReader:
    """Reads pictures by variant; pixels are hashed once per state of a file."""

    workspace: Workspace
    _checked: dict[str, tuple[int, int]] = field(default_factory=dict)  # variant to time and size of its file

    @cached_property
    def _stored(self) -> Mapping[str, StoredVariant]:
        return {row.variant.id: row for row in self.workspace.pictures}

    def file(self, variant_id: str) -> str:
        """The path of a picture within the workspace."""
        return self._stored[variant_id].file

    def sample(self, variant_id: str) -> str | None:
        """The photo that a picture was made from."""
        return self._stored[variant_id].variant.sample_id

    def read(self, variant_id: str) -> bytes:
        """Return the PNG; raises `Unusable` where it cannot be read or is not the picture in the manifest."""
        path = self.workspace.folder / self.file(variant_id)
        status = _stat(path)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise Unusable(f"{path.name} cannot be read: {error.strerror}") from error
        state = (status.st_mtime_ns, status.st_size)
        if self._checked.get(variant_id) != state:
            stored = self._stored[variant_id]
            if stored.sha256 and hash_pixels(decode_picture(content, stored.file)) != stored.sha256:
                raise Unusable(f"{stored.file} was overwritten since it was built")
            self._checked[variant_id] = state
        return content

    def find_changes(self, since: float, variant_ids: Iterable[str]) -> list[str]:
        """Describe pictures that are missing or were overwritten; only files written later are opened."""
        faults = []
        for variant_id in variant_ids:
            try:
                status = _stat(self.workspace.folder / self.file(variant_id))
                # a moved file keeps its modification time, but not its change time
                if max(status.st_mtime, status.st_ctime) >= since:
                    self.read(variant_id)
            except Unusable as error:
                faults.append(str(error))
        return faults


def _stat(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise Unusable(f"{path.name} cannot be read: {error.strerror}") from error


_REFERENCE_SIDE, _REFERENCE_QUALITY = 320, 85  # pixels of the longer side of reference photos, JPEG quality
SHUFFLE_PRIME = 2**31 - 1  # the shuffles of pictures and the factors that permute them lie below it
_UNCHANGED = ("original", "control")  # drops are measured against these; they need no verification


@dataclass(frozen=True)
class Project:
    """The data stored when verification began."""

    workspace_digest: str
    questionnaire: Questionnaire
    began_at: float = 0.0  # seconds since 1970


@dataclass(frozen=True)
class Verification:
    """A workspace whose verification has begun."""

    workspace: Workspace
    database: Database
    project: Project

    @property
    def questionnaire(self) -> Questionnaire:
        """The questions and settings."""
        return self.project.questionnaire

    @property
    def statistics(self) -> AnswerStatistics:
        """The statistics over this verification's answers."""
        return AnswerStatistics(self.questionnaire)

    @cached_property
    def signer(self) -> Signer:
        """Signs links and tickets with the secret of the workspace."""
        return load_signer(_folder(self.workspace))

    def count_roles(self) -> Mapping[str, int]:
        """The number of pictures by role: the work, known good and known bad controls."""
        query = select(schema.pictures.c.role, func.count().label("times")).group_by(schema.pictures.c.role)
        with self.database.reading() as connection:
            counts = {row.role: int(row.times) for row in connection.execute(query)}
        return {role: counts.get(role, 0) for role in ("work", "good", "bad")}

    def class_name(self, label: str) -> str:
        """The readable name of a label."""
        return self._class_names[label]

    @cached_property
    def guides(self) -> Mapping[str, ClassGuide]:
        """What annotators are told of each class."""
        query = select(schema.pictures.c.variant_id).where(schema.pictures.c.role != "work")
        with self.database.reading() as connection:
            controls = set(connection.execute(query).scalars())
        return make_guides(self.workspace, self.questionnaire, controls)

    def reference_handle(self, variant_id: str) -> str:
        """The name of a reference photo in addresses, which says nothing about the photo."""
        return self.signer.sign_reference(variant_id)[:32]

    def read_reference(self, handle: str) -> bytes | None:
        """A reference photo as a small JPEG; None for another handle."""
        variant_id = self._references.get(handle)
        return None if variant_id is None else self.draw_reference(variant_id)

    def draw_reference(self, variant_id: str) -> bytes:
        """The unedited photo of a variant as a small JPEG."""
        return small_jpeg(
            decode_picture(self.read_picture(variant_id), variant_id), _REFERENCE_SIDE, _REFERENCE_QUALITY
        )

    @cached_property
    def _references(self) -> Mapping[str, str]:
        variants = (variant.id for guide in self.guides.values() for variant in guide.references)
        return {self.reference_handle(variant): variant for variant in variants}

    def sample_of(self, variant_id: str) -> str | None:
        """The photo that a picture was made from."""
        return self._pictures.sample(variant_id)

    def read_picture(self, variant_id: str) -> bytes:
        """Return the PNG of a variant, if it is still the picture that verification began with."""
        return self._pictures.read(variant_id)

    def check_pictures(self, variant_ids: Iterable[str]) -> None:
        """Raise `UserError` where pictures were overwritten since verification began."""
        faults = self._pictures.find_changes(self.project.began_at, variant_ids)
        if faults:
            more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
            raise UserError(
                f"expected the pictures that verification began with, but {faults[0]}{more}; run the command that"
                " built the workspace again, which writes the same pictures"
            )

    def label_studio_url(self, variant_id: str) -> str:
        """The URL of a picture in Label Studio once the workspace is its local storage."""
        return f"/data/local-files/?d={quote(self._pictures.file(variant_id))}"

    @cached_property
    def _pictures(self) -> PictureReader:
        return PictureReader(self.workspace)

    @cached_property
    def _class_names(self) -> Mapping[str, str]:
        space = name_classes(self.workspace, self.questionnaire)
        return {label: space.name_of(label) for label in space.labels}


def begin_verification(folder: Path, url: str | None, questions: Path | None) -> Verification:
    """Begin the verification of a workspace, or continue one that has begun."""
    workspace = Workspace(folder)
    questionnaire = load_questionnaire(questions)
    database = _open_database(workspace, url)
    if _read_project(database) is None:
        space = name_classes(workspace, questionnaire)
        check_described_classes(questionnaire, space.labels)
        confusable = find_confusable_classes(space)
        shown = choose_pictures(workspace.pictures, _choose_variants(workspace), questionnaire, confusable)
        store_project(database, Project(workspace.digest, questionnaire, time.time()), shown)
    verification = _check_unchanged(workspace, database)
    if questions is not None:
        _check_same_questions(verification.questionnaire, questionnaire)
    return verification


def open_verification(folder: Path, url: str | None) -> Verification:
    """Open a verification that has begun; raises `UserError` where its pictures changed."""
    return _check_unchanged(*_find_database(Workspace(folder), url))


def open_verification_unchecked(folder: Path, url: str | None) -> Verification:
    """Open a verification even where its pictures have changed, so that answers can still be exported."""
    workspace, database = _find_database(Workspace(folder, may_have_changed=True), url)
    return Verification(workspace, database, _require_project(database))


def store_project(database: Database, project: Project, shown: Iterable[ShownPicture]) -> None:
    """Store the questions and the pictures, unless another process did so first."""
    questionnaire = project.questionnaire
    with database.writing() as connection:
        if connection.execute(select(schema.project.c.id)).first() is not None:
            return
        row = {"id": 1, "workspace_digest": project.workspace_digest, "began_at": project.began_at}
        connection.execute(insert(schema.project).values(**row, questionnaire=questionnaire.model_dump_json()))
        rows = [
            {
                "variant_id": picture.variant_id,
                "original_id": picture.original_id,
                "label": picture.label,
                "role": picture.role,
                "shuffle": 1
                + int(hash_fraction(questionnaire.seed, "shuffle", picture.variant_id) * (SHUFFLE_PRIME - 1)),
                "wanted": questionnaire.annotators if picture.role == "work" else 0,
                "taken": 0,
            }
            for picture in shown
        ]
        connection.execute(insert(schema.pictures), rows)
        connection.exec_driver_sql("ANALYZE")  # query planners estimate badly for tables that were just filled


def _read_project(database: Database) -> Project | None:
    """The verification in the database; None where none has begun."""
    with database.reading() as connection:
        row = connection.execute(select(schema.project)).first()
    if row is None:
        return None
    return Project(row.workspace_digest, Questionnaire.model_validate_json(row.questionnaire), row.began_at)


def _require_project(database: Database) -> Project:
    project = _read_project(database)
    if project is None:
        raise UserError(f"expected a verification that has begun in {database}, got none; start it with verify serve")
    return project


def _check_unchanged(workspace: Workspace, database: Database) -> Verification:
    """Raise `UserError` where the workspace's pictures, or their selection, changed since verification began."""
    project = _require_project(database)
    workspace.check_unchanged(project.workspace_digest, "verification began")
    query = select(schema.pictures.c.variant_id).where(schema.pictures.c.role == "work")
    with database.reading() as connection:
        verified = set(connection.execute(query).scalars())
    if verified != set(_choose_variants(workspace)):
        raise UserError(
            "expected the pictures that verification began with, but mining has kept others since; mine again as"
            " before, or give --database for a verification of its own"
        )
    return Verification(workspace, database, project)


def _check_same_questions(stored: Questionnaire, given: Questionnaire) -> None:
    """Raise `UserError` for questions other than those at the beginning: the answers could not be combined."""
    before, now = (json.loads(row.model_dump_json()) for row in (stored, given))
    different = [name for name in before if before[name] != now[name]]
    if different:
        raise UserError(
            f"expected the questions that verification began with, but {' and '.join(different)} differ now;"
            " leave --questions out to go on, or give another --database, such as sqlite:///second.sqlite, for a"
            " verification of its own"
        )


def _choose_variants(workspace: Workspace) -> tuple[str, ...]:
    """The variants to verify: those that mining kept, or every edited picture of a workspace that was not mined."""
    if workspace.mined is not None:
        workspace.check_unchanged(workspace.mined.workspace_digest, "it was mined")
        return workspace.mined.kept
    return tuple(row.variant.id for row in workspace.pictures if row.variant.attribute not in _UNCHANGED)


def _find_database(workspace: Workspace, url: str | None) -> tuple[Workspace, Database]:
    if url is None and not _sqlite_path(workspace).is_file():
        raise UserError(
            f"expected a verification that has begun in {workspace.folder}, got none; start it with"
            f" `counterfoil verify serve {workspace.folder}`, or give its --database"
        )
    return workspace, _open_database(workspace, url)


def _open_database(workspace: Workspace, url: str | None) -> Database:
    _folder(workspace).mkdir(mode=0o700, exist_ok=True)  # it holds the answers and the secret
    return open_database(url or sqlite_url(_sqlite_path(workspace)))


def _folder(workspace: Workspace) -> Path:
    return workspace.folder / "verify"


def _sqlite_path(workspace: Workspace) -> Path:
    return _folder(workspace) / "verify.sqlite"
