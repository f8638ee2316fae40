"""Recognise responses with stored messages by their content, if the request was not captured.

A pull that waits when a capture begins gets its response inside the capture. RocketMQ:
PullMessageResponseHeader, PopMessageResponseHeader, PopLiteMessageResponseHeader,
QueryMessageResponseHeader.
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
"""field of a pop that a pop of lite topics lacks"""
_QUERIED: Final = ("indexLastUpdateTimestamp", "indexLastUpdatePhyoffset")


def request_code_of_response(
    response_code: int, ext_fields: Mapping[str, str], body: bytes, missing: int = 0
) -> RequestCode | None:
    """Return the request code for a response, or None if its content does not tell.

    `missing`: body bytes that were not captured.
    """
    if response_code != ResponseCode.SUCCESS or missing or not body:
        return None
    code = _code_of_fields(ext_fields)
    if code is None:
        return None
    records = decode_messages(body)  # the fields alone prove nothing: the body must fit, too
    return code if records.messages and not records.problems and not records.rest else None


def _code_of_fields(ext_fields: Mapping[str, str]) -> RequestCode | None:
    if _has_numbers(ext_fields, _PULLED):
        return RequestCode.PULL_MESSAGE
    if _has_numbers(ext_fields, _POPPED):
        if natural_of(ext_fields["popTime"]) == 0:
            return None  # a peek has the header of a pop, with empty values
        if _REST in ext_fields:
            return RequestCode.POP_MESSAGE
        return RequestCode.POP_LITE_MESSAGE
    if _has_numbers(ext_fields, _QUERIED):
        return RequestCode.QUERY_MESSAGE
    return None


def _has_numbers(ext_fields: Mapping[str, str], names: tuple[str, ...]) -> bool:
    return all(natural_of(ext_fields.get(name, "")) is not None for name in names)
