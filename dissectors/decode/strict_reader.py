"""Commands of a live peer, read strictly: what is not RocketMQ ends the connection.

A capture's reader looks for the next frame after bad bytes; a client or a broker must not, because
what follows bad bytes cannot be trusted. Memory: one unfinished frame.
RocketMQ: NettyDecoder, which closes the channel.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..conversations.recognition import protocol_of
from ..expert import ExpertInfo
from ..remoting.command import RemotingCommand
from ..remoting.framing.frame import Frame
from ..remoting.framing.frame_decoder import KEEP_ALL, FrameDecoder
from ..remoting.framing.layout import PREFIX
from ..remoting.header_codec import decode_header

_FIRST_BYTES: Final = 64


class ReceivedCommand(NamedTuple):
    """A command and its body."""

    command: RemotingCommand
    body: bytes
    size: int
    """bytes of the whole frame"""


class StrictProblem(NamedTuple):
    """Why the connection must end."""

    detail: str
    """what is wrong, for a person"""
    protocol: str | None = None
    """the other protocol that the bytes look like"""
    bad_header: bool = False
    """the frame is one, but its header cannot be read"""


class StrictReader:
    """The bytes that one peer sends, from the first one on."""

    __slots__ = ("_decoder", "_experts", "_first", "_offset", "problem")

    def __init__(self, conversation: int = 0) -> None:
        self.problem: StrictProblem | None = None
        """why nothing more is read; None: go on"""
        self._experts: list[ExpertInfo] = []
        self._decoder = FrameDecoder(conversation, self._experts, KEEP_ALL, True)
        self._first = b""
        self._offset = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of the frame that is not whole yet."""
        return self._decoder.held_bytes

    def receive(self, data: bytes) -> list[ReceivedCommand]:
        """Return the commands that are whole now, up to the first bad byte; see `problem` then."""
        if self.problem is not None:
            return []
        frames: list[Frame] = []
        self._decoder.receive(data, 0, len(data), self._offset, 0, 0, frames)
        if not frames and self._offset == len(self._first) < _FIRST_BYTES:
            self._note_first(data)
        self._offset += len(data)
        if self._experts or not self._decoder.synchronized:
            self._note_bad_bytes(frames)
        received: list[ReceivedCommand] = []
        for frame in frames:
            command = decode_header(frame.serialize_type, frame.header)
            if command is None:
                self.problem = StrictProblem("a header that cannot be read", bad_header=True)
                break
            size = PREFIX + len(frame.header) + frame.body_length
            received.append(ReceivedCommand(command, frame.body, size))
        return received

    def _note_first(self, data: bytes) -> None:
        """Tell whether a stream without a frame so far begins as another protocol's."""
        self._first = (self._first + data)[:_FIRST_BYTES]
        protocol = protocol_of(self._first)
        if protocol is not None:
            self.problem = StrictProblem(f"these bytes look like {protocol}", protocol)

    def _note_bad_bytes(self, frames: list[Frame]) -> None:
        """Drop the frames behind the first bad byte: the decoder has looked for them."""
        end = self._experts[0].offset if self._experts else self._offset
        frames[:] = [frame for frame in frames if frame.offset < end]
        if self.problem is None:
            detail = self._experts[0].detail if self._experts else "no frame"
            self.problem = StrictProblem(detail)
