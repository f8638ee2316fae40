"""Fuzzing reaches every function that captured bytes pass through in a plain `decode`.

Told by a profiler over the seeds and the kept inputs. A parser that no target reaches is one that
fuzzing cannot break: it gets a target or a seed, or a line in `ELSEWHERE` with the reason.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType, ModuleType

import pytest

from tests.pure import implementation

from .corpus import corpus_of
from .seeds import seeds_of
from .targets import TARGETS

PARSERS = (
    "dissectors.remoting",
    "dissectors.conversations.recognition",
    "dissectors.conversations.conversation",
    "dissectors.decode.exchange",
    "dissectors.decode.exchange_row",
    "dissectors.decode.stages",
    "dissectors.replication",
)
"""modules and packages that see captured bytes"""
ELSEWHERE = (
    *("encode", "wire_value", "wire_", "write", "text_of", "scalar", "double", "escape"),
    *("written_pairs", "field_text", "item_of", "json_of", "sized", "sealed", "crc_digits"),
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
    *("may", "must", "rpc", "is_other_meaning", "request_code", "ordinal_of", "release_of"),
)
"""functions that write, that make tables when they are imported, that describe, or look up names"""
LIMITS = (
    *("give_up", "release", "held_bytes", "force", "strip", "say_undecoded", "ts_of", "take_order"),
    *("started", "work", "earliest", "settled_by", "records_of", "refined", "finish", "first_of"),
    *("json_problem", "retry_topic", "queue_of", "decode_transaction_id", "names_of", "delay_of"),
    *("property_of", "decode_bit_set", "read_bits", "read_double", "replication", "value"),
    *("protocol", "address_of", "number_in"),
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


def _called() -> set[CodeType]:
    """The functions that the targets call over their seeds and kept inputs."""
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    for name, target in TARGETS.items():
        for data in (*seeds_of(name), *corpus_of(name)):
            sys.setprofile(note)
            try:
                target(data)
            finally:
                sys.setprofile(None)
    return called


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
