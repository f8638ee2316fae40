"""Calls of gRPC over TCP: cut anywhere, in any order, repeated, with losses."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.conversations.conversation import Pdu
from dissectors.decode.exchange import EARLY_TOLERANCE
from dissectors.findings import FindingKind, Severity
from dissectors.grpc.command import CallCommand
from dissectors.http2.frame import PREFACE
from tests.dissectors.tcp.readers import read
from tests.expected import SAMPLES, WITHOUT_CALLS
from tests.profiles import examples
from tests.traffic.calls import OK, Calls, calls, message, part, rejoined
from tests.traffic.captures import pcap
from tests.traffic.decoded import Outcome, decode, decode_bytes, decode_segments
from tests.traffic.scripts import disturbed
from tests.traffic.talk import CLIENT, Tcp, retimed

GRPC_SAMPLES = sorted(
    path for path in SAMPLES.glob("grpc-*.pcap") if path.stem not in WITHOUT_CALLS
)

pytestmark = pytest.mark.slow


def command_of(pdu: Pdu) -> CallCommand:
    assert isinstance(pdu.command, CallCommand)
    return pdu.command


def said_of(pdu: Pdu | None) -> str:
    """What a request or a response says, without packets and times."""
    if pdu is None:
        return ""
    return repr((pdu.src, pdu.flag, command_of(pdu), pdu.body, pdu.missing))


def multiset(outcome: Outcome) -> Counter[tuple[str, str, str]]:
    """What was said, however often."""
    return Counter(
        (one.status, said_of(one.request), said_of(one.response)) for one in outcome.exchanges
    )


def assert_same(outcome: Outcome, whole: Outcome) -> None:
    """Said in a form that shows what differs."""
    found, wanted = multiset(outcome), multiset(whole)
    assert (found - wanted, wanted - found) == (Counter(), Counter())


def assert_fewer_never_other(outcome: Outcome, whole: Outcome) -> None:
    """The relation of loss: what is found was said; what is not all of it says so.

    Headers that refer to what was not captured are left out; a message is whole or marked.
    """
    real = defaultdict(list)
    for pdu in calls_in(whole):
        real[_place(pdu)].append(pdu)
    for pdu in calls_in(outcome):
        assert any(_is_of(pdu, said) for said in real[_place(pdu)]), pdu.command


def _place(pdu: Pdu) -> tuple[object, ...]:
    return pdu.src, pdu.opaque, pdu.flag, command_of(pdu).operation


def _is_of(pdu: Pdu, said: Pdu) -> bool:
    found, real = command_of(pdu), command_of(said)
    if not found.ext_fields.items() <= real.ext_fields.items():
        return False
    if pdu.findings:
        return True
    same = (pdu.body, found.name, found.code) == (said.body, real.name, real.code)
    return same and pdu.missing == said.missing == 0


def calls_in(outcome: Outcome) -> list[Pdu]:
    return [pdu for pdu in outcome.pdus if isinstance(pdu.command, CallCommand)]


def is_clean(outcome: Outcome) -> bool:
    return all(info.kind.severity < Severity.WARNING for info in outcome.findings)


@examples(1)
@given(st.data())
def test_any_cut(data: st.DataObject) -> None:
    made = data.draw(calls())
    whole = decode_segments(made.talk(mss=65000).segments)
    segments = rejoined(data.draw, made, data.draw(st.sampled_from([1448, 536, 65000])))
    outcome = decode_segments(segments)
    assert_same(outcome, whole)
    assert is_clean(outcome)
    assert is_clean(whole)


@examples(1)
@given(st.data())
def test_any_order_and_repetition(data: st.DataObject) -> None:
    made = data.draw(calls(5))
    whole = decode_segments(made.talk(mss=65000).segments)
    segments = rejoined(data.draw, made, 1448, often=True)
    first = _begun(segments)  # what comes before it is not recognised, and kept up to 1 KiB only
    if segments[first:]:
        segments = [*segments[:first], *data.draw(disturbed(segments[first:]))]
    segments = retimed(segments, step=min(1000, EARLY_TOLERANCE // (len(segments) + 1)))
    outcome = decode_segments(segments)
    assert_same(outcome, whole)
    assert is_clean(outcome)


def _begun(segments: list[Tcp]) -> int:
    """How many packets there are up to the one that shows what the connection speaks."""
    said = 0
    for at, one in enumerate(segments):
        said += len(one.payload) if one.src == CLIENT else 0
        if said >= len(PREFACE):
            return at + 1
    return len(segments)


@examples(2)
@given(st.data())
def test_lost_packets(data: st.DataObject) -> None:
    """Less, never other; and where anything is not there, something is said."""
    made = data.draw(calls())
    whole = decode_segments(made.talk(mss=65000).segments)
    segments = rejoined(data.draw, made, data.draw(st.sampled_from([1448, 300, 65000])))
    followed = [at for at, one in enumerate(segments) if _goes_on(one, segments[at + 1 :])]
    lost = data.draw(st.sets(st.sampled_from(followed or [0]), min_size=1, max_size=3))
    rest = [one for at, one in enumerate(segments) if at not in lost]
    outcome = decode_segments(rest)
    assert_fewer_never_other(outcome, whole)
    if multiset(outcome) != multiset(whole):
        assert not is_clean(outcome) or outcome.kinds[FindingKind.MIDSTREAM]


def _goes_on(segment: Tcp, later: list[Tcp]) -> bool:
    """Whether a hole is seen where this one is missing: its sender says something after it."""
    return any(one.src == segment.src and one.payload for one in later)


@examples(1)
@given(st.data())
def test_joined_in_the_middle(data: st.DataObject) -> None:
    made = data.draw(calls())
    whole = decode_segments(made.talk(mss=65000).segments)
    segments = rejoined(data.draw, made, 1448)
    first = data.draw(st.integers(1, len(segments)))
    assert_fewer_never_other(decode_segments(segments[first:]), whole)


def _many(count: int) -> Calls:
    made = Calls()
    for number in range(count):
        stream = made.begin("SendMessage", client_id="c" * 40 + str(number))
        made.data(0, stream, part(1, message(f"key-{number}", bytes(number))), ends=True)
        made.headers(1, stream, [(":status", "200"), ("content-type", "application/grpc")])
        made.data(1, stream, OK)
        made.headers(1, stream, [("grpc-status", "0")], ends=True)
    return made


def test_calls_are_named_again_when_their_path_is_sent_again() -> None:
    made = _many(120)
    whole, outcome = (decode_segments(made.talk().segments[first:]) for first in (0, 60))
    assert_fewer_never_other(outcome, whole)
    assert len(whole.exchanges) == 120
    assert 20 < len(outcome.exchanges) < 108
    assert {one.status for one in outcome.exchanges} == {"answered"}
    (info,) = [one for one in outcome.findings if one.kind is FindingKind.HEADERS_LOST]
    assert info.detail.endswith("calls whose method is not known")
    assert outcome.stats.rocketmq_conversations == 1


@pytest.mark.parametrize("path", GRPC_SAMPLES, ids=lambda path: path.stem)
def test_samples_joined_in_the_middle(path: Path) -> None:
    """Of real clients: what is found behind any of some packets is what is there."""
    packets = [(one.ts, one.data) for one in read(path.read_bytes())[0]]
    whole = decode([path])
    found = 0
    for first in range(len(packets) // 9, len(packets), len(packets) // 3):
        outcome = decode_bytes(pcap(packets[first:]))
        assert_fewer_never_other(outcome, whole)
        found += len(calls_in(outcome))
    assert found > len(calls_in(whole)) // 2


@pytest.mark.parametrize("at", [60, 61, 62, 63, 64])
def test_behind_a_loss_calls_go_on(at: int) -> None:
    made = _many(120)
    segments = made.talk().close().segments
    outcome = decode_segments(segments[:at] + segments[at + 1 :])
    assert_fewer_never_other(outcome, decode_segments(segments))
    assert outcome.kinds[FindingKind.GAP] == 1
    by_client = segments[at].src == CLIENT
    assert outcome.statuses["answered"] > (30 if by_client else 90)
