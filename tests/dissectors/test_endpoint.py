"""Endpoints as text, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.endpoint import (
    endpoint_of_socket,
    endpoint_text,
    host_and_port_text,
    host_of,
    split_endpoint,
)

NAMES = st.from_regex(r"[a-z][a-z0-9.-]{0,30}", fullmatch=True)
HOSTS = st.one_of(st.ip_addresses().map(str), NAMES)


@given(HOSTS, st.integers(1, 65535))
def test_what_is_written_is_read_again(host: str, port: int) -> None:
    text = endpoint_text(host, port)
    assert split_endpoint(text) == (host, port)
    assert host_and_port_text(text) == (host, str(port))
    assert host_of(text) == host
    assert endpoint_of_socket((host, port, 0, 0)) == text


@given(st.text())
def test_any_text_is_taken_apart_or_refused(text: str) -> None:
    parts = split_endpoint(text)
    assert parts is None or 0 < parts[1] < 65536
    host_and_port_text(text)


@pytest.mark.parametrize(
    "text", ["", ":1", "h", "h:", "h:0", "h:65536", "h:x", "[::1:1", "[]:1", "h:+1", "h:²", "h:-1"]
)
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    assert split_endpoint(text) is None


@pytest.mark.parametrize("name", [None, "", b"/run/socket", (), ("h",)])
def test_a_socket_without_host_and_port_has_no_endpoint(name: object) -> None:
    assert endpoint_of_socket(name) == ""
