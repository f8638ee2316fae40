"""Responses are recognized by their content alone, and only those that leave no doubt."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissectors.decode.pipeline import Decode
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.messages.message import StoredMessage, encode_message
from dissectors.remoting.messages.orphan_responses import request_code_of_response

SAMPLES = Path(__file__).resolve().parents[4] / "samples"
CAPTURES = sorted(path for path in SAMPLES.glob("*.pcap*") if ".expected." not in path.name)
BODY = encode_message(StoredMessage("Orders", b"hello", queue_offset=3)) * 2
PULLED = {"nextBeginOffset": "5", "minOffset": "0", "maxOffset": "9"}
POPPED = {"popTime": "1795337026216", "invisibleTime": "60000", "reviveQid": "1"}
QUERIED = {"indexLastUpdateTimestamp": "1795337026216", "indexLastUpdatePhyoffset": "7"}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        (PULLED, RequestCode.PULL_MESSAGE),
        (PULLED | {"suggestWhichBrokerId": "0"}, RequestCode.PULL_MESSAGE),
        (POPPED | {"restNum": "0"}, RequestCode.POP_MESSAGE),
        (POPPED, RequestCode.POP_LITE_MESSAGE),
        (QUERIED, RequestCode.QUERY_MESSAGE),
    ],
)
def test_what_a_header_and_whole_records_prove(fields: dict[str, str], code: RequestCode) -> None:
    assert request_code_of_response(0, fields, BODY) == code


@pytest.mark.parametrize(
    ("response_code", "fields", "body", "missing"),
    [
        (0, {}, BODY, 0),
        (0, {"nextBeginOffset": "5"}, BODY, 0),
        (0, PULLED | {"maxOffset": "many"}, BODY, 0),
        (0, POPPED | {"popTime": "0", "restNum": "0"}, BODY, 0),
        (19, PULLED, BODY, 0),
        (0, PULLED, b"", 0),
        (0, PULLED, b'{"brokerDatas":[]}', 0),
        (0, PULLED, BODY + b"\0", 0),
        (0, PULLED, BODY[:-1], 0),
        (0, PULLED, BODY[:-1], 1),
    ],
)
def test_anything_else_stays_unknown(
    response_code: int, fields: dict[str, str], body: bytes, missing: int
) -> None:
    assert request_code_of_response(response_code, fields, body, missing) is None


@pytest.mark.slow
def test_no_response_of_the_samples_is_taken_for_another() -> None:
    recognized = 0
    for path in CAPTURES:
        for batch in Decode([str(path)]).exchanges():
            for one in batch:
                if one.request is None or one.response is None:
                    continue
                answer = one.response
                if answer.command.code or not answer.body or answer.missing:
                    continue
                code = request_code_of_response(0, answer.command.ext_fields, answer.body)
                if code is not None:
                    recognized += 1
                    asked = one.request.command.code
                    alike = {RequestCode.LITE_PULL_MESSAGE: RequestCode.PULL_MESSAGE}
                    assert alike.get(asked, asked) == code, path.name
    assert recognized > 500
