"""Names and descriptions of the codes in commands.

Rules: an unknown number has a name, `UNKNOWN(9999)`, and nothing raises. The name functions run
once per command, so each is a dict lookup.
"""

from __future__ import annotations

from functools import lru_cache

from .codes import (
    ACL_FAILURES,
    ACL_REQUESTS,
    DLEDGER_REQUESTS,
    DLEDGER_SUCCESS,
    FORMER_REQUESTS,
    FORMER_RESPONSES,
    RENAMED_REQUESTS,
    LanguageCode,
    RequestCode,
    ResponseCode,
)
from .operation_tables import OPERATION_ROWS, RESPONSE_ROWS, Operation, Response
from .versions import V5_0_0_SNAPSHOT, V5_1_0

UNKNOWN_NAMES_KEPT = 1024  # noise in a capture must not fill the memory with names
_LAST_OLD_CONTROLLER = V5_1_0  # the last release with the old numbers 2010..2012

REQUEST_NAMES: dict[int, str] = {former.code: former.name for former in FORMER_REQUESTS}
REQUEST_NAMES.update((int(code), code.name) for code in RequestCode)
"""Name of every number that a release assigned; `request_name` names the others too."""
_RESPONSE_NAMES: dict[int, str] = {former.code: former.name for former in FORMER_RESPONSES}
_RESPONSE_NAMES.update((int(code), code.name) for code in ResponseCode)
_RELEASED_RESPONSES = {former.code: former.name for former in FORMER_RESPONSES if former.first}
_AMBIGUOUS_RESPONSES = frozenset({DLEDGER_SUCCESS} | (_RELEASED_RESPONSES.keys() - {-2}))
_LANGUAGE_NAMES = {int(code): code.name for code in LanguageCode}
_LANGUAGE_CODES = {code.name: int(code) for code in LanguageCode}


@lru_cache(maxsize=UNKNOWN_NAMES_KEPT)
def _unknown(code: int) -> str:
    return f"UNKNOWN({code})"


def request_name(code: int) -> str:
    """Return the constant name of a request code, or a former one if the number is unused today."""
    # No release has reassigned the number of a removed request, so the version does not matter.
    name = REQUEST_NAMES.get(code)
    return name if name is not None else _unknown(code)


def response_name(code: int, request_code: int | None = None, version: int | None = None) -> str:
    """Return the constant of a response to `request_code`; `version` is the sender's MQVersion.

    209..211 are access control failures in responses to 50..54, 2010..2012 have older meanings from
    5.0.0 to 5.1.0, and DLedger uses 200 for success.
    """
    if code in _AMBIGUOUS_RESPONSES and _is_other_meaning(code, request_code, version):
        return _RELEASED_RESPONSES.get(code, "SUCCESS")
    name = _RESPONSE_NAMES.get(code)
    return name if name is not None else _unknown(code)


def _is_other_meaning(code: int, request_code: int | None, version: int | None) -> bool:
    if code == DLEDGER_SUCCESS:
        return request_code in DLEDGER_REQUESTS
    if code in ACL_FAILURES:
        if request_code is not None:
            return request_code in ACL_REQUESTS
        return version is not None and 0 < version < V5_0_0_SNAPSHOT  # 0: the sender set no version
    return version is not None and V5_0_0_SNAPSHOT <= version <= _LAST_OLD_CONTROLLER


def language_name(code: int) -> str:
    """Return the enum name of a language byte."""
    name = _LANGUAGE_NAMES.get(code)
    return name if name is not None else _unknown(code)


def is_language(name: str) -> bool:
    """Return whether a language name is spelled as in Java's enum."""
    return name in _LANGUAGE_CODES


def language_code(name: str) -> int | None:
    """Return the byte of a language in Java's enum, or None."""
    return _LANGUAGE_CODES.get(name)


# The ROCKETMQ header has 16 bits for the code and Java reads them signed, so a wide code arrives as
# its low 16 bits. The small numbers that wide ones collapse to are not codes themselves.
_WIDE_CODES: dict[int, int] = {
    wire: int(code)
    for code in RequestCode
    if code > 0x7FFF
    for wire in ({code & 0xFFFF, (code & 0xFFFF) - 0x10000} if code & 0x8000 else {code & 0xFFFF})
}


def wide_request_code(wire: int) -> int:
    """Return the real code for the 16 bits of a ROCKETMQ header (signed or unsigned): 3442 is
    200050.
    """
    return _WIDE_CODES.get(wire, wire)


_REQUEST_CODES: dict[str, int] = {former.name: former.code for former in FORMER_REQUESTS}
_REQUEST_CODES.update((name, int(code)) for name, code in RENAMED_REQUESTS.items())
_REQUEST_CODES.update((code.name, int(code)) for code in RequestCode)


def request_code(name: str) -> int | None:
    """Return the number of a request's constant, former names included, or None."""
    return _REQUEST_CODES.get(name)


OPERATIONS: dict[int, Operation] = {
    _REQUEST_CODES[name]: operation for name, operation in OPERATION_ROWS.items()
}
"""Request code → its headers, bodies, direction and mode."""


def operation_of(code: int) -> Operation | None:
    """Return the operation of a request code, or None."""
    return OPERATIONS.get(code)


RESPONSES: dict[int, Response] = {
    int(code): RESPONSE_ROWS[code.name] for code in ResponseCode if code.name in RESPONSE_ROWS
}
"""Response code → meaning and first release."""
