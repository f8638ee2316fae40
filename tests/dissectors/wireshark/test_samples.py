"""The Lua dissector against our own decode: every sample, command by command, field by field.

What is expected comes from `Decode(...).commands()`, which Java's own classes have checked; what is
seen comes from `tshark -2 -T json`, so that requests know their responses too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from dissectors.decode.command_row import command_row_of
from dissectors.decode.pipeline import CommandSeen, Decode
from dissectors.grpc.command import CallCommand
from dissectors.remoting.bodies.secrets import without_secrets
from dissectors.remoting.fastjson.reader import FastjsonReader, PairMap
from dissectors.rows.command_record import CommandRow
from dissectors.tcp.capture import packet_number
from dissectors.wireshark.lua_tables import header_filters, property_filters
from tests.traffic.joined import Joined, Together

from .tshark import Layer, commands_in, commands_of, flat, in_any_order, layer_of, text_of, texts_of

pytestmark = pytest.mark.tshark

ROOT = Path(__file__).resolve().parents[3]
SHARED = ROOT.parent / "shared" / "captures"
CAPTURES = sorted(
    path for path in (ROOT / "samples").glob("*.pcap*") if ".expected" not in path.name
) + sorted(SHARED.glob("*.pcap"))

TYPES = {one.name: one for one in header_filters()}
PROPERTIES = {one.name: one for one in property_filters()}


# -- ours ---------------------------------------------------------------------------------------


def decoded(capture: Path) -> tuple[dict[int, list[CommandSeen]], Decode, dict[int, int]]:
    """Our commands by packet, the run, and the packet of each request's response by id.

    Without calls of gRPC: tshark has dissectors of its own for those.
    """
    run = Decode([str(capture)])
    found: dict[int, list[CommandSeen]] = defaultdict(list)
    answers: dict[int, int] = {}
    for batch in run.commands():
        for seen in batch:
            if isinstance(seen.pdu.command, CallCommand):
                continue
            found[packet_number(seen.pdu.packet)].append(seen)
            if seen.request is not None:
                answers[id(seen.request)] = packet_number(seen.pdu.packet)
    return found, run, answers


def expected_members(row: CommandRow) -> dict[str, str]:
    """The command's own fields as tshark must show them.

    The dissector names no header of a response whose request was not captured.
    """
    is_orphan = row.kind == "response" and row.request_code is None
    fields = {
        "kind": row.kind,
        "code": str(row.code),
        "name": row.name,
        "opaque": str(row.opaque),
        "flag": str(row.flag),
        "language": row.language or "",
        "version": str(row.version),
        "version_name": row.version_name,
        "serialize_type": {"JSON": "0", "ROCKETMQ": "1"}[row.serialize_type],
        "header_length": str(row.header_bytes),
        "body_length": str(row.body_bytes),
        "remark": row.remark or "",
        "header_name": (row.header_name or "") if row.ext_fields and not is_orphan else "",
        "operation": row.name if row.kind != "response" else row.request_name or "",
        "request_in": "" if row.request_packet is None else str(row.request_packet),
        "request_code": "" if row.request_code is None else str(row.request_code),
    }
    return fields


def expected_ext(row: CommandRow) -> dict[str, str]:
    """The ext fields by the names that filters give them."""
    found: dict[str, str] = {}
    for name, value in row.header.items():
        known = TYPES.get(name)
        if known is None:
            found[f"other {name}"] = f"{name}={value}"
        elif isinstance(value, bool):
            found[known.abbreviation] = str(int(value))
        else:
            found[known.abbreviation] = str(value)
    return found


def seen_ext(layer: Layer) -> dict[str, str]:
    """The same of what tshark shows; of a field that is there twice the last value counts."""
    names = {f"rocketmq.{one.abbreviation}" for one in TYPES.values()}
    found: dict[str, str] = {}
    for name, value in layer_of(layer, "rocketmq.ext"):
        if name in names and isinstance(value, str):
            found[name.removeprefix("rocketmq.")] = value
        elif name == "rocketmq.other" and isinstance(value, str):
            found[f"other {value.partition('=')[0]}"] = value
    return found


def shown_property(name: str, text: str) -> str:
    """A property's value as a typed field shows it."""
    known = PROPERTIES[name]
    if known.type == "boolean":
        return str(int(text.lower() == "true"))
    return str(int(text)) if known.type == "long" else text


def expected_properties(properties: Mapping[str, str]) -> set[tuple[str, str]]:
    found = set()
    for name, text in properties.items():
        if name in PROPERTIES:
            found.add((PROPERTIES[name].abbreviation, shown_property(name, text)))
        else:
            found.add(("property", f"{name}={text}"))
    return found


def seen_properties(layer: Layer) -> set[tuple[str, str]]:
    return {
        (name.removeprefix("rocketmq."), value)
        for name, value in flat(layer)
        if name == "rocketmq.property" or name.startswith("rocketmq.property.")
    }


