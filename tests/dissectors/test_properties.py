"""What holds for all conversations, however they were cut, ordered, repeated, carried or lost."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dissectors.conversation import Pdu
from dissectors.expert import ExpertKind, Severity
from tests.traffic.captures import pcap, pcap_of
from tests.traffic.commands import Command
from tests.traffic.decoded import Outcome, command_of, decode_bytes, decode_segments, multiset
from tests.traffic.network import LINKS, TUNNELS, ethernet, fragments, ip
from tests.traffic.scripts import Script, disturbed, scripts, talks
from tests.traffic.talk import BROKER, CLIENT, Tcp, retimed

SCRIPTS = scripts()


def _is_clean(outcome: Outcome) -> bool:
    return all(info.kind.severity < Severity.WARNING for info in outcome.experts)


@given(st.data())
def test_any_cut(data: st.DataObject) -> None:
    script = data.draw(scripts(reuse=True))
    outcome = decode_segments(data.draw(talks(script)))
    assert multiset(outcome.exchanges) == script.expected()
    assert _is_clean(outcome)


@given(st.data())
def test_any_order_and_repetition(data: st.DataObject) -> None:
    script = data.draw(SCRIPTS)
    segments = retimed(data.draw(disturbed(data.draw(talks(script)))), step=1000)
    outcome = decode_segments(segments)
    assert multiset(outcome.exchanges) == script.expected()
    assert _is_clean(outcome)
