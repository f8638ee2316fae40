"""Our tables of body classes have the members that the serializers of real releases write.

The tables are the union of all releases without saying which has what, so every member of a release
must be in them with its type, and every member in them must be of one of the releases, or stand in
the exceptions below with its reason. The serializer is asked: fastjson up to 5.3, fastjson2 in 5.5.
RocketMQ: RemotingSerializable and the classes of its members.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from dissectors.remoting.bodies.classes import CLASSES, ENUMS, ShortMember
from tests.cluster.fixtures import require_jars
from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_4_SERVER, NEWEST_5, class_path
from tests.cluster.servers.class_archive import with_archive
from tests.cluster.servers.processes import java_command

pytestmark = pytest.mark.cluster

EVERY_RELEASE = (NEWEST_4_SERVER, NEWEST_4, "5.3.3", NEWEST_5)
SECONDS = 120

NEVER_SENT = {
    "ClusterAclVersionInfo": "the admin tool makes it of a response header",
    "FileSegmentMetadata": "file of the tiered store",
    "KVConfigSerializeWrapper": "file of the NameServer",
    "OffsetSerializeWrapper": "file of a broadcasting consumer",
    "QueueMetadata": "file of the tiered store",
    "RocksDBOffsetSerializeWrapper": "value in the broker's RocksDB",
    "TieredMetadataSerializeWrapper": "file of the tiered store",
    "TopicMetadata": "file of the tiered store",
    "TransactionMetrics.Metric": "file of the broker",
    "TransactionMetricsSerializeWrapper": "file of the broker",
}
"""Classes that are written as bodies are, but never into a command."""

NOT_IN_A_JAR = {
    "ConsumerOffsetSerializeWrapper.groupTopicMap": "a broker writes its ConsumerOffsetManager",
    "ConsumerOffsetSerializeWrapper.pullOffsetTable": "a broker writes its ConsumerOffsetManager",
    "DataVersion.timestatmp": "so spelled in 3.2.6, which is older than these releases",
    "QueueData.topicSynFlag": "its name from 3.2.6 to 4.6.1",
    "TopicRouteData.topicQueueMappingInfo": "a NameServer that is not Java's writes it",
}
"""Members that are on the wire although the class has no such member."""

OTHER_TYPES = {
    "ConsumerRunningInfo.properties": "java.util.Properties, of text only",
    "RegisterBrokerBody.topicConfigSerializeWrapper": "5.x has a subclass there",
}
"""Members whose type in a jar says less than ours, or another class of the same members."""


class Bodies(NamedTuple):
    """What one release writes."""

    members: dict[str, dict[str, str]]
    """class → member → Java type"""
    enums: dict[str, tuple[str, ...]]
    """enum → constants"""


@pytest.fixture(scope="module", autouse=True)
def _jars() -> None:
    require_jars(EVERY_RELEASE)


@cache
def bodies(release: str) -> Bodies:
    """The body classes of a release, as its own serializer sees them."""
    with TemporaryDirectory(prefix="rmqtool-bodies-") as work:
        command = java_command(class_path(release), "ReflectBodies", [], Path(work), heap="128m")
        run = subprocess.run(
            with_archive(command),
            input="\n".join([*CLASSES, *ENUMS]),
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    assert run.returncode == 0, run.stderr[-2000:]
    answer = json.loads(next(line for line in run.stdout.splitlines() if line.startswith("{")))
    return Bodies(
        {_simple(name): _typed(row["members"]) for name, row in answer["classes"].items()},
        {_simple(name): tuple(constants) for name, constants in answer["enums"].items()},
    )


def _simple(name: str) -> str:
    simple = name.rpartition(".")[2].replace("$", ".")
    # A wrapper is known by its own name, wherever it is nested.
    return simple.rpartition(".")[2] if simple.endswith("SerializeWrapper") else simple


def _typed(members: dict[str, str]) -> dict[str, str]:
    return {
        name: re.sub(r"\blong\[\]", "List<Long>", kind.replace("AtomicLong", "long"))
        for name, kind in members.items()
    }


def own_members() -> Iterator[tuple[str, str]]:
    """(class.member, Java type) of our tables, members by the name on the wire."""
    for name, members in CLASSES.items():
        for member, cell in members.items():
            yield f"{name}.{member}", cell.java_type if isinstance(cell, ShortMember) else cell


@pytest.mark.parametrize("release", EVERY_RELEASE)
def test_no_class_is_missing(release: str) -> None:
    written = bodies(release)
    known = CLASSES.keys() | ENUMS.keys()
    missing = (written.members.keys() | written.enums.keys()) - known
    assert missing - NEVER_SENT.keys() == set()


def test_no_class_is_invented() -> None:
    theirs = {name for release in EVERY_RELEASE for name in bodies(release).members}
    enums = {name for release in EVERY_RELEASE for name in bodies(release).enums}
    assert (CLASSES.keys() - theirs, ENUMS.keys() - enums) == (set(), set())
    assert NEVER_SENT.keys() <= theirs


@pytest.mark.parametrize("release", EVERY_RELEASE)
def test_no_member_is_missing_or_of_another_type(release: str) -> None:
    own = dict(own_members())
    differing = {
        f"{name}.{member}": (own.get(f"{name}.{member}"), kind)
        for name, members in bodies(release).members.items()
        if name in CLASSES
        for member, kind in members.items()
        if own.get(f"{name}.{member}") != kind
    }
    assert differing.keys() - OTHER_TYPES.keys() == set(), differing


def test_no_member_is_invented() -> None:
    theirs = {
        f"{name}.{member}"
        for release in EVERY_RELEASE
        for name, members in bodies(release).members.items()
        for member in members
    }
    assert {member for member, _ in own_members()} - theirs <= NOT_IN_A_JAR.keys()
    assert theirs.isdisjoint(NOT_IN_A_JAR)


def test_enums_have_the_constants_of_the_newest_release() -> None:
    written = bodies(NEWEST_5).enums
    for name, constants in ENUMS.items():
        assert constants == written[name], name
    for release in EVERY_RELEASE:
        for name, constants in bodies(release).enums.items():
            assert set(constants) <= set(written[name]), (release, name)
