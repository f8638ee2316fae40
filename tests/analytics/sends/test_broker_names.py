"""What a broker is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.analytics.rows import report_input, row

if TYPE_CHECKING:
    from collections.abc import Mapping


A, B, C = "10.0.0.1:10911", "10.0.0.2:10911", "10.0.0.3:8080"


def asked(
    server_address: str, broker: str | None, times: int = 1, **values: object
) -> list[dict[str, object]]:
    """Return requests to an address that name a broker."""
    return [row(server_address=server_address, broker_name=broker, **values) for _ in range(times)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([*asked(A, "a", 9), *asked(A, "b")], {A: "a"}, id="few name another"),
        pytest.param(asked(A, None, 3), {}, id="nobody names it"),
        pytest.param([*asked(C, "a"), *asked(C, "b")], {}, id="a proxy"),
        pytest.param([*asked(C, "a", 9), *asked(C, "b")], {C: "a"}, id="a proxy for nearly one"),
        pytest.param(
            [*asked(A, "a", 9), *asked(B, "b", 2), *asked(B, "a", 2)],
            {A: "a", B: "b"},
            id="half are retries of asynchronous sends to the other",
        ),
        pytest.param(
            asked("10.0.0.4:9876", "a", request_name="REGISTER_BROKER"), {}, id="a name server"
        ),
        pytest.param(
            [*asked(A, "a", 2), *asked("10.0.0.1:10909", "a", 2)],
            {A: "a", "10.0.0.1:10909": "a"},
            id="two addresses of one",
        ),
    ],
)
def test_an_address_has_the_name_that_is_at_home_there(
    rows: list[dict[str, object]], expected: Mapping[str, str]
) -> None:
    from analytics.sends.broker_names import broker_names

    given = report_input(rows)
    found = given.kept.rows(broker_names(given)).to_pylist()
    asked_at = {str(one["server_address"]) for one in rows}  # VIP channels have the name, too
    named = {one["server_address"]: one["broker"] for one in found}
    assert {address: named[address] for address in named if address in asked_at} == expected


def test_an_address_without_a_name_is_called_by_itself() -> None:
    from analytics.sends.broker_names import broker_names, with_names

    given = report_input([*asked(A, "a"), *asked(B, None), *asked(B, None)])
    frame = with_names(given.exchanges, broker_names(given))
    assert sorted(given.kept.rows(frame).column("broker").to_pylist()) == [B, B, "a"]
