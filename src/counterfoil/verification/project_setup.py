"""The verification of a workspace: opened, resumed, served."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from counterfoil.errors import Unusable, UserError
from counterfoil.labels.label_space import LabelSpace, match_label_space
from counterfoil.sources.pixels import decode_picture, hash_pixels
from counterfoil.store.workspace import Workspace
from counterfoil.types import StoredVariant
from counterfoil.verification.app import create_app, server_of
from counterfoil.verification.database import Database, open_database, sqlite_url
from counterfoil.verification.people import everybody
from counterfoil.verification.project import (
    Project,
    begin,
    check_same,
    confusable_classes,
    draw,
    role_counts,
    stored_project,
    work_ids,
)
from counterfoil.verification.questionnaire import Questionnaire, load_questionnaire
from counterfoil.verification.security import Address, Signer, address_at, signer_at
from counterfoil.verification.service import Statistics, VerificationService
from counterfoil.verification.summary import summary


@dataclass(frozen=True)
class PictureReader:
    """The pictures of a workspace by variant; pixels are hashed once for each state of a file."""

    workspace: Workspace
    _known: dict[str, tuple[int, int]] = field(default_factory=dict)  # variant to time and size of what was checked

    @cached_property
    def _stored_by_id(self) -> Mapping[str, StoredVariant]:
        return {row.variant.id: row for row in self.workspace.pictures}

    def file(self, variant_id: str) -> str:
        """Where a picture lies in the workspace."""
        return self._stored_by_id[variant_id].file

    def read(self, variant_id: str) -> bytes:
        """The PNG; raises `Unusable` where it cannot be read, or is another picture than the manifest names."""
        path = self._path(variant_id)
        try:
            state = _state(path.stat())
            data = path.read_bytes()
        except OSError as error:
            raise Unusable(f"{path.name} cannot be read: {error.strerror}") from error
        if self._known.get(variant_id) != state:
            self._check(variant_id, data)
            self._known[variant_id] = state
        return data

    def changed_since(self, time: float, variant_ids: Iterable[str]) -> list[str]:
        """What is wrong with pictures that are missing or were overwritten; only files written later are opened."""
        found = []
        for name in variant_ids:
            try:
                if _written(self._path(name)) >= time:
                    self.read(name)
            except Unusable as error:
                found.append(str(error))
        return found

    def _path(self, variant_id: str) -> Path:
        return self.workspace.folder / self.file(variant_id)

    def _check(self, variant_id: str, data: bytes) -> None:
        stored = self._stored_by_id[variant_id]
        if stored.sha256 and hash_pixels(decode_picture(data, stored.file)) != stored.sha256:
            raise Unusable(f"{stored.file} was overwritten since it was built")


def _state(found: os.stat_result) -> tuple[int, int]:
    return found.st_mtime_ns, found.st_size


def _written(path: Path) -> float:
    """When the file or its name was last written: one that was moved here keeps its time of writing."""
    try:
        found = path.stat()
    except OSError as error:
        raise Unusable(f"{path.name} cannot be read: {error.strerror}") from error
    return max(found.st_mtime, found.st_ctime)


ADMINISTRATOR = "administrator"

_UNCHANGED = ("original", "control")  # what drops are measured against: nobody needs to confirm it


@dataclass(frozen=True)
class Verification:
    """A workspace whose verification has begun."""

    workspace: Workspace
    database: Database
    project: Project

    @property
    def questionnaire(self) -> Questionnaire:
        """What people are asked."""
        return self.project.questionnaire

    @property
    def counts(self) -> Mapping[str, int]:
        """How many pictures of each role there are: the work, known good and known bad controls."""
        return role_counts(self.database)

    @property
    def asked(self) -> set[str]:
        """The variants that people are asked about."""
        with self.database.reading() as connection:
            return work_ids(connection)

    @property
    def statistics(self) -> Statistics:
        """The statistics over this verification's answers."""
        return Statistics(self.questionnaire)

    @property
    def signer(self) -> Signer:
        """What signs links and tickets."""
        return signer_at(_folder(self.workspace))

    @cached_property
    def _shelf(self) -> PictureReader:
        return PictureReader(self.workspace)

    @cached_property
    def _names(self) -> Mapping[str, str]:
        space = _space(self.workspace)
        return {row.variant.label: space.name_of(row.variant.label) for row in self.workspace.pictures}

    def class_name(self, label: str) -> str:
        """What people call a label."""
        return self._names[label]

    def picture(self, variant_id: str) -> bytes:
        """The PNG of a variant, if it is still the picture that verification began with."""
        return self._shelf.read(variant_id)

    def check_pictures(self, variant_ids: Iterable[str]) -> None:
        """Refuse to decide on pictures that were overwritten since verification began."""
        changed = self._shelf.changed_since(self.project.began_at, variant_ids)
        if changed:
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            raise UserError(
                f"expected the pictures that verification began with, but {changed[0]}{more}; run the command that"
                " built the workspace again, which writes the same pictures"
            )

    def place(self, variant_id: str) -> str:
        """Where Label Studio finds a picture of the workspace, once its folder is its local storage."""
        return f"/data/local-files/?d={quote(self._shelf.file(variant_id))}"

    def desk(self, address: Address) -> VerificationService:
        """The verification, open for work at an address."""
        return VerificationService(
            database=self.database, questionnaire=self.questionnaire, signer=self.signer, address=address,
            picture=self.picture, class_name=self.class_name, place=self.place, clock=time.time,
        )  # fmt: skip


