"""Trace contexts in message properties: examples of the specifications, noise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.ids.trace_context import Sw8, TraceParent, decode_sw8, decode_traceparent

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SW8 = "1-TRACEID-SEGMENTID-3-U0VSVklDRQ==-SU5TVEFOQ0U=-RU5EUE9JTlQ=-MTAuMC4wLjE6OTg3Ng=="


def test_a_traceparent() -> None:
    found = decode_traceparent(TRACEPARENT)
    assert found == TraceParent(0, "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", True)
    later = decode_traceparent("cc" + TRACEPARENT[2:-1] + "8-what-the-future-will-be-like")
    assert later is not None
    assert (later.version, later.sampled) == (0xCC, False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        TRACEPARENT.upper(),
        TRACEPARENT + "-more",
        "ff" + TRACEPARENT[2:],
        "00-" + "0" * 32 + "-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-" + "0" * 16 + "-01",
        TRACEPARENT[:-1],
    ],
)
def test_what_is_no_traceparent(text: str) -> None:
    assert decode_traceparent(text) is None


def test_an_sw8() -> None:
    text = SW8.replace("TRACEID", "dHJhY2U=").replace("SEGMENTID", "c2VnbWVudA==")
    assert decode_sw8(text) == Sw8(
        True, "trace", "segment", 3, "SERVICE", "INSTANCE", "ENDPOINT", "10.0.0.1:9876"
    )


@pytest.mark.parametrize("text", ["", "1", "2-a-b-3-a-b-c-d", SW8, "1-----3--", SW8 + "-x"])
def test_what_is_no_sw8(text: str) -> None:
    assert decode_sw8(text) is None


@given(st.text(max_size=100) | st.text("0123456789abcdef-=", max_size=80))
def test_any_text(text: str) -> None:
    decode_traceparent(text)
    decode_sw8(text)
