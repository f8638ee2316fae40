"""Byte ranges of fields: bodies are chosen by peers."""

from __future__ import annotations

import time

from dissectors.remoting.framing.frame import PREFIX
from rmqtool.browse.model.detail import Span, secret_spans, spans_of


def test_quotes_without_an_end_take_linear_time() -> None:
    start = time.process_time()
    assert spans_of(0, b"{}", b"{" + b'"\\' * 40_000).keys() == {"length", "serializeType", "body"}
    assert time.process_time() - start < 5  # quadratic work would take a minute


def test_a_credential_that_is_cut_off_has_a_range() -> None:
    body = b'{"topic":"Orders","secretKey":"abc\\" def'
    spans = spans_of(0, b"", body)
    at = PREFIX + body.index(b'"abc')
    assert spans["body.secretKey"] == Span(at, PREFIX + len(body))
    assert secret_spans(spans) == [spans["body.secretKey"]]
