"""Names of a filter beside the columns."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace

import pytest

from dissectors.rows.record import COLUMNS
from dissectors.where.fields import ALIASES, FieldSet, exchange_fields, field_of_column
from dissectors.where.filter import WhereError, compile_where

from ..made_rows import record, unanswered

ROOT = Path(__file__).resolve().parents[3]


def found(expression: str, **changes: object) -> bool:
    return compile_where(expression, exchange_fields())(record(**changes))


@pytest.mark.parametrize(
    "expression",
    [
        "not failed and not bad",
        "failed == false and failed != yes",
        "outcome == SUCCESS",
        "outcome in (success, unanswered)",
        "response == SUCCESS and answer == SUCCESS and code == SUCCESS and code == 0",
        "request == SEND_MESSAGE_V2 and operation ~ ^SEND",
        "client == 10.0.0.5",
        "client ~ '^10[.]0[.]0[.]5:[0-9]+$'",
        "ip == 10.0.0.5 and ip == 10.0.0.1",
        "ip != 10.0.0.6",
        "broker == broker-a and broker == 10.0.0.1",
        "packet > 0 and has time and body == 324",
        "latency == 1.234ms",
    ],
)
def test_what_holds_for_a_good_send(expression: str) -> None:
    assert found(expression)
    assert not found(f"not ({expression})")


def test_what_went_wrong() -> None:
    full = {"response_code": 14, "response_name": "SERVICE_NOT_AVAILABLE", "remark": "disk full"}
    assert found("bad and failed and outcome == SERVICE_NOT_AVAILABLE and note ~ disk", **full)
    silent = compile_where("outcome == unanswered and not failed", exchange_fields())
    assert silent(unanswered())
    assert compile_where("bad and not failed", exchange_fields())(unanswered())
    gone = {"status": "orphan", "request_packet": None, "response_packet": None}
    assert found("outcome == orphan and absent packet", **gone)
    assert found("ip == '::1'", client_address="[::1]:40000")


def test_a_client_is_found_by_its_id_and_by_its_address() -> None:
    for name in ("10.0.0.5@shop", "10.0.0.5", "10.0.0.5:40000"):
        assert found(
            f"client == {name}", client_id="10.0.0.5@shop", client_address="10.0.0.5:40000"
        )
    assert found("client_id ~ @shop$", client_id="10.0.0.5@shop")
    assert not found("client ~ @shop$ or has client_id")


def test_each_name_stands_once() -> None:
    names = [*(column.name for column in COLUMNS), *(alias.name for alias in ALIASES)]
    assert len(set(names)) == len(names)
    assert {column for alias in ALIASES for column in alias.columns} <= set(names)


def test_what_tables_show_can_be_filtered() -> None:
    from rmqtool.decode.exchange_lines import exchange_columns
    from rmqtool.ui.console import Terminal

    heads = [column.title.lower() for column in exchange_columns(Terminal(False, 80, False), 2)]
    assert all(exchange_fields().find(head) is not None for head in heads)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("outcom == SUCCESS", "unknown column: 'outcom'; did you mean outcome or outcome_class?"),
        ("xyzzy == 1", "unknown column: 'xyzzy'; rmqtool help decoded-log lists the columns"),
        ("outcome == DISK_FULL", "outcome is never 'DISK_FULL'"),
        ("failed == maybe", "failed is true or false, not 'maybe'"),
        ("failed > 1", "failed has no order"),
        ("failed ~ x", "failed is not text"),
        ("code == SEND_MESSAGE", "neither a number nor a known name of code"),
    ],
)
def test_what_is_wrong_is_said(expression: str, reason: str) -> None:
    with pytest.raises(WhereError) as caught:
        compile_where(expression, exchange_fields())
    assert reason in caught.value.reason


def test_the_documents_name_them_all() -> None:
    page = (ROOT / "docs" / "decoded-log.md").read_text()
    for alias in ALIASES:
        assert f"| `{alias.name}` | {alias.meaning} |" in page


def test_the_former_value_of_end_is_accepted() -> None:
    row = SimpleNamespace(end="no_response")
    fields = FieldSet([field_of_column("end", "string", "", attrgetter("end"))])
    for expression in ("end == no_answer", "end in (fin, no_answer)", "end == no_response"):
        assert compile_where(expression, fields)(row), expression
    assert not compile_where("end != no_answer", fields)(row)