def leaves_of(value: object, path: str = "", name: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of a JSON value with their paths, secrets masked by their names."""
    if isinstance(value, PairMap):
        for key, item in value:
            label = key if isinstance(key, str) else "{}"
            yield from leaves_of(item, f"{path}.{label}" if path else label, label)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from leaves_of(item, f"{path}.{key}" if path else str(key), str(key))
    elif isinstance(value, list):
        for item in value:
            yield from leaves_of(item, f"{path}[]", "[]")
    else:
        masked = without_secrets({name: value})
        assert isinstance(masked, dict)
        value = masked[name]
        if value is None or isinstance(value, bool):
            value = {None: "null", True: "true", False: "false"}[value]
        yield path, str(value)


def same_leaf(ours: tuple[str, str], theirs: tuple[str, str]) -> bool:
    if ours == theirs:
        return True
    try:
        return ours[0] == theirs[0] and float(ours[1]) == float(theirs[1])
    except ValueError:
        return False


# -- compared -----------------------------------------------------------------------------------


def order_of(opaque: int, flag: int, code: int) -> tuple[int, int, int]:
    return (opaque, flag, code)


def assert_same_command(seen: CommandSeen, row: CommandRow, layer: Layer, where: str) -> None:
    for name, value in expected_members(row).items():
        assert text_of(layer, f"rocketmq.{name}") == value, f"{name} {where}"
    time = text_of(layer, "rocketmq.time")
    if row.kind == "response":
        assert (round(float(time) * 1e9) if time else None) == seen.latency, f"time {where}"
    assert seen_ext(layer) == expected_ext(row), f"ext fields {where}"
    if seen.pdu.missing == 0:
        assert_same_messages(row, layer, where)
        assert_same_json(seen, row, layer, where)


def assert_same_messages(row: CommandRow, layer: Layer, where: str) -> None:
    messages = row.messages or []
    shown = layer_of(layer, "rocketmq.body")
    if row.kind == "response" and row.request_code is None:
        return  # tshark's side takes the bytes for what they look like
    assert text_of(shown, "rocketmq.message_count") == (str(len(messages)) if messages else ""), (
        where
    )
    if row.body is None or row.body["kind"] == "raw-message":
        if messages:
            properties = messages[0]["properties"]
            assert isinstance(properties, dict)
            ext = layer_of(layer, "rocketmq.ext")
            assert seen_properties(ext) == expected_properties(properties), f"properties {where}"
        return
    layers = [value for name, value in shown if name == "rocketmq.message"]
    if not messages:
        assert not layers, where
        return
    assert len(layers) == len(messages), where
    for message, one in zip(messages, layers, strict=True):
        assert isinstance(one, list)
        assert_same_message(message, one, where)


def assert_same_message(message: Mapping[str, object], layer: Layer, where: str) -> None:
    properties = message["properties"]
    assert isinstance(properties, dict)
    assert seen_properties(layer) == expected_properties(properties), f"properties {where}"
    assert text_of(layer, "rocketmq.message.flag") == str(message["flag"]), where
    if message["compression"] != "zstd" and message["bodyForm"] == "text" and message["body"]:
        assert text_of(layer, "rocketmq.message.text") == message["body"], where
    if "storeSize" not in message:
        return
    for name, ours in {
        "size": "storeSize",
        "topic": "topic",
        "queue_id": "queueId",
        "queue_offset": "queueOffset",
        "physical_offset": "commitLogOffset",
        "sys_flag": "sysFlag",
        "born_host": "bornHost",
        "store_host": "storeHost",
        "reconsume_times": "reconsumeTimes",
        "prepared_transaction_offset": "preparedTransactionOffset",
    }.items():
        assert text_of(layer, f"rocketmq.message.{name}") == str(message[ours]), f"{name} {where}"
    assert text_of(layer, "rocketmq.message.compression") == (message["compression"] or ""), where


def assert_same_json(seen: CommandSeen, row: CommandRow, layer: Layer, where: str) -> None:
    shown = layer_of(layer, "rocketmq.body")
    if text_of(shown, "rocketmq.body_kind") not in (
        "json",
        *([row.body["kind"]] if row.body else []),
    ):
        return
    if not seen.pdu.body.startswith((b"{", b"[")) or row.messages:
        return
    reader = FastjsonReader(seen.pdu.body.decode())
    ours = list(leaves_of(reader.read()))
    theirs = [tuple(text.split("=", 1)) for text in texts_of(shown, "rocketmq.json")]
    assert len(ours) == len(theirs), f"JSON {where}"
    for one, other in zip(ours, theirs, strict=True):
        assert same_leaf(one, other), f"JSON {where}: {one} {other}"  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def together(
    dissector: Path, tmp_path_factory: pytest.TempPathFactory
) -> Together[dict[int, list[Layer]]]:
    """What tshark shows of captures; it reads many at once."""

    def look(joined: Joined) -> dict[Path, dict[int, list[Layer]]]:
        return commands_in(joined, commands_of(dissector, joined.path, *in_any_order()))

    return Together(CAPTURES, tmp_path_factory.mktemp("joined"), look)


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
def test_captures(
    dissector: Path, capture: Path, together: Together[dict[int, list[Layer]]]
) -> None:
    """Every command, every field, every message; each response with its request and its time."""
    ours, run, answers = decoded(capture)
    # With the preference, tshark waits for the bytes of a hole as long as the capture lasts.
    theirs = together.get(capture) if run.stats.gaps == 0 else None
    if theirs is None:
        theirs = commands_of(dissector, capture, *in_any_order(run.stats.gaps == 0))
    assert {number: len(found) for number, found in ours.items()} == {
        number: len(found) for number, found in theirs.items()
    }
    for number, found in ours.items():
        found.sort(key=lambda one: order_of(one.pdu.opaque, one.pdu.flag, one.pdu.command.code))
        layers = sorted(
            theirs[number],
            key=lambda one: order_of(
                int(text_of(one, "rocketmq.opaque")),
                int(text_of(one, "rocketmq.flag")),
                int(text_of(one, "rocketmq.code")),
            ),
        )
        for seen, layer in zip(found, layers, strict=True):
            row = command_row_of(seen, run.sources)
            where = f"of {row.name} {row.opaque} in packet {number}"
            assert_same_command(seen, row, layer, where)
            if row.kind == "request":
                answer = answers.get(id(seen.pdu))
                said = text_of(layer, "rocketmq.response_in")
                assert said == ("" if answer is None else str(answer)), f"response {where}"
