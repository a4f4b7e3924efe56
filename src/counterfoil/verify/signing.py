"""The project's secret, and what is signed with it: invitation links and tokens against forged requests."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from itsdangerous import BadSignature, URLSafeSerializer

from counterfoil.errors import UserError


@dataclass(frozen=True)
class Invitation:
    """What a link says once its signature holds."""

    person_id: int
    nonce: str


@dataclass(frozen=True)
class Signer:
    """Signs and checks with the secret of one workspace."""

    secret: str = field(repr=False)

    def token(self, invitation: Invitation) -> str:
        """The last part of an invitation link."""
        return self._links.dumps([invitation.person_id, invitation.nonce])

    def invitation(self, token: str) -> Invitation | None:
        """What a link's last part says; None where it was not made here."""
        try:
            person_id, nonce = self._links.loads(token)
        except BadSignature:
            return None
        return Invitation(int(person_id), str(nonce))

    def csrf(self, session: str) -> str:
        """What a page must send back with every change, known only to pages of this session."""
        return hmac.new(self.secret.encode(), b"csrf" + session.encode(), hashlib.sha256).hexdigest()

    @property
    def _links(self) -> URLSafeSerializer:
        return URLSafeSerializer(self.secret, salt="invitation", signer_kwargs={"digest_method": hashlib.sha256})


def signer_at(folder: Path) -> Signer:
    """The signer of a workspace's folder; its secret is made once and only its owner may read it."""
    path = folder / "secret"
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return Signer(_read(path))
    with os.fdopen(made, "w", encoding="utf-8") as file:
        file.write(secrets.token_hex(32))
    return Signer(_read(path))


def _read(path: Path) -> str:
    if path.stat().st_mode & 0o077:
        raise UserError(f"expected {path} to be readable by its owner alone; run: chmod 600 '{path}'")
    secret = path.read_text(encoding="ascii", errors="replace").strip()
    if len(secret) < 64:
        raise UserError(f"expected a secret of 64 characters in {path}, which is damaged; remove it and invite again")
    return secret
