"""The verification service: one method per action of annotators and administrators, one transaction each."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from counterfoil.verification import accounts, leases, submissions
from counterfoil.verification.accounts import Person, PersonRole
from counterfoil.verification.adjudication import store_adjudication
from counterfoil.verification.assignment import Progress, lease_up_to, measure_progress
from counterfoil.verification.database import Database
from counterfoil.verification.leases import AnnotatorRequest, Lease
from counterfoil.verification.project import Verification
from counterfoil.verification.questionnaire import Questionnaire
from counterfoil.verification.server_address import Address
from counterfoil.verification.signing import Invitation
from counterfoil.verification.submissions import Submission, read_all_verdicts

_ADMINISTRATOR = "administrator"
_LINK_DAYS = 30.0


@dataclass(frozen=True)
class VerificationService:
    """One verification, served at an address."""

    verification: Verification
    address: Address
    clock: Callable[[], float] = time.time

    @property
    def database(self) -> Database:
        """The database of answers and accounts."""
        return self.verification.database

    @property
    def questionnaire(self) -> Questionnaire:
        """The questions and settings."""
        return self.verification.questionnaire

    # Invitations and sessions

    def invite(self, name: str, role: PersonRole, days: float = _LINK_DAYS) -> str:
        """Return an invitation link for a person; it replaces an earlier one."""
        now = self.clock()
        _ = self.verification.signer  # raises for a damaged secret before anything is written
        with self.database.writing() as connection:
            person = accounts.invite_person(connection, name, role, now, now + days * 24 * 3600)
        return self._link(person)

    def administrator_link(self) -> str:
        """Return the administrator's link: the valid one if there is one, else a new one."""
        with self.database.reading() as connection:
            for person in accounts.list_people(connection, "admin"):
                if person.name == _ADMINISTRATOR and not person.revoked and person.link_expires_at > self.clock():
                    return self._link(person)
        return self.invite(_ADMINISTRATOR, "admin")

    def join(self, token: str, earlier_session: str | None) -> tuple[Person, str] | None:
        """Return the person of a link and a new session; None for a forged, replaced, expired or revoked link."""
        invitation = self.verification.signer.read_invitation(token)
        if invitation is None:
            return None
        now = self.clock()
        with self.database.writing() as connection:
            person = accounts.find_by_id(connection, invitation.person_id)
            if person is None or person.revoked or person.nonce != invitation.nonce or person.link_expires_at < now:
                return None
            return person, accounts.begin_session(connection, person.id, now, earlier_session)

    def find_person(self, session: str) -> Person | None:
        """Return the person of a session."""
        with self.database.reading() as connection:
            return accounts.find_by_session(connection, session, self.clock())

    def leave(self, session: str) -> None:
        """End a session."""
        with self.database.writing() as connection:
            accounts.end_session(connection, session, self.clock())

    def revoke(self, name: str) -> bool:
        """Disable a person's link and sessions; False where the name is unknown."""
        with self.database.writing() as connection:
            person = accounts.find_by_name(connection, name)
            if person is not None:
                accounts.revoke_access(connection, person.id, self.clock())
            return person is not None

    # Annotators

    def next_tasks(self, person: Person, count: int) -> tuple[list[Lease], Progress]:
        """Return an annotator's tasks, leasing new ones up to `count`."""
        request = self._request(person)
        with self.database.writing() as connection:
            leases.release_expired(connection, request.now)
        with self.database.writing() as connection:
            answers_count = accounts.lock_person(connection, person.id)
            accounts.update_person(connection, person.id, seen_at=request.now)
            tasks = lease_up_to(connection, request, count if answers_count else 0)
        return tasks, self.progress(person)

    def answer(self, person: Person, submission: Submission) -> Progress:
        """Store an answer; it is on disk when this returns."""
        with self.database.writing() as connection:
            submissions.submit(connection, self._request(person), submission)
        if self.questionnaire.exclude is not None:
            self._apply_exclusion_rule(person, submission.task)
        return self.progress(person)

    def undo(self, person: Person) -> tuple[Lease, dict[str, str]] | None:
        """Take the last answer back: the task is open again, with its previous answers."""
        with self.database.writing() as connection:
            return submissions.undo_last_submission(connection, self._request(person))

    def progress(self, person: Person) -> Progress:
        """Return the progress of an annotator."""
        with self.database.reading() as connection:
            return measure_progress(connection, self._request(person))

    def read_picture(self, person: Person, handle: str) -> bytes | None:
        """Return the PNG of a handle that this annotator holds; None otherwise."""
        with self.database.reading() as connection:
            variant = leases.find_variant(connection, person.id, handle)
        return None if variant is None else self.verification.read_picture(variant)

    # Administrators

    def set_excluded(self, name: str, excluded: bool, reason: str) -> bool:
        """Exclude a person's answers, or count them again; False where no annotator has this name."""
        with self.database.writing() as connection:
            person = accounts.find_by_name(connection, name)
            if person is None or person.role != "annotator":
                return False
            if excluded:
                leases.exclude_annotator(connection, person.id, reason)
            elif person.excluded:
                leases.include_annotator(connection, person.id)
            return True

    def adjudicate(self, person: Person, picture_id: int, question: str, answer: str) -> bool:
        """Store an administrator's answer about a picture; False where the picture is not to be verified."""
        submissions.check_answer(self.questionnaire, question, answer)
        with self.database.writing() as connection:
            return store_adjudication(connection, picture_id, person.id, (question, answer), self.clock())

    def _link(self, person: Person) -> str:
        return (
            f"{self.address.url}/join/{self.verification.signer.sign_invitation(Invitation(person.id, person.nonce))}"
        )

    def _request(self, person: Person) -> AnnotatorRequest:
        return AnnotatorRequest(person, self.questionnaire, self.clock())

    def _apply_exclusion_rule(self, person: Person, task: str) -> None:
        """Exclude an annotator once an answer to a control shows that they fail the rule."""
        with self.database.reading() as connection:
            if self.questionnaire.control_share and not submissions.is_control_task(connection, person.id, task):
                return  # without controls, any answer may show that an annotator is too fast
            verdicts = read_all_verdicts(connection, person.id)
        reason = self.verification.statistics.excluded(verdicts).get(person.name)
        if reason:
            self.set_excluded(person.name, True, reason)
