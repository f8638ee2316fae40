"""Groups of a heartbeat: consumers before producers, nothing from what does not parse."""

from __future__ import annotations

import pytest

from dissectors.remoting.heartbeat import MAX_GROUPS, groups_of


def test_consumers_come_before_producers() -> None:
    body = (
        b'{"clientID":"c@1","consumerDataSet":[{"groupName":"g2"},{"groupName":"g1"}],'
        b'"producerDataSet":[{"groupName":"CLIENT_INNER_PRODUCER"},{"groupName":"g1"}]}'
    )
    assert groups_of(body).names == "g1,g2,CLIENT_INNER_PRODUCER"


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"{", b"\xff", b'{"consumerDataSet":3}'])
def test_nothing_from_what_names_none(body: bytes) -> None:
    assert groups_of(body).names is None


def test_the_number_of_groups_is_bounded() -> None:
    members = ",".join(f'{{"groupName":"g{number:04}"}}' for number in range(1000))
    groups = groups_of(f'{{"producerDataSet":[{members}]}}'.encode()).names
    assert groups is not None
    assert groups.count(",") == MAX_GROUPS - 1
