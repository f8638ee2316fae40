"""Signed requests: credentials, and the signature over ext fields and body.

Rules: a secret comes from the environment or a file and is never shown: `repr`, messages, and
errors name its source. The values of all ext fields, sorted by name, and the body are signed, so
other fields must be added first (namespace, then this, then the zone).
RocketMQ: AclClientRPCHook, AclSigner, AclUtils.combineRequestContent, SessionCredentials.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ACCESS_KEY: Final = "AccessKey"
SIGNATURE: Final = "Signature"
SECURITY_TOKEN: Final = "SecurityToken"

ACCESS_VARIABLE: Final = "ROCKETMQ_ACCESS_KEY"
SECRET_VARIABLE: Final = "ROCKETMQ_SECRET_KEY"
TOKEN_VARIABLE: Final = "ROCKETMQ_SECURITY_TOKEN"

_NAMES: Final = {"accesskey": 0, "secretkey": 1, "securitytoken": 2}
_MAX_FILE: Final = 64 * 1024


class CredentialsError(ValueError):
    """Credentials cannot be read; the text never contains them."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(f"{reason}: {hint}")
        self.reason = reason
        """what is wrong"""
        self.hint = hint
        """how to fix it"""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The account and the keys that sign requests."""

    access_key: str
    """name of the account"""
    secret_key: str = field(repr=False)
    """secret key of signatures"""
    security_token: str = field(default="", repr=False)
    """temporary credential; empty without one"""

    def sign(self, ext_fields: dict[str, str], body: bytes) -> None:
        """Add the account and the signature to the ext fields, replacing an older signature."""
        ext_fields.pop(SIGNATURE, None)
        ext_fields[ACCESS_KEY] = self.access_key
        if self.security_token:
            ext_fields[SECURITY_TOKEN] = self.security_token
        ext_fields[SIGNATURE] = signature_of(ext_fields, body, self.secret_key)


def signature_of(ext_fields: Mapping[str, str], body: bytes, secret_key: str) -> str:
    """Return the HMAC-SHA1, base64, of the ext fields' values in order of names, then body.

    A field named Signature does not count.
    """
    names = sorted(name for name in ext_fields if name != SIGNATURE)
    if not "".join(names).isascii():
        names.sort(key=_java_order)
    content = "".join([ext_fields[name] for name in names]).encode("utf-8", "surrogatepass")
    digest = hmac.digest(secret_key.encode(), content + body, "sha1")
    return base64.b64encode(digest).decode()


def _java_order(name: str) -> bytes:
    # Java compares UTF-16 units; this differs from Python's order beyond the BMP.
    return name.encode("utf-16-be", "surrogatepass")


def credentials_of(variables: Mapping[str, str]) -> Credentials | None:
    """Return credentials from environment variables; None if there are none.

    Raises CredentialsError if only one of the two keys is set.
    """
    access, secret = variables.get(ACCESS_VARIABLE, ""), variables.get(SECRET_VARIABLE, "")
    if not access and not secret:
        return None
    if not access or not secret:
        missing = ACCESS_VARIABLE if not access else SECRET_VARIABLE
        raise CredentialsError(f"{missing} is not set", "set both keys or neither")
    return Credentials(access, secret, variables.get(TOKEN_VARIABLE, ""))


def read_credentials(path: str) -> Credentials:
    """Read credentials from lines `accessKey=…`, `secretKey=…`, and optionally `securityToken=…`.

    `:` instead of `=`, quotes, and comments are accepted, as in the key file of the Java client and
    mqadmin's tools.yml. Raises CredentialsError for a file without both keys, OSError for one that
    cannot be read.
    """
    with Path(path).open("rb") as file:
        text = file.read(_MAX_FILE).decode("utf-8", "replace")
    values = ["", "", ""]
    for line in text.splitlines():
        name, value = _member_of(line.strip())
        place = _NAMES.get(name.replace("_", "").replace("-", "").lower())
        if place is not None:
            values[place] = value
    if not values[0] or not values[1]:
        missing = "secretKey" if values[0] else "accessKey"
        hint = "write accessKey=… and secretKey=…, each on its own line"
        raise CredentialsError(f"{path} has no {missing}", hint)
    return Credentials(*values)


def _member_of(line: str) -> tuple[str, str]:
    """Return the name and value of a line, with = or : between them; empty for a comment."""
    if line.startswith(("#", "//", "!")):
        return "", ""
    ends = [at for at in (line.find("="), line.find(":")) if at > 0]
    if not ends:
        return "", ""
    name, value = line[: min(ends)], line[min(ends) + 1 :].strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return name.strip().strip("\"'"), value