def begin_verification(folder: Path, url: str | None, questions: Path | None) -> Verification:
    """The verification of a workspace, begun now unless it was before."""
    workspace = Workspace(folder)
    given = load_questionnaire(questions)
    database = _database(workspace, url)
    if stored_project(database) is None:
        shown = draw(workspace.pictures, chosen_ids(workspace), given, confusable_classes(_space(workspace)))
        begin(database, Project(workspace.digest, given), shown, time.time())
    found = _checked(workspace, database)
    if questions is not None:
        check_same(found.project, given)
    return found


def open_verification(folder: Path, url: str | None) -> Verification:
    """The verification that has begun in a workspace, over the pictures that it began with."""
    return _checked(*_stored(folder, url))


def recorded_verification(folder: Path, url: str | None) -> Verification:
    """The same whatever became of the pictures since: answers can be taken out even then."""
    workspace, database = _stored(folder, url)
    return Verification(workspace, database, _project(database))


def _stored(folder: Path, url: str | None) -> tuple[Workspace, Database]:
    workspace = Workspace(folder)
    if url is None and not _sqlite_file(workspace).is_file():
        raise UserError(
            f"expected a verification that has begun in {folder}, got none; start it with"
            f" `counterfoil verify serve {folder}`, or give its --database"
        )
    return workspace, _database(workspace, url)


def chosen_ids(workspace: Workspace) -> tuple[str, ...]:
    """What is verified: what mining kept, else every picture that was changed."""
    if workspace.mined is not None:
        workspace.check_unchanged(workspace.mined.workspace_digest, "it was mined")
        return workspace.mined.kept
    return tuple(row.variant.id for row in workspace.pictures if row.variant.attribute not in _UNCHANGED)


def summary_of(verification: Verification) -> dict[str, Any]:
    """Progress, agreement, people and disagreements, as the administrator's page shows them."""
    return summary(verification.desk(address_at("127.0.0.1", 0, None)))


def serve_verification(verification: Verification, address: Address, bound: socket.socket) -> None:
    """Serve the page until stopped."""
    server_of(create_app(verification.desk(address)), address).run([bound])


def administrator_link(desk: VerificationService) -> str:
    """The administrator's link: the one that is valid, else a new one."""
    with desk.database.reading() as connection:
        known = [row for row in everybody(connection, "admin") if row.name == ADMINISTRATOR]
    if known and not known[0].revoked and known[0].link_expires_at > desk.clock():
        return desk.link(known[0])
    return desk.invite(ADMINISTRATOR, "admin")


def _project(database: Database) -> Project:
    project = stored_project(database)
    if project is None:
        raise UserError(f"expected a verification that has begun in {database}, got none; start it with verify serve")
    return project


def _checked(workspace: Workspace, database: Database) -> Verification:
    project = _project(database)
    workspace.check_unchanged(project.workspace_digest, "verification began")
    with database.reading() as connection:
        asked = work_ids(connection)
    if asked != set(chosen_ids(workspace)):
        raise UserError(
            "expected the pictures that verification began with, but mining has kept others since; mine again as"
            " before, or give --database for a verification of its own"
        )
    return Verification(workspace, database, project)


def _space(workspace: Workspace) -> LabelSpace:
    return match_label_space(sorted({row.variant.label for row in workspace.pictures}))


def _database(workspace: Workspace, url: str | None) -> Database:
    folder = _folder(workspace)
    folder.mkdir(mode=0o700, exist_ok=True)  # answers and the secret are nobody else's
    return open_database(url or sqlite_url(_sqlite_file(workspace)))


def _folder(workspace: Workspace) -> Path:
    return workspace.folder / "verify"


def _sqlite_file(workspace: Workspace) -> Path:
    return _folder(workspace) / "verify.sqlite"
