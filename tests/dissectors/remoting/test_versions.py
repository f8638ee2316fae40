"""MQVersion ordinals: the names of all constants, releases, and numbers outside the table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.versions import (
    HIGHER_VERSION,
    VERSIONS,
    ordinal_of,
    release_of,
    version_name,
)

from .protocol_facts import table


@pytest.mark.parametrize(
    ("ordinal", "name", "release"),
    [
        (0, "V3_0_0_SNAPSHOT", "3.0.0-SNAPSHOT"),
        (7, "V3_0_0_BETA6_SNAPSHOT", "3.0.0-BETA6-SNAPSHOT"),
        (15, "V3_0_0_FINAL", "3.0.0-FINAL"),
        (45, "V3_0_15", "3.0.15"),
        (87, "V3_3_1", "3.3.1"),
        (252, "V4_2_0_SNAPSHOT", "4.2.0-SNAPSHOT"),
        (373, "V4_8_0", "4.8.0"),
        (400, "V4_9_4_SNAPSHOT", "4.9.4-SNAPSHOT"),
        (401, "V4_9_4", "4.9.4"),
        (413, "V5_0_0", "5.0.0"),
        (479, "V5_3_3", "5.3.3"),
        (611, "V5_9_9", "5.9.9"),
    ],
)
def test_known_ordinals(ordinal: int, name: str, release: str) -> None:
    assert version_name(ordinal) == name
    assert release_of(ordinal) == release
    assert ordinal_of(name) == ordinal_of(release) == ordinal


def test_numbers_outside_the_table_are_not_invented() -> None:
    assert HIGHER_VERSION == 612
    assert version_name(612) == release_of(612) == "HIGHER_VERSION"
    assert version_name(613) == release_of(613) == "HIGHER_VERSION(613)"
    assert version_name(-1) == release_of(-1) == "UNKNOWN(-1)"
    assert ordinal_of("V6_0_0") is None
    assert ordinal_of("") is None


@given(st.integers())
def test_any_number_has_a_name(ordinal: int) -> None:
    assert version_name(ordinal)
    assert release_of(ordinal)


@given(st.integers(0, HIGHER_VERSION - 1))
def test_names_and_releases_lead_back(ordinal: int) -> None:
    assert ordinal_of(version_name(ordinal)) == ordinal
    assert ordinal_of(release_of(ordinal)) == ordinal


def test_versions_are_those_of_the_protocol() -> None:
    assert table("mq_versions.json")["ordinals"] == {
        name: ordinal for ordinal, name in enumerate(VERSIONS)
    }
