"""The secret of a workspace and what it signs: invitation links, CSRF tokens, tickets of offline packages."""

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
    """The content of an invitation link."""

    person_id: int
    nonce: str


@dataclass(frozen=True)
class Signer:
    """Signs and checks with the secret of one workspace."""

    secret: str = field(repr=False)

    def sign_invitation(self, invitation: Invitation) -> str:
        """The last part of an invitation link."""
        return self._links.dumps([invitation.person_id, invitation.nonce])

    def read_invitation(self, token: str) -> Invitation | None:
        """Return the invitation in the last part of a link; None where the signature is invalid."""
        try:
            person_id, nonce = self._links.loads(token)
        except BadSignature:
            return None
        return Invitation(int(person_id), str(nonce))

    def csrf_token(self, session: str) -> str:
        """The token that a page must send with every change; only pages of this session know it."""
        return self._hmac(b"csrf" + session.encode())

    def sign_ticket(self, ticket: str) -> str:
        """The signature of an offline package's ticket."""
        return self._hmac(b"offline" + ticket.encode())

    def sign_reference(self, variant_id: str) -> str:
        """The name of a reference photo in addresses."""
        return self._hmac(b"reference" + variant_id.encode())

    def _hmac(self, message: bytes) -> str:
        return hmac.new(self.secret.encode(), message, hashlib.sha256).hexdigest()

    @property
    def _links(self) -> URLSafeSerializer:
        return URLSafeSerializer(self.secret, salt="invitation", signer_kwargs={"digest_method": hashlib.sha256})


def load_signer(folder: Path) -> Signer:
    """Load the signer of a folder; its secret is created once, and only its owner can read it."""
    path = folder / "secret"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return Signer(_read_secret(path))
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(secrets.token_hex(32))
    return Signer(_read_secret(path))


def _read_secret(path: Path) -> str:
    if path.stat().st_mode & 0o077:
        raise UserError(f"expected {path} to be readable by its owner alone; run: chmod 600 '{path}'")
    secret = path.read_text(encoding="ascii", errors="replace").strip()
    if len(secret) < 64:
        raise UserError(f"expected a secret of 64 characters in {path}, which is damaged; remove it and invite again")
    return secret
