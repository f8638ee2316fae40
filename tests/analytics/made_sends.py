"""Sends made up for tests of attempts: what is not said is a plain send that was stored."""

from __future__ import annotations

from analytics.sends.attempts import ConnectFailure, Send

START = 1_795_000_000_000_000
VERSIONS = {"V4_9_8": 409, "V5_1_3": 439, "V5_2_0": 453, "V5_3_3": 479}

_PLAIN = Send(
    unique_key="K",
    host="10.0.0.9",
    group="g",
    topic="T",
    client_address="10.0.0.9:40000",
    server_address="10.0.0.1:10911",
    broker="a",
    asked_broker="a",
    queue_id=0,
    opaque=1,
    begin=START,
    end=None,
    status="unanswered",
    response_code=None,
    response_name=None,
    remark=None,
    how_ended=None,
    language="JAVA",
    version=VERSIONS["V5_3_3"],
    version_name="V5_3_3",
    source="s",
    capture="c",
    conversation=0,
    request_packet=1,
    response_packet=None,
    offset_msg_id=None,
    lead=None,
    connected=None,
    closed=None,
    ended_by=None,
    whole=True,
)


def answered(at: int = 0, code: int = 0, after: int = 1000, **values: object) -> Send:
    """Return a send at START + `at` µs that was answered `after` µs later."""
    stored = code in (0, 10, 11, 12)
    given = {
        "begin": START + at,
        "end": START + at + after,
        "status": "answered",
        "response_code": code,
        "response_name": f"CODE_{code}" if code else "SUCCESS",
        "response_packet": 2,
        "offset_msg_id": f"offset-{at}" if stored else None,
        "opaque": 1 + at,
    }
    return _PLAIN._replace(**{**given, **values})


def silent(at: int = 0, ended: str = "closed", by: str = "client", **values: object) -> Send:
    """Return a send at START + `at` µs without answer, of which the connection ended."""
    given = {"begin": START + at, "how_ended": ended, "ended_by": by, "opaque": 1 + at}
    return _PLAIN._replace(**{**given, **values})


def failure(at: int, broker: str = "b", refused: bool = True, lasted: int = 100) -> ConnectFailure:
    """Return a connect at START + `at` µs that failed."""
    begin = START + at
    return ConnectFailure(
        "10.0.0.9", "10.0.0.2:10911", broker, begin, begin + lasted, refused, "s", "c", 9
    )
