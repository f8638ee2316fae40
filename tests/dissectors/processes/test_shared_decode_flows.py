"""Several processes give what one gives, whatever flows a capture has and however it is read.

Flows of all kinds in turns: remoting, gRPC, TLS with and without its secrets, ports that are used
again at once; packets with tags, options, fragments and lost ends. Chunks may be small, so that a
packet is told before or behind those that change what it is.
"""

from __future__ import annotations

import functools
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.budget import Budget
from dissectors.decode.command_row import WHOLE
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.processes import children, command_lines
from dissectors.processes.choice import command_lines_of, decode_of
from dissectors.processes.command_lines import CommandLines
from dissectors.processes.shared_decode import SharedDecode
from dissectors.rows.encoded import Lines
from dissectors.tcp import source
from tests.profiles import examples
from tests.traffic.calls import calls
from tests.traffic.captures import Interface, pcap, pcapng
from tests.traffic.commands import send, sent
from tests.traffic.encrypted import TLS_1_2, TLS_1_3, Secured
from tests.traffic.network import ethernet, fragments, ip, ipv4, tcp
from tests.traffic.scripts import disturbed, scripts, talks
from tests.traffic.talk import BROKER, MICROSECOND, START, End, Talk, Tcp

pytestmark = pytest.mark.slow

CLIENTS = [End(f"10.0.1.{number}", 40000 + number % 3) for number in range(4)]
VLAN = (0x8100, 7)
NO_OPERATION = b"\1\1\1\1"


@functools.cache
def session(version: ssl.TLSVersion) -> Secured:
    """Return a session in which a message is sent."""
    one = Secured(version)
    return one.say(0, send(1).frame).say(1, sent(1).frame)


def plain(data: st.DataObject, client: End) -> list[Tcp]:
    return data.draw(talks(data.draw(scripts(max_size=3)), client=client))


def grpc(data: st.DataObject, client: End) -> list[Tcp]:
    return spoken(data, client, data.draw(calls(max_size=3)).said)


def secured(data: st.DataObject, client: End) -> list[Tcp]:
    return spoken(data, client, session(data.draw(st.sampled_from([TLS_1_2, TLS_1_3]))).said)


def spoken(data: st.DataObject, client: End, said: list[tuple[int, bytes]]) -> list[Tcp]:
    isn = (data.draw(st.integers(0, 2**32 - 1)), data.draw(st.integers(0, 2**32 - 1)))
    talk = Talk(client, BROKER, isn=isn, mss=data.draw(st.sampled_from([100, 536, 1448]))).open()
    for side, part in said:
        talk.say(side, part, acked=data.draw(st.booleans()))
    return data.draw(st.sampled_from([talk, talk.close()])).segments


KINDS: list[Callable[[st.DataObject, End], list[Tcp]]] = [plain, plain, grpc, secured]


def traffic(data: st.DataObject) -> list[Tcp]:
    """Return some flows in turns, each as it was or disturbed, some on the ports of one before."""
    queues = []
    for client in data.draw(st.lists(st.sampled_from(CLIENTS), min_size=2, max_size=3)):
        flow: list[Tcp] = []
        for _ in range(data.draw(st.integers(1, 2))):  # one behind the other, on the same ports
            flow += data.draw(st.sampled_from(KINDS))(data, client)
        queues.append(data.draw(disturbed(flow)) if data.draw(st.booleans()) else flow)
    rng = data.draw(st.randoms(use_true_random=False))
    found = []
    while queues := [queue for queue in queues if queue]:
        queue = rng.choice(queues)
        count = rng.choice([1, 3, 20])
        found += queue[:count]
        del queue[:count]
    return found


