"""Byte ranges of fields: bodies are chosen by peers."""

from __future__ import annotations

import time

import pytest

from dissectors.remoting.framing.frame import PREFIX
from dissectors.remoting.header_codec import BINARY_TYPE
from rmqtool.browse.model.detail import Span, secret_spans, spans_of


def masked(body: str, header: bytes = b"{}", serialize_type: int = 0) -> str:
    """Return header and body with a `*` for each range of a credential."""
    data = bytes(PREFIX) + header + body.encode()
    for start, end in reversed(secret_spans(serialize_type, header, body.encode())):
        data = data[:start] + b"*" + data[end:]
    return data[PREFIX:].decode("latin-1").removeprefix("{}")


def test_quotes_without_an_end_take_linear_time() -> None:
    start = time.process_time()
    assert spans_of(0, b"{}", b"{" + b'"\\' * 40_000).keys() == {"length", "serializeType", "body"}
    assert time.process_time() - start < 5  # quadratic work would take a minute


@pytest.mark.parametrize(
    "part",
    [
        '{"password":', "password=", "password='", 'password="', "password=\\\\'", '"password=',
        "\\npassword", "\\u0070", "password", " ", "\\", "\n ", '\\"password\\":\\"\\\\"',
    ],
)  # fmt: skip
def test_credentials_are_found_in_linear_time(part: str) -> None:
    body = (part * 200_000)[:400_000].encode()
    start = time.process_time()
    secret_spans(0, body, body)
    assert time.process_time() - start < 10  # quadratic work would take minutes


def test_a_credential_that_is_cut_off_has_a_range() -> None:
    body = b'{"topic":"Orders","secretKey":"abc\\" def'
    spans = spans_of(0, b"", body)
    at = PREFIX + body.index(b'"abc')
    assert spans["body.secretKey"] == Span(at, PREFIX + len(body))
    assert secret_spans(0, b"", body) == [spans["body.secretKey"]]
    assert masked('{"password":{"a":"hunter2"') == '{"password":*'


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        # each member of that name
        ('[{"password":"a"},{"password":"b"}]', '[{"password":*},{"password":*}]'),
        ('{"passwords":[1,"b"],"id":{"password":7}}', '{"passwords":*,"id":{"password":*}}'),
        ('{"pass\\u0077ord":"a","pass\\x77ord":"b"}', '{"pass\\u0077ord":*,"pass\\x77ord":*}'),
        ("{'password':'a \"b',topic:'T'}", "{'password':*',topic:'T'}"),
        ('{"config":"a=1\\nsecretKey=b, c\\nd=2"}', '{"config":"a=1\\nsecretKey=*\\nd=2"}'),
        ('{"config":"secretKey=b, c"}', '{"config":"secretKey=*"}'),
        ('"{\\"password\\":\\"a\\\\\\"b\\",\\"c\\":1}"', '"{\\"password\\":\\"*\\",\\"c\\":1}"'),
        # properties
        ("a=1\r\nbrokerPassword=a, \"b'c\r\nd=2", "a=1\r\nbrokerPassword=*\r\nd=2"),
        ("brokerPassword=\nnamesrvAddr=a:1", "brokerPassword=\nnamesrvAddr=a:1"),
        (
            'initAuthenticationUser={"username":"r","password":"it\'s-b"}',
            'initAuthenticationUser={"username":"r","password":*}',
        ),
        ("User [password=a, name=b]", "User [password=*, name=b]"),
        ("topic=T, keys: K", "topic=T, keys: K"),
        ('{"a":"http://user:b@host"}', '{"a":"http://user:*@host"}'),
        ("x; password=密码 y", "x; password=* y"),
    ],
)
def test_credentials_have_ranges_wherever_they_are(body: str, shown: str) -> None:
    assert masked(body) == shown


def test_credentials_of_headers_have_ranges() -> None:
    field = b"\0\x09secretKey\0\0\0\x03a b"
    binary = bytes(17) + len(field * 2).to_bytes(4, "big") + field * 2
    assert masked("", binary, BINARY_TYPE).count("secretKey\0\0\0\x03*") == 2
    header = b'{"remark":"secretKey=a, b","extFields":{"AccessKey":"a"}}'
    assert masked("", header) == '{"remark":"secretKey=*","extFields":{"AccessKey":*}}'
    # a length beyond the header
    assert masked("T", binary[:-6] + b"\xff" + binary[-6:], BINARY_TYPE).endswith("*T")
