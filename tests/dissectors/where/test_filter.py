"""Filters: what they find, and what a wrong one says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.versions import HIGHER_VERSION, VERSIONS
from dissectors.where.fields import exchange_fields
from dissectors.where.filter import WhereError, compile_where

from ..made_rows import record, unanswered


def found(expression: str, **changes: object) -> bool:
    return compile_where(expression, exchange_fields())(record(**changes))


@pytest.mark.parametrize(
    "expression",
    [
        "latency > 1ms",
        "latency > 1.233ms",
        "latency >= 1234us and latency <= 1234us",
        "latency == 1.234ms",
        "latency < 1.2341 ms",
        "latency < 2 s",
        "latency > 0",
        "latency_us == 1234",
        "latency_us > 1233.5 and latency_us < 1234.5",
        "latency < 1h and latency < 1min and latency > 100ns",
        "body_bytes < 4KiB",
        "body_bytes < 1kB and body_bytes > 300B",
        "body_bytes == 324",
        "topic == OrderTopic",
        "topic = OrderTopic",
        'topic == "OrderTopic"',
        "topic == 'OrderTopic'",
        'topic ~ "^Order"',
        "topic ~ ^Order",
        "topic !~ ^Pay",
        'keys ~ "order-[12] "',
        "topic in (A, OrderTopic, 'B C')",
        "topic not in (A, B)",
        "topic != A",
        "request_name == SEND_MESSAGE_V2",
        "request_name == send_message_v2",
        "request_name in (SEND_MESSAGE, SEND_MESSAGE_V2)",
        "request_code == SEND_MESSAGE_V2",
        "request_code == 310",
        "request_code in (10, 310)",
        "response_code == SUCCESS",
        "version >= V4_9_0 and version < V5_0_0",
        "status == answered",
        "serialize_type == json",
        "has latency_us and has topic",
        "absent remark",
        "not has remark",
        "absent findings",
        "client_address ~ '^10[.]0[.]0[.]5:'",
        "server_address == 10.0.0.1:10911",
        "request_time >= 2026-11-20T10:00:00",
        "request_time < 2026-11-20T10:00:00.123456790Z",
        "request_time < '2026-11-20 10:01'",
        "request_time >= 2026-11-20T18:00:00+08:00",
        "request_time >= 2026-11-20 and request_time < 2026-11-21",
        "request_time >= 10:00 and request_time < 10:00:01",
        "request_time >= 02:00+08:00 and request_time < 05:31-04:30",
        "topic == X or topic == OrderTopic",
        "topic == X or topic == Y or topic == OrderTopic",
        "not topic == X and not (status == unanswered or queue_id == 4)",
        "not not has topic",
        "! has remark && status == answered || topic == X",
        "TOPIC == X or topic == OrderTopic".replace("TOPIC", "topic"),
        "topic == OrderTopic AND queue_id IN (3)",
        "missing_bytes == 0",
        "response_time > 2026-11-20T10:00:00.12Z",
    ],
)
def test_finds_the_good_exchange(expression: str) -> None:
    assert found(expression)
    assert not found(f"not ({expression})")


@pytest.mark.parametrize(
    "expression",
    [
        "latency > 50ms",
        "latency > 1.234ms",
        "topic == ordertopic",
        "topic ~ '^order'",
        "body_bytes > 4KiB",
        "status in (unanswered, orphan)",
        "request_time >= 10:00:01",
        "findings == GAP",
        "topic == A or topic == B and status == answered",
    ],
)
def test_does_not_find_the_good_exchange(expression: str) -> None:
    assert not found(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "latency > 0",
        "latency <= 1h",
        "response_code != 0",
        "response_code == 0",
        "response_code not in (1, 2)",
        "response_name ~ ''",
        "response_name !~ x",
        "response_time >= 1970-01-01",
        "response_time >= 00:00",
        "has response_code",
    ],
)
def test_a_comparison_with_an_absent_value_is_false(expression: str) -> None:
    test = compile_where(expression, exchange_fields())
    assert not test(unanswered())
    assert compile_where(f"not ({expression})", exchange_fields())(unanswered())


def test_lists() -> None:
    assert found("findings == GAP", findings=["MIDSTREAM", "GAP"])
    assert found("findings in (BAD_BODY, GAP)", findings=["GAP"])
    assert found("findings ~ ^BAD_", findings=["GAP", "BAD_BODY"])
    assert found("has findings", findings=["GAP"])
    assert found("findings != GAP")
    assert found("findings not in (GAP, BAD_BODY)")
    assert not found("findings != GAP", findings=["MIDSTREAM", "GAP"])


def test_and_binds_closer_than_or() -> None:
    assert found("topic == OrderTopic or topic == X and topic == Y")
    assert not found("(topic == OrderTopic or topic == X) and topic == Y")


def test_a_name_of_old_finds_the_operation() -> None:
    changes = {"request_code": 105, "request_name": "GET_ROUTEINFO_BY_TOPIC"}
    assert found("request_name == GET_ROUTEINTO_BY_TOPIC", **changes)
    assert found("request_code == GET_ROUTEINTO_BY_TOPIC", **changes)


@pytest.mark.parametrize(
    ("release", "first", "last"),
    [
        ("5", "V5_0_0_SNAPSHOT", "V5_9_9"),
        ("5.0", "V5_0_0_SNAPSHOT", "V5_0_9"),
        ("5.3", "V5_3_0_SNAPSHOT", "V5_3_9"),
        ("4.9.4", "V4_9_4", "V4_9_4"),
        ("4.9.4-SNAPSHOT", "V4_9_4_SNAPSHOT", "V4_9_4_SNAPSHOT"),
        ("V4_9_4", "V4_9_4", "V4_9_4"),
        ("4.2.0", "V4_2_0_SNAPSHOT", "V4_2_0"),
        ("3.0.0", "V3_0_0_SNAPSHOT", "V3_0_0_FINAL"),
        ("3", "V3_0_0_SNAPSHOT", "V3_9_9"),
        ("0", "V3_0_0_SNAPSHOT", "V3_0_0_SNAPSHOT"),
        ("453", "V5_2_0", "V5_2_0"),
    ],
)
def test_versions_compare_as_releases(release: str, first: str, last: str) -> None:
    start, end = VERSIONS.index(first), VERSIONS.index(last)
    expected: dict[str, Callable[[int], bool]] = {
        "<": lambda version: version < start,
        "<=": lambda version: version <= end,
        "==": lambda version: start <= version <= end,
        "!=": lambda version: not start <= version <= end,
        ">=": lambda version: version >= start,
        ">": lambda version: version > end,
    }
    for operator, holds in expected.items():
        test = compile_where(f"version {operator} {release}", exchange_fields())
        for version in range(HIGHER_VERSION + 2):
            assert test(record(version=version)) == holds(version), (operator, version)
        assert not test(record(version=None))
    in_list = compile_where(f"version in (V3_2_6, {release})", exchange_fields())
    assert in_list(record(version=end))


def test_an_unknown_code_can_be_asked_for() -> None:
    assert found("request_name == 'UNKNOWN(9999)'", request_name="UNKNOWN(9999)")


def test_a_quote_and_a_backslash_in_quotes() -> None:
    assert found(r'''topic == "a\"b\\c"''', topic='a"b\\c')
    assert found(r'''topic ~ "^a\"\d\\$"''', topic='a"1\\')


@pytest.mark.parametrize(
    ("expression", "marked", "reason"),
    [
        ("topik == A", "topik", "did you mean topic?"),
        ("topic == A and latncy > 5ms", "latncy", "did you mean latency"),
        ("RequestCode == 1", "RequestCode", "request_code"),
        ("latency > 50", "50", "50ms"),
        ("latency > 50kb", "50kb", "not a unit of latency"),
        ("body_bytes > 5ms", "5ms", "B, kB, KiB"),
        ("queue_id > 5ms", "5ms", "has no unit"),
        ("queue_id > five", "five", "is a number"),
        ("request_code == SEND_MESSAG", "SEND_MESSAG", "neither a number nor a known name"),
        ("version >= 5.10", "5.10", "neither a number nor a known name of version"),
        ("version < 6", "6", "neither a number nor a known name of version"),
        ("version in (5.0, 6.0)", "6.0", "neither a number nor a known name of version"),
        ("status == unansweredd", "unansweredd", "did you mean unanswered"),
        ("request_name == SEND_MESAGE_V2", "SEND_MESAGE_V2", "did you mean SEND_MESSAGE_V2"),
        ("findings == GAPS", "GAPS", "did you mean GAP"),
        ("request_time > yesterday", "yesterday", "is a time, like 2026"),
        ("topic > A", ">", "has no order"),
        ("version_name >= V4_9_0", ">=", "`version` is the number"),
        ("queue_id ~ 3", "~", "is not text"),
        ("topic", "", "after topic"),
        ("topic ==", "", "expected a value"),
        ("", "", "expected a column name"),
        ("and", "and", "expected a column name"),
        ("topic == A B", "B", "quotes"),
        ("topic == A topic == B", "topic", "`and`, `or` or the end"),
        ("(topic == A", "(", "unclosed"),
        ("topic == A)", ")", "`and`, `or` or the end"),
        ("topic in A", "A", "list in parentheses"),
        ("topic in (A B)", "B", "comma"),
        ("topic in ()", ")", "expected a value"),
        ("topic == 'A", "'", "unclosed"),
        ("topic ~ '^(a'", "(", "unclosed"),
        ("topic ~ (a", "(", "expected a value"),
        ("topic ~ a|b", "|", "quotes"),
        ("topic ~ '(a+)+[z-a]'", "z", "empty range"),
        ("has", "", "column name"),
        ("not", "", "column name"),
        ("(" * 100 + "topic == A" + ")" * 100, "(", "too deep"),
    ],
)
def test_an_error_points_at_the_place(expression: str, marked: str, reason: str) -> None:
    with pytest.raises(WhereError) as caught:
        compile_where(expression, exchange_fields())
    error = caught.value
    assert reason in error.reason
    assert expression[error.position : error.position + error.length] == marked
    line, carets = error.pointed().split("\n")
    assert line == f"  {expression}"
    assert carets == "  " + " " * error.position + "^" * max(1, len(marked))


def test_the_caret_is_under_the_line_that_is_wrong() -> None:
    with pytest.raises(WhereError) as caught:
        compile_where("topic == A\nand topik == B\nand queue_id == 1", exchange_fields())
    assert caught.value.pointed() == "  and topik == B\n      ^^^^^"


_WORDS = st.sampled_from(
    [
        "topic",
        "latency",
        "queue_id",
        "findings",
        "request_time",
        "==",
        "!=",
        "<",
        "~",
        "in",
        "(",
        ")",
        ",",
        "and",
        "or",
        "not",
        "has",
        "absent",
        "5ms",
        "3",
        "A",
        "'x'",
        '"^a"',
        "10:00",
        "2026-11-20",
        "!",
        "\\",
        "'",
        "GAP",
    ]
)


@given(st.lists(_WORDS, max_size=12).map(" ".join) | st.text(max_size=30))
def test_any_text_is_a_filter_or_a_where_error(expression: str) -> None:
    error = None
    try:
        test = compile_where(expression, exchange_fields())
    except WhereError as wrong:
        error = wrong
    if error is None:
        assert test(record()) in (True, False)
        assert test(unanswered(request_time=None, topic=None, findings=["GAP"])) in (True, False)
    else:
        assert error.reason
        assert error.pointed()
        assert 0 <= error.position <= len(expression)
