"""Evidence of a row: its packets, a Wireshark filter, and a command that shows it.

Rules: names from the network are used in a filter only if they are short and printable; the command
is quoted for a shell.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from dissectors.printable import printable

from ..report import Row
from .charts import number_of

_PACKETS: Final = ("request_packet", "response_packet", "packet")
SHOWN_AS_EVIDENCE: Final = frozenset((*_PACKETS, "capture"))
"""columns that repeat the evidence of a row"""
_NAMES: Final = ("unique_key", "operation", "response", "topic", "group", "client", "broker")
"""columns with names that filters use as well"""
_NO_EXCHANGE: Final = frozenset(("connects", "kind"))
"""columns of tables about failed connects and the capture, which no exchange shows"""
_NOBODY: Final = frozenset(("?", ""))
_MOST_TEXT: Final = 200
"""maximum characters of a name in a filter"""
_TIME: Final = "%Y-%m-%dT%H:%M:%S.%fZ"


class RowEvidence(NamedTuple):
    """Locations of the evidence."""

    label: str
    """``packet 166``, or ``show``"""
    wireshark: str
    """display filter; empty: none"""
    browse: str
    """command line"""


@dataclass(frozen=True, slots=True)
class Proofs:
    """Find the evidence of rows."""

    inputs: Sequence[str] = ()
    """inputs of the report"""
    brokers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """broker name -> its addresses: exchanges may lack the broker name"""

    def of_row(self, row: Row) -> RowEvidence:
        """Return the evidence of a row."""
        numbers = {number for name in _PACKETS if isinstance(number := row.get(name), int)}
        if numbers:
            shown = self.of_packets(sorted(numbers), row.get("capture"))
            # the packet of a finding may be of no exchange
            return shown._replace(browse=self.browse("")) if "kind" in row else shown
        if not _NO_EXCHANGE.isdisjoint(row) or row.get("exchanges") == 0:
            # a filter of exchanges would show nothing
            return RowEvidence("show", "", self.browse(""))
        tests = [self._test(name, text) for name in _NAMES if (text := _name_in(row, name))]
        if isinstance(start := row.get("window_start"), datetime):
            end = start + timedelta(microseconds=number_of(row["window_us"]) or 0)
            tests.append(f"time >= {start:{_TIME}} and time < {end:{_TIME}}")
        source = row.get("source", row.get("capture"))
        if isinstance(source, str) and [*self.inputs] != [source]:
            tests.append(f"capture == {_quoted(source)}")
        return RowEvidence("show", "", self.browse(" and ".join(tests)))

    def of_packets(self, numbers: Sequence[object], capture: object = None) -> RowEvidence:
        """Return the evidence for packets of one capture, or of all inputs if None."""
        listed = ", ".join(map(str, numbers))
        test = f"request_packet in ({listed}) or response_packet in ({listed})"
        if isinstance(capture, str) and [*self.inputs] != [capture]:
            test = f"capture == {_quoted(capture)} and ({test})"
        label = f"packet{'' if len(numbers) == 1 else 's'} {listed}"
        return RowEvidence(label, f"frame.number in {{{listed}}}", self.browse(test))

    def browse(self, where: str) -> str:
        """Return the command that shows the rows of a filter; empty: all rows."""
        chosen = ["-Y", where] if where else []
        return shlex.join(["rmqtool", "browse", *self.inputs, *chosen])

    def _test(self, name: str, text: str) -> str:
        if name == "broker" and text in self.brokers:
            return f"server in ({', '.join(map(_quoted, self.brokers[text]))})"
        return f"{name} == {_quoted(text)}"


def _name_in(row: Row, name: str) -> str | None:
    value = row.get(name)
    if not isinstance(value, str) or value in _NOBODY or len(value) > _MOST_TEXT:
        return None
    if value != printable(value) or (name == "client" and "@" in value):  # an id, not an address
        return None
    return value


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
