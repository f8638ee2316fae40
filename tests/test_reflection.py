"""Our tables say of each RocketMQ release what its own jars say, by reflection: all of it, no more.

The tables are the union of all releases with `since` and `until`, so for a release they are cut to
what it should have and compared whole. What remains different stands in the exceptions below with
its reason, and an exception that no longer applies fails too.
RocketMQ: RequestCode, ResponseCode, LanguageCode, MQVersion, MessageConst, CommandCustomHeader.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

import pytest

from dissectors.remoting.code_names import OPERATIONS, RESPONSES
from dissectors.remoting.codes import (
    FORMER_REQUESTS,
    FORMER_RESPONSES,
    FormerCode,
    LanguageCode,
    RequestCode,
    ResponseCode,
    SerializeType,
)
from dissectors.remoting.header_tables import FieldType, HeaderField
from dissectors.remoting.headers import HEADERS
from dissectors.remoting.messages.properties import PROPERTIES
from dissectors.remoting.operation_tables import Operation
from dissectors.remoting.topic_names import NOT_FOR_SENDS, SYSTEM_TOPICS
from dissectors.remoting.versions import VERSIONS
from tests.cluster.clients.oracle import reflect
from tests.cluster.fixtures import require_jars
from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_4_SERVER, NEWEST_5

pytestmark = pytest.mark.cluster

EVERY_RELEASE = (NEWEST_4_SERVER, NEWEST_4, "5.3.3", NEWEST_5)
V4 = (NEWEST_4_SERVER, NEWEST_4)
V5 = ("5.3.3", NEWEST_5)

Exceptions = dict[tuple[str, str], str]
"""(release, name) → why the jar differs from what `since` and `until` say."""

REQUEST_EXCEPTIONS: Exceptions = {
    (NEWEST_4, "GET_BROKER_CLUSTER_ACL_CONFIG"): "gone in 4.9.8, but 5.x had it up to 5.3.2",
}
LANGUAGE_EXCEPTIONS: Exceptions = {
    **{(release, "NODE_JS"): "came with 5.x" for release in V4},
}
FIELD_EXCEPTIONS: Exceptions = {
    (NEWEST_4_SERVER, "GetBrokerClusterAclConfigResponseHeader.plainAccessConfigs"): (
        "a list in Java, which no header can carry: its text is written, and nothing is read"
    ),
}
CLASS_EXCEPTIONS: Exceptions = {
    **{
        (release, "GetAllTopicConfigResponseHeader"): "had no field up to 5.3.3"
        for release in (*V4, "5.3.3")
    },
    **{
        (release, name): "of no operation, so nothing tells that it came with 5.0.0"
        for release in V4
        for name in ("InitConsumerOffsetRequestHeader", "StatisticsMessagesRequestHeader")
    },
    **{
        (release, name): "went with 5.0.0, while the code's constant stayed"
        for release in V5
        for name in (
            "RegisterFilterServerRequestHeader",
            "RegisterFilterServerResponseHeader",
            "RegisterMessageFilterClassRequestHeader",
        )
    },
    (NEWEST_4, "GetBrokerClusterAclConfigResponseHeader"): "gone in 4.9.8 with its code",
}

NO_PROPERTY_NAMES = {
    "KEY_SEPARATOR": "separates the keys in the value of KEYS",
    "PROPERTY_TRANSIENT_PREFIX": "begins the names of properties that stay in a process",
    "INDEX_KEY_TYPE": "value of indexType in a query",
    "INDEX_UNIQUE_TYPE": "value of indexType in a query",
    "INDEX_TAG_TYPE": "value of indexType in a query",
    "TIMER_ENGINE_TYPE": "ext field of SWITCH_TIMER_ENGINE",
    "TIMER_ENGINE_ROCKSDB_TIMELINE": "its value",
    "TIMER_ENGINE_FILE_TIME_WHEEL": "its value",
}
"""Constants of MessageConst that name no property."""

JAVA_TYPES = {
    "String": FieldType.STRING,
    "int": FieldType.INT,
    "Integer": FieldType.INT,
    "long": FieldType.LONG,
    "Long": FieldType.LONG,
    "boolean": FieldType.BOOLEAN,
    "Boolean": FieldType.BOOLEAN,
    "double": FieldType.DOUBLE,
    "Double": FieldType.DOUBLE,
    "BoundaryType": FieldType.BOUNDARY,
}


@pytest.fixture(scope="module", autouse=True)
def _jars() -> None:
    require_jars(EVERY_RELEASE)


# -- releases ---------------------------------------------------------------------------------


def rank(release: str) -> tuple[object, ...]:
    """Order of releases; `5.0.0-ALPHA` is before `5.0.0`, `>5.5.0` after `5.5.0`."""
    number, _, stage = release.removeprefix(">").partition("-")
    parts = tuple(int(part) for part in number.split("."))
    return (*parts, 0 if stage else 1, stage, release.startswith(">"))


def there(release: str, since: str, until: str = "") -> bool:
    """Whether what came with `since` and went after `until` is in a release."""
    if since and not re.fullmatch(r">?\d+\.\d+\.\d+(-[A-Z]+)?", since):
        return False  # `dledger 0.4.0`: another program
    begun = not since or rank(since) <= rank(release)
    return begun and (not until or rank(release) <= rank(until))


def former(codes: Iterable[FormerCode], release: str) -> dict[str, int]:
    """The codes of a release that went away later."""
    return {
        code.name: code.code
        for code in codes
        if code.first and there(release, code.first, code.last)
    }


def test_releases_are_in_order() -> None:
    releases = ["4.0.0", "4.9.8", "5.0.0-ALPHA", "5.0.0-PREVIEW", "5.0.0", "5.5.0", ">5.5.0"]
    assert sorted(releases, key=rank) == releases


@cache
def jar(release: str) -> Mapping[str, Mapping[str, object]]:
    """Constants of a release: table → name → value."""
    return reflect(release)["tables"]


def differences(
    release: str, own: Mapping[str, object], theirs: Mapping[str, object], exceptions: Exceptions
) -> dict[str, tuple[object, object]]:
    """Name → (ours, the jar's) where they differ; what an exception explains is left out."""
    differing = {
        name: (own.get(name), theirs.get(name))
        for name in own.keys() | theirs.keys()
        if own.get(name) != theirs.get(name)
    }
    explained = {name for where, name in exceptions if where == release}
    assert explained <= differing.keys(), "an exception that is none"
    return {name: values for name, values in differing.items() if name not in explained}


# -- codes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", EVERY_RELEASE)
def test_request_codes(release: str) -> None:
    own = {
        code.name: int(code)
        for code in RequestCode
        if there(release, OPERATIONS[code].since) and not code.name.startswith("DLEDGER_")
    }
    own |= former(FORMER_REQUESTS, release)
    assert differences(release, own, jar(release)["RequestCode"], REQUEST_EXCEPTIONS) == {}


@pytest.mark.parametrize("release", EVERY_RELEASE)
def test_response_codes(release: str) -> None:
    own = {code.name: int(code) for code in ResponseCode if there(release, RESPONSES[code].since)}
    own |= former(FORMER_RESPONSES, release)
    theirs = {**jar(release)["RemotingSysResponseCode"], **jar(release)["ResponseCode"]}
    assert differences(release, own, theirs, {}) == {}


@pytest.mark.parametrize("release", EVERY_RELEASE)
def test_languages_and_serialize_types(release: str) -> None:
    own = {code.name: int(code) for code in LanguageCode}
    assert differences(release, own, jar(release)["LanguageCode"], LANGUAGE_EXCEPTIONS) == {}
    assert {kind.name: int(kind) for kind in SerializeType} == jar(release)["SerializeType"]


@pytest.mark.parametrize("release", EVERY_RELEASE)
def test_versions(release: str) -> None:
    own = {name: ordinal for ordinal, name in enumerate(VERSIONS)}
    assert own == jar(release)["MQVersion$Version"]


# -- properties -------------------------------------------------------------------------------


@pytest.mark.parametrize("release", V5)
def test_property_names_are_those_of_the_release(release: str) -> None:
    constants = jar(release)["MessageConst"]
    theirs = {name: value for name, value in constants.items() if name not in NO_PROPERTY_NAMES}
    own = {one.constant: one.name for one in PROPERTIES if there(release, one.since)}
    assert differences(release, own, theirs, {}) == {}


def test_no_property_names_are_constants() -> None:
    assert NO_PROPERTY_NAMES.keys() <= jar(NEWEST_5)["MessageConst"].keys()


@pytest.mark.parametrize("release", V5)
def test_reserved_properties(release: str) -> None:
    own = {one.name for one in PROPERTIES if one.reserved and there(release, one.since)}
    assert own == jar(release)["MessageConst.STRING_HASH_SET"].keys()


def test_system_topics() -> None:
    """Those of the newest release, of which older ones have some."""
    newest = jar(NEWEST_5)
    assert newest["TopicValidator.SYSTEM_TOPIC_SET"].keys() == SYSTEM_TOPICS
    assert newest["TopicValidator.NOT_ALLOWED_SEND_TOPIC_SET"].keys() == NOT_FOR_SENDS
    for release in EVERY_RELEASE:
        assert jar(release)["TopicValidator.SYSTEM_TOPIC_SET"].keys() <= SYSTEM_TOPICS


@pytest.mark.parametrize("release", EVERY_RELEASE)
def test_properties_never_changed_their_names(release: str) -> None:
    newest = jar(NEWEST_5)["MessageConst"]
    for constant, value in jar(release)["MessageConst"].items():
        assert newest[constant] == value


# -- headers ----------------------------------------------------------------------------------


@cache
def jar_headers(release: str) -> Mapping[str, Mapping[str, object]]:
    """Header classes of a release by simple name, each with `fields` and `code`."""
    rows = reflect(release)["headers"]
    named = {name.rpartition(".")[2]: row for name, row in rows.items()}
    assert len(named) == len(rows), "two classes of one name"
    return named


def written_fields(row: Mapping[str, object]) -> list[tuple[str, str, bool]]:
    """(name, Java type, not null) as makeCustomHeaderToNet writes them: inherited ones last."""
    fields = row["fields"]
    assert isinstance(fields, list)
    levels: dict[str, list[tuple[str, str, bool]]] = {}
    for field in fields:
        cell = (field["name"], field["type"], field["notNull"])
        levels.setdefault(field["of"], []).append(cell)
    return [cell for level in reversed(levels.values()) for cell in level]


def own_fields(name: str, release: str) -> list[HeaderField]:
    return [field for field in HEADERS[name] if there(release, field.since, field.until)]


@pytest.mark.parametrize("release", EVERY_RELEASE)
def test_header_fields(release: str) -> None:
    own: dict[str, object] = {}
    theirs: dict[str, object] = {}
    for name, row in jar_headers(release).items():
        if name not in HEADERS:
            continue  # what test_header_classes is about
        for field in own_fields(name, release):
            own[f"{name}.{field.wire}"] = (field.type, field.required)
        for wire, kind, not_null in written_fields(row):
            theirs[f"{name}.{wire}"] = (JAVA_TYPES.get(kind, kind), not_null)
    assert differences(release, own, theirs, FIELD_EXCEPTIONS) == {}


def test_header_fields_come_in_the_order_of_the_class() -> None:
    for name, row in jar_headers(NEWEST_5).items():
        wires = [field.wire for field in own_fields(name, NEWEST_5)]
        assert wires == [wire for wire, _, _ in written_fields(row)], name


def operations_with(header: str) -> dict[int, Operation]:
    return {
        code: operation
        for code, operation in OPERATIONS.items()
        if header in (operation.request_header, operation.response_header)
    }


def class_is_there(name: str, release: str) -> bool:
    """Whether our tables let a release have the class: by its operations, then by its fields."""
    lasts = {code.code: code.last for code in FORMER_REQUESTS if code.first}
    operations = operations_with(name)
    if operations and not any(
        there(release, operation.since, lasts.get(code, ""))
        for code, operation in operations.items()
    ):
        return False
    return not HEADERS[name] or bool(own_fields(name, release))


@pytest.mark.parametrize("release", EVERY_RELEASE)
def test_header_classes(release: str) -> None:
    own = {name: True for name in HEADERS if class_is_there(name, release)}
    theirs = dict.fromkeys(jar_headers(release), True)
    assert differences(release, own, theirs, CLASS_EXCEPTIONS) == {}


@pytest.mark.parametrize("release", V5)
def test_header_classes_serve_the_codes_that_they_are_marked_with(release: str) -> None:
    marked = {name: row["code"] for name, row in jar_headers(release).items() if row["code"]}
    assert len(marked) > 60
    for name, code in marked.items():
        assert code in operations_with(name), name
