"""The two tokens that let somebody in where not only this machine can ask: the reader's and the operator's.

A reader looks and asks for predictions; an operator may do everything. A token stands in its file, in the
memory of who compares it and in the header of who sends it, and nowhere else.
"""

from __future__ import annotations

import base64
import hmac
import json
import logging
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from twin.app.serving.places import is_loopback
from twin.core.kept import kept_secret
from twin.core.outside import BadInput, json_of
from twin.core.settings import Settings

Role = Literal["reader", "operator"]
ROLES: tuple[Role, ...] = get_args(Role)
_SHORTEST = 20

log = logging.getLogger("twin.serving")


class BadTokens(Exception):
    """The file of tokens is not one that could be relied on."""


@dataclass(frozen=True)
class Tokens:
    of: dict[Role, str] = field(repr=False)

    def role_of(self, authorization: str | None) -> Role | None:
        """Whose token this header has: `Bearer TOKEN`, or `Basic` with the role as user, as a browser asks
        for it."""
        scheme, _, credentials = (authorization or "").partition(" ")
        if scheme.lower() == "bearer":
            return self._owner(credentials.strip())
        if scheme.lower() == "basic":
            try:
                user, _, token = base64.b64decode(credentials, validate=True).decode().partition(":")
            # what is not ASCII is no base64 either, and raises neither of the narrower kinds
            except ValueError:
                return None
            owner = self._owner(token)
            return owner if owner == user else None
        return None

    def _owner(self, token: str) -> Role | None:
        """Compared with every token, in the same time however much of one is right."""
        given = token.encode()
        same = [role for role in ROLES if hmac.compare_digest(given, self.of[role].encode())]
        return same[0] if same else None


def kept_tokens(settings: Settings) -> Tokens:
    """From the file; made up where there is none yet."""
    file = settings.tokens_file
    if file.parent == settings.home:
        settings.folder()
    try:
        text = kept_secret(file, json.dumps({role: secrets.token_urlsafe(32) for role in ROLES}))
        _require_private(file)
    except OSError as error:
        raise BadTokens(f"the tokens in {file} cannot be read or made up: {error.strerror}") from error
    return _checked(file, text)


def tokens_if_needed(settings: Settings) -> Tokens | None:
    """None where only this machine can ask."""
    return None if is_loopback(settings.host) else kept_tokens(settings)


def _require_private(file: Path) -> None:
    """A group that may read is how a cluster hands a file to its own processes: told, not refused."""
    mode = file.stat().st_mode
    if mode & (stat.S_IWGRP | stat.S_IRWXO):
        raise BadTokens(f"{file} can be read or changed by others: make it private with `chmod 600 {file}`")
    if mode & stat.S_IRGRP:
        log.warning("%s can be read by its group", file)


def _checked(file: Path, text: str) -> Tokens:
    try:
        found = json_of(text)
        of: dict[Role, str] = {role: found[role] for role in ROLES}
    except (BadInput, KeyError, TypeError):
        # what was read is not told: it may be a token
        raise BadTokens(f'{file} is not {{"reader": "...", "operator": "..."}}') from None
    if not all(isinstance(one, str) and len(one) >= _SHORTEST and one.isascii() for one in of.values()):
        raise BadTokens(f"a token in {file} is no text of at least {_SHORTEST} plain characters")
    if len(set(of.values())) < len(ROLES):
        raise BadTokens(f"{file} has the same token for both roles")
    return Tokens(of)
