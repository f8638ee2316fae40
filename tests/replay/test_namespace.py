"""Names in a namespace, as NamespaceUtil wraps them."""

from __future__ import annotations

import pytest

from replay.namespace import namespace_fields, unwrap_namespace, wrap_namespace


@pytest.mark.parametrize(
    ("name", "wrapped"),
    [
        ("topic", "ns%topic"),
        ("ns%topic", "ns%topic"),
        ("%RETRY%group", "%RETRY%ns%group"),
        ("%RETRY%ns%group", "%RETRY%ns%group"),
        ("%DLQ%group", "%DLQ%ns%group"),
        ("TBW102", "TBW102"),
        ("rmq_sys_TRACE_DATA_x", "rmq_sys_TRACE_DATA_x"),
        ("CID_RMQ_SYS_x", "CID_RMQ_SYS_x"),
        ("CLIENT_INNER_PRODUCER", "CLIENT_INNER_PRODUCER"),
    ],
)
def test_names_are_wrapped_once_and_unwrapped(name: str, wrapped: str) -> None:
    assert wrap_namespace("ns", name) == wrapped
    assert wrap_namespace("ns", wrapped) == wrapped
    assert wrap_namespace("", name) == name
    assert unwrap_namespace("ns", wrapped) == name.replace("ns%", "")
    assert unwrap_namespace("other", wrapped) == wrapped


def test_the_fields_of_version_2() -> None:
    assert namespace_fields("ns") == {"nsd": "true", "ns": "ns"}
    assert namespace_fields("") == {}