def frames(data: st.DataObject, segments: list[Tcp]) -> list[tuple[int, bytes]]:
    """Return segments as Ethernet frames, some of them unusual, with their times."""
    rng = data.draw(st.randoms(use_true_random=False))
    usual = data.draw(st.sampled_from([1, 20, 100]))
    step = data.draw(st.sampled_from([10, 200_000])) * MICROSECOND
    timed = []
    for number, one in enumerate(segments):
        packets = [ethernet(ip(one))]
        if rng.randrange(usual) == 0:
            form = rng.randrange(4)
            if form == 0:
                packets = [ethernet(ip(one), VLAN)]
            elif form == 1 and len(one.payload) < 60_000:
                ends = one.src.address, one.dst.address
                packets = [ethernet(ipv4(*ends, 6, tcp(one), options=NO_OPERATION))]
            elif form == 2:
                parts = fragments(one, rng.choice([8, 512, 1024]), number & 0xFFFF)
                packets = [ethernet(part) for part in parts[:200]]
                rng.shuffle(packets)
            else:
                packets = []  # lost
        timed += [(START + number * step, packet) for packet in packets]
    return timed


def capture(data: st.DataObject) -> bytes:
    timed = frames(data, traffic(data))
    if data.draw(st.booleans()):
        return pcapng([(ts, packet, 0) for ts, packet in timed], [Interface()])
    snaplen = data.draw(st.sampled_from([262144, 262144, 90]))
    return pcap(timed, snaplen=snaplen, big=data.draw(st.booleans()))


def all_of(decode: Decode) -> tuple[object, ...]:
    """Return all that a run says."""
    rows, told = [], []
    for batch in decode.records():
        rows += batch
        told += [decode.take_findings(), decode.take_conversations(), decode.take_messages()]
    told += [decode.take_findings(), decode.take_conversations()]
    return rows, [one for several in told for one in several], decode.stats, decode.bytes_read


def commands_of(decode: Decode) -> tuple[object, ...]:
    """Return the commands of a run as lines, and all else that it says."""
    written, told = b"", []
    given = command_lines_of(decode, WHOLE, Budget())
    lines = CommandLines(decode.sources, WHOLE)
    for one in decode.commands() if given is None else given():
        written += one.data if isinstance(one, Lines) else b"".join(lines.each_of(one))
        told += [*decode.take_findings(), *decode.take_conversations()]
    told += [*decode.take_findings(), *decode.take_conversations()]
    return written.splitlines(), sorted(map(repr, told)), decode.stats, decode.bytes_read


@contextmanager
def any_capture(data: st.DataObject) -> Iterator[tuple[str, str]]:
    """Give the names of a capture, read in chunks of any size, and of a key log, or nothing."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "CHUNK", data.draw(st.sampled_from([1000, 5000, 20_000, 96 * 1024])))
        # Forked, they know of it; beside a thread of the test run they would be started anew.
        patch.setattr(children, "has_one_thread", lambda: True)
        path, keys = Path(folder, "any.pcap"), Path(folder, "keys.log")
        path.write_bytes(capture(data))
        keys.write_bytes(session(TLS_1_2).key_log + session(TLS_1_3).key_log)
        yield str(path), str(keys) if data.draw(st.booleans()) else ""


@examples(0.5)
@given(st.data())
def test_any_flows(data: st.DataObject) -> None:
    with any_capture(data) as (path, keys):
        options = DecodeOptions(conversations=True, messages=True, tls_keylog=keys)
        alone = all_of(Decode([path], options))
        shared = decode_of([path], options, data.draw(st.integers(2, 3)))
        assert isinstance(shared, SharedDecode)
        assert all_of(shared) == alone


@examples(0.5)
@given(st.data())
def test_commands_of_any_flows(data: st.DataObject) -> None:
    """Also where one process goes on alone, because some are held back."""
    with any_capture(data) as (path, keys), pytest.MonkeyPatch.context() as patch:
        patch.setattr(command_lines, "MOST_HELD", data.draw(st.sampled_from([1, 3, 20_000])))
        options = DecodeOptions(conversations=True, tls_keylog=keys)
        alone = commands_of(Decode([path], options))
        shared = decode_of([path], options, data.draw(st.integers(2, 3)))
        assert isinstance(shared, SharedDecode)
        assert commands_of(shared) == alone
