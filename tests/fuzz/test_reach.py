"""Fuzzing reaches every function that captured bytes pass through in a plain `decode`.

Told by a profiler over the seeds and the kept inputs. A parser that no target reaches is one that
fuzzing cannot break: it gets a target or a seed, or a line in `ELSEWHERE` with the reason.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType

import pytest

from dissectors.remoting.bodies import message_texts
from tests.pure import implementation

from .corpus import corpus_of
from .seeds import seeds_of
from .targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
OURS = ("dissectors", "replay", "analytics", "rmqtool")
PARSERS = (
    "dissectors.remoting",
    "dissectors.conversations.recognition",
    "dissectors.conversations.conversation",
    "dissectors.decode.exchange",
    "dissectors.decode.exchange_row",
    "dissectors.decode.stages",
    *(
        f"dissectors.grpc.{name}"
        for name in ("bodies", "call_stream", "calls", "columns", "call_messages")
    ),
    *(f"dissectors.grpc.{name}" for name in ("pieces", "tree", "wire")),
    "dissectors.http2",
    "dissectors.replication",
    "dissectors.tls.handshake",
    "dissectors.tls.records",
)
"""modules and packages that see captured bytes"""
ELSEWHERE = (
    *("encode", "wire_value", "wire_", "write", "text_of", "scalar", "double", "escape"),
    *("written_pairs", "field_text", "item_of", "json_of", "sized", "sealed", "crc_digits"),
    *("varint", "numbers", "decimal_text"),
    "eq__",  # compares what tests decoded
    *("compress", "refuse_torn", "layout_of", "forms", "constants", "pop_list", "one_of", "joined"),
    *(
        "receive_pdu",
        "describe",
        "<lambda>",
        "fields_of",
        "java_name",
        "send_fields_of",
        "is_auto_switch_at",
    ),
    *(
        "members_of",
        "headers_of",
        "field_of",
        "operation_of",
        "response_of",
        "is_other_meaning",
        "request_code",
        "ordinal_of",
        "ordinals_of",
        "release_of",
    ),
)
"""functions that write, that make tables when they are imported, that describe, or look up names"""
LIMITS = (
    *(
        "give_up",
        "lose",
        "release",
        "held_bytes",
        "force",
        "strip",
        "say_undecoded",
        "ts_of",
        "take_order",
    ),
    *("started", "work", "earliest", "settled_by", "records_of", "refined", "finish", "first_of"),
    *("json_problem", "retry_topic", "queue_of", "names_of", "delay_of"),
    *(
        "property_of",
        "value_in",
        *("client_address", "server_address", "serialize_type"),
        "decode_bit_set",
        "read_bits",
        "read_double",
        "replication",
        "value",
    ),
    *("protocol", "address_of", "number_in", "held_", "passed_at", "sweep", "take_most_waiting"),
    *("decode_unique_key", "created_at", "transaction"),
    *("has_one_twice", "has_addresses", "client_id_of", "unwrapped", "fault_in", "group_of"),
    *(
        "waiting_since",
        "mark",
        "drop_headers",
        "attempts_in",
        "delays_in",
        "stored_in",
        "opened",
        "updated",
    ),
)
"""functions of limits, of other views and of single fields: tests of their own reach them"""


def _modules() -> Iterator[ModuleType]:
    for name, module in sorted(sys.modules.items()):
        if any(name == one or name.startswith(f"{one}.") for one in PARSERS):
            yield module


def _functions(owner: object, module: ModuleType) -> Iterator[CodeType]:
    """The functions of a module or class that are written there."""
    for value in vars(owner).values():
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if isinstance(value, property):
            value = value.fget
        if inspect.isclass(value) and getattr(value, "_is_protocol", False):
            continue
        if inspect.isclass(value) and value.__module__ == module.__name__ and value is not owner:
            yield from _functions(value, module)
        elif isinstance(value, FunctionType) and value.__code__.co_filename == module.__file__:
            yield value.__code__


@cache
def _called() -> set[CodeType]:
    """The functions that the targets call over their seeds and kept inputs."""
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    for name, target in TARGETS.items():
        target(next(iter(seeds_of(name))))  # what is imported late is not a call
    for module in list(sys.modules.values()):
        for value in list(vars(module).values()) if module.__name__.split(".")[0] in OURS else ():
            if callable(clear := getattr(value, "cache_clear", None)):
                clear()  # what is remembered of other tests is called again
    message_texts._MAKERS.clear()
    for name, target in TARGETS.items():
        for data in (*seeds_of(name), *corpus_of(name)):
            sys.setprofile(note)
            try:
                target(data)
            finally:
                sys.setprofile(None)
    return called


@pytest.mark.plain
@pytest.mark.slow
@pytest.mark.skipif(implementation() == "compiled", reason="compiled functions have no profile")
def test_every_parser_is_reached() -> None:
    called = _called()
    missed = sorted(
        f"{module.__name__}.{code.co_qualname}"
        for module in _modules()
        for code in _functions(module, module)
        if code not in called
        and code.co_names != ("NotImplementedError",)
        and not code.co_name.lstrip("_").startswith((*ELSEWHERE, *LIMITS))
    )
    assert not missed, "\n".join(missed)


_PARSING = frozenset(
    (
        *("foreign", "struct", "binascii", "base64", "ipaddress"),
        *("decode_json", "decode_header", "decode_body", "decode_messages", "decode_properties"),
        *("decompress", "FrameDecoder", "from_bytes"),
    )
)
"""what a module uses that takes bytes or text of others apart"""
NOT_FROM_THE_WIRE: dict[str, tuple[str, ...]] = {
    "what the user wrote on the command line or in a file of theirs: tests of the command": (
        "analytics/inputs/capture_source.py",
        "analytics/spark/connect.py",
        "analytics/spark/java.py",
        "dissectors/live/privileges.py",
        "dissectors/patterns.py",
        "replay/sandbox/injection/injection_text.py",
        "replay/proxy/options.py",
        "rmqtool/broker/options.py",
        "rmqtool/codes/search.py",
        "rmqtool/consume/options.py",
        "rmqtool/consume/run.py",
        "rmqtool/hex/pasted.py",
        "rmqtool/hex/run.py",
        "rmqtool/proxy/options.py",
        "rmqtool/replay/options.py",
        "rmqtool/send/input_lines.py",
        "rmqtool/ui/option_values.py",
    ),
    "files of earlier runs: tests/test_boundary.py and tests of the module": (
        "analytics/inputs/inputs.py",
        "analytics/inputs/rows.py",
        "analytics/inputs/rows_here.py",
        "dissectors/decode/decoded_log.py",
        "dissectors/decode/growing_log.py",
        "dissectors/owned_folder.py",
        "replay/run/journal.py",
        "replay/sandbox/store/sqlite.py",
        "rmqtool/replay/prepared.py",
        "rmqtool/watch/deliveries.py",
        "rmqtool/watch/packet_files.py",
    ),
    "columns of reports on Spark: rows of any values, tests/analytics/sends": (
        "analytics/cells.py",
        "analytics/sends/attempt_table.py",
        "analytics/spark/engine.py",
    ),
    "needs an interface, a socket or a running replay: tests of the module": (
        "dissectors/live/interface.py",
        "dissectors/live/packet_ring.py",
        "dissectors/with_scapy/layer.py",
        "replay/run/resend.py",
        "replay/safety.py",
        "replay/topic_reader.py",
        "replay/transport/aio.py",
        "replay/transport/problems.py",
        "replay/wire_capture.py",
    ),
    "one kind of remark: tests of the rule, and rows of any values in tests/analytics/diagnosis": (
        "analytics/diagnosis/rules/overload/disk_full.py",
        "analytics/diagnosis/rules/refused/oversize_message.py",
        "analytics/diagnosis/rules/refused/timer_illegal.py",
        "analytics/diagnosis/rules/refused/version_mismatch.py",
    ),
    "the browser, of exchanges that were decoded: tests/rmqtool/browse, random keys": (
        "rmqtool/browse/model/detail.py",
        "rmqtool/browse/model/disk.py",
        "rmqtool/browse/model/frames.py",
        "rmqtool/browse/model/session.py",
        "rmqtool/browse/model/settings.py",
    ),
    "writes, hashes or talks to its own processes": (
        "analytics/page/html.py",
        "dissectors/processes/children.py",
        "dissectors/grpc/definition.py",
        "replay/acl.py",
        "replay/run/jobs.py",
        "replay/run/replayer.py",
        "rmqtool/api/summarised.py",
        "rmqtool/watch/incident_capture.py",
        "rmqtool/watch/incidents.py",
        "rmqtool/watch/local_ends.py",
        "rmqtool/watch/run.py",
    ),
}
"""why a module that parses has no target → the modules"""


def _uses(path: Path) -> set[str]:
    """The names that a module imports, and the last parts of what it calls."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update((node.module or "").split("."))
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
    return found


@pytest.mark.plain
@pytest.mark.slow
@pytest.mark.skipif(implementation() == "compiled", reason="compiled functions have no profile")
def test_every_module_that_parses_has_a_target() -> None:
    reached = {Path(code.co_filename) for code in _called()}
    parsing = {
        str(path.relative_to(ROOT)): path in reached
        for package in OURS
        for path in (ROOT / package).rglob("*.py")
        if _PARSING & _uses(path)
    }
    missed = {name for name, is_reached in parsing.items() if not is_reached}
    assert missed == {name for names in NOT_FROM_THE_WIRE.values() for name in names}
