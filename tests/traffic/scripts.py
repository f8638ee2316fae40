"""Generated conversations, and what is to be found in them: strategies for hypothesis.

A script is what both ends say, in order, and the exchanges that this makes by RocketMQ's own
rules. Opaques of one end are not used twice, as clients count them, unless `reuse` is asked for.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from .commands import HEART_BEAT, LANGUAGES, Command
from .talk import BROKER, CLIENT, End, Talk, Tcp

CODES = (10, 11, 34, 105, 310, 320, 40, 200050, 9999, 50001)
ANSWERS = (0, 1, 11, 17, 19, 21, 200, 4242)
Exchanged = tuple[int, Command | None, Command | None]
"""who asked (0 the client), request, response"""

_TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=0, max_size=12
) | st.sampled_from(["Orders", "KEYS\x01a\x02TAGS\x01b", "%RETRY%group", "\u4e2d\u6587", "{}"])
_BODY = st.binary(max_size=40) | st.builds(
    lambda seed, size: bytes((seed * 31 + index * 7) & 0xFF for index in range(size)),
    st.integers(0, 255),
    st.sampled_from([100, 1448, 3000, 9000]),
)
_HEARTBEAT = st.sampled_from(
    [
        b'{"clientID":"10.0.0.5@1"}',
        b'{"clientID":"c","consumerDataSet":[],"producerDataSet":[{"groupName":"g"}]}',
    ]
)
"""its body is read, so another one would be a finding"""


@dataclass
class Script:
    """What is said, and what exchanges that makes."""

    said: list[tuple[int, Command]] = field(default_factory=list)
    exchanged: list[Exchanged] = field(default_factory=list)

    def stream(self, side: int) -> bytes:
        """All that one end says."""
        return b"".join(command.frame for who, command in self.said if who == side)

    def expected(self, client: End = CLIENT, server: End = BROKER) -> Counter[tuple[object, ...]]:
        """The exchanges in the words of `decoded.said`."""
        ends = (str(client), str(server))
        return Counter(
            (ends[who], ends[1 - who], _status(request, response), _repr(request), _repr(response))
            for who, request, response in self.exchanged
        )

    def pairs(self) -> set[tuple[int, str, str]]:
        """Who asked, request and response of each answered exchange."""
        return {
            (who, repr(request), repr(response))
            for who, request, response in self.exchanged
            if request and response
        }


def _status(request: Command | None, response: Command | None) -> str:
    if request is None:
        return "orphan"
    if response is not None:
        return "answered"
    return "oneway" if request.flag & 2 else "unanswered"


def _repr(command: Command | None) -> str | None:
    return None if command is None else repr(command)


@st.composite
def commands(draw: st.DrawFn, opaque: int, response: bool) -> Command:
    """Any command with this opaque."""
    flag = 1 if response else draw(st.sampled_from([0, 0, 0, 2]))
    code = draw(st.sampled_from(ANSWERS if response else CODES))
    return Command(
        code=code,
        opaque=opaque,
        flag=flag,
        ext=draw(st.dictionaries(_TEXT.filter(bool), _TEXT, max_size=3)),
        remark=draw(st.none() | _TEXT.filter(bool)),
        body=draw(_HEARTBEAT if code == HEART_BEAT else _BODY),
        language=draw(st.sampled_from(sorted(LANGUAGES))),
        version=draw(st.integers(0, 500)),
        binary=draw(st.booleans()),
    )


@st.composite
def scripts(draw: st.DrawFn, max_size: int = 12, reuse: bool = False) -> Script:
    """Requests of both ends, answered in any order or not, oneway ones, orphan responses."""
    script = Script()
    counters = [draw(st.integers(-(2**31), 2**31 - 100)) for _ in range(2)]
    waiting: list[tuple[int, Command]] = []
    for _ in range(draw(st.integers(1, max_size))):
        what = draw(st.sampled_from(["request", "request", "response", "response", "orphan"]))
        who = draw(st.sampled_from([0, 0, 0, 1]))
        if what == "response" and waiting:
            who, request = waiting.pop(draw(st.integers(0, len(waiting) - 1)))
            response = draw(commands(request.opaque, True))
            script.said.append((1 - who, response))
            script.exchanged.append((who, request, response))
        elif what == "orphan":
            orphan = draw(commands(counters[who], True))
            counters[who] += 1
            script.said.append((1 - who, orphan))
            script.exchanged.append((who, None, orphan))
        else:
            request = draw(commands(counters[who], False))
            # A number may come again when nobody waits for its answer.
            if not reuse or request.flag & 2 == 0 or draw(st.booleans()):
                counters[who] += 1
            script.said.append((who, request))
            if request.flag & 2:
                script.exchanged.append((who, request, None))
            else:
                waiting.append((who, request))
    script.exchanged += [(who, request, None) for who, request in waiting]
    return script


@st.composite
def talks(
    draw: st.DrawFn,
    script: Script,
    *,
    client: End = CLIENT,
    server: End = BROKER,
    opened: bool | None = None,
) -> list[Tcp]:
    """The script as segments: any cuts, also between frames or within a prefix; near a wrap."""
    numbers = st.sampled_from([0, 1, 2**31 - 50, 2**32 - 1, 2**32 - 2, 2**32 - 700, 2**32 - 20000])
    isn = (draw(numbers), draw(numbers | st.integers(0, 2**32 - 1)))
    talk = Talk(client, server, isn=isn, mss=draw(st.sampled_from([1448, 8948, 65000, 536])))
    if draw(st.booleans()) if opened is None else opened:
        talk.open()
    sizes = st.lists(st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 20, 100, 1000, 65000]), max_size=8)
    run: list[tuple[int, bytes]] = []
    for who, command in script.said:
        if run and run[-1][0] == who and draw(st.booleans()):
            run[-1] = (who, run[-1][1] + command.frame)  # several frames in one segment
        else:
            run.append((who, command.frame))
    for who, data in run:
        talk.say(who, data, sizes=draw(sizes), acked=draw(st.booleans()))
    if draw(st.booleans()):
        talk.close()
    return talk.segments


DISPLACED = 12
"""packets by which one is late at most; a hole is given up after 32"""


@st.composite
def disturbed(draw: st.DrawFn, segments: list[Tcp], *, shuffle: bool = True) -> list[Tcp]:
    """The same bytes in another order, with duplicates and other cuts of them.

    Few packets come in any order, of many none comes very late: a hole is not waited for forever.
    """
    found = list(segments)
    for segment in draw(st.lists(st.sampled_from(segments), max_size=6)):
        found.insert(draw(st.integers(0, len(found))), segment)
    for segment in draw(st.lists(st.sampled_from(segments), max_size=4)):
        found.insert(draw(st.integers(0, len(found))), draw(_again(segment, segments)))
    if not shuffle:
        return found
    if len(found) <= 24:
        return draw(st.permutations(found))
    size = len(found)
    late = draw(st.lists(st.integers(0, DISPLACED), min_size=size, max_size=size))
    order = sorted(range(size), key=lambda index: index + late[index])
    return [found[index] for index in order]


@st.composite
def _again(draw: st.DrawFn, segment: Tcp, segments: list[Tcp]) -> Tcp:
    """A part of a segment, or it with bytes of the next one: how stacks send again."""
    payload = segment.payload
    behind = (segment.seq + len(payload)) & 0xFFFFFFFF
    if not payload:
        return segment
    for other in segments:
        if other.src == segment.src and other.seq == behind and other.payload:
            payload += other.payload[: draw(st.integers(0, len(other.payload)))]
            break
    cut = draw(st.integers(0, len(payload) - 1))
    return replace(segment, seq=(segment.seq + cut) & 0xFFFFFFFF, payload=payload[cut:][:60000])
