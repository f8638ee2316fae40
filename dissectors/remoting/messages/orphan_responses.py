"""Recognize a response with stored messages by its own content, when its request was not captured.

A pull that waits when a capture begins is answered within it. Rules: the ext fields have to be
those of one operation alone, and the body has to be whole stored records; anything else stays
unknown. RocketMQ: PullMessageResponseHeader, PopMessageResponseHeader,
PopLiteMessageResponseHeader, QueryMessageResponseHeader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...foreign import natural_of
from ..codes import RequestCode, ResponseCode
from .records import decode_messages

_PULLED: Final = ("nextBeginOffset", "minOffset", "maxOffset")
_POPPED: Final = ("popTime", "invisibleTime", "reviveQid")
_REST: Final = "restNum"
"""what a pop says beyond a pop of lite topics"""
_QUERIED: Final = ("indexLastUpdateTimestamp", "indexLastUpdatePhyoffset")


def request_code_of_response(
    response_code: int, ext_fields: Mapping[str, str], body: bytes, missing: int = 0
) -> RequestCode | None:
    """Return the code of the request that a response answers; None if its content does not say.

    `missing`: bytes of the body that were not captured.
    """
    if response_code != ResponseCode.SUCCESS or missing or not body:
        return None
    code = _code_of_fields(ext_fields)
    if code is None:
        return None
    records = decode_messages(body)
    return code if records.messages and not records.problems and not records.rest else None


def _code_of_fields(ext_fields: Mapping[str, str]) -> RequestCode | None:
    if _has_numbers(ext_fields, _PULLED):
        return RequestCode.PULL_MESSAGE
    if _has_numbers(ext_fields, _POPPED):
        if natural_of(ext_fields["popTime"]) == 0:
            return None  # a peek has the header of a pop, with nothing in it
        if _REST in ext_fields:
            return RequestCode.POP_MESSAGE
        return RequestCode.POP_LITE_MESSAGE
    if _has_numbers(ext_fields, _QUERIED):
        return RequestCode.QUERY_MESSAGE
    return None


def _has_numbers(ext_fields: Mapping[str, str], names: tuple[str, ...]) -> bool:
    return all(natural_of(ext_fields.get(name, "")) is not None for name in names)
