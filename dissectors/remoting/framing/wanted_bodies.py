"""Which bodies a row needs, told from the bytes of the header without decoding it."""

from __future__ import annotations

import re
from typing import Final

from mypy_extensions import i64

from ..header_codec import BINARY_TYPE, first_code_of
from ..row_bodies import CARRYING_REQUESTS, MESSAGE_FIELDS, WANTED_REQUESTS, WANTED_RESPONSE

_SEVERAL: Final = tuple([name.encode() for name in MESSAGE_FIELDS])
_WANTED: Final = frozenset(WANTED_REQUESTS)
_CARRYING: Final = frozenset(CARRYING_REQUESTS)
_FIRST: Final = re.compile(rb'\{"code":-?[0-9]+,')
"""how a header begins that is as Java writes it, or nearly"""
_BINARY_CODES: Final = tuple([code.to_bytes(2, "big") for code in WANTED_REQUESTS])
_BINARY_SUCCESS: Final = WANTED_RESPONSE.to_bytes(2, "big")
_CODE: Final = rb"(?i)[\"']?_?c[_-]?o[_-]?d[_-]?e_?[\"']?\s*:\s*[\"']?(?:%b)(?:\.0*)?[\"']?\s*[,}]"
_ANY_CODE: Final = re.compile(_CODE % b"|".join([b"%d" % code for code in WANTED_REQUESTS]))
_SUCCESS: Final = re.compile(_CODE % b"%d" % WANTED_RESPONSE)
"""answers, of which a route has no ext fields to tell it by"""
ROUTE_LIMIT: Final = 1024 * 1024
"""bytes of the largest body that may be a route; one of a thousand brokers has some 100 KiB"""


def is_wanted(serialize_type: i64, header: bytes, body_length: i64) -> bool:
    """Return whether a row needs something of the body behind a header, which is not decoded."""
    code: i64 = first_code_of(header)
    if code > 0 or (code < 0 and _FIRST.match(header) is not None):
        # As Java writes it, and no good response: a batch send, or a heartbeat for its groups.
        return code > 0 and int(code) in _WANTED
    for name in _SEVERAL:
        if header.find(name) >= 0:  # `in` tries the name as a number first: five times as long
            return True
    route = body_length <= ROUTE_LIMIT
    if serialize_type == BINARY_TYPE:
        if header.startswith(_BINARY_CODES):
            return True
        return route and header.startswith(_BINARY_SUCCESS)
    if route and _SUCCESS.search(header) is not None:
        return True
    return _ANY_CODE.search(header) is not None


def may_carry(header: bytes) -> bool:
    """Return whether messages may be in the body behind a header, or what `is_wanted` tells of."""
    code: i64 = first_code_of(header)
    return code <= 0 or int(code) in _CARRYING
