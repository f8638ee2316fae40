"""Strict reader for commands of a live peer: anything but RocketMQ ends the connection.

A capture reader searches for the next frame after bad bytes; a client or broker must not, because
what follows cannot be trusted. Memory: one incomplete frame.
RocketMQ: NettyDecoder, which closes the channel.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..conversations.recognition import protocol_of
from ..findings import Finding
from ..remoting.command import RemotingCommand
from ..remoting.framing.frame import PREFIX, Frame
from ..remoting.framing.frame_decoder import KEEP_ALL, FrameDecoder
from ..remoting.header_codec import decode_header

_FIRST_BYTES: Final = 64


class ReceivedCommand(NamedTuple):
    """A command and its body."""

    command: RemotingCommand
    body: bytes
    size: int
    """bytes of the whole frame"""


class StrictProblem(NamedTuple):
    """The reason to end a connection."""

    detail: str
    """human-readable description"""
    protocol: str | None = None
    """another protocol that the bytes look like"""
    bad_header: bool = False
    """a valid frame with an unreadable header"""


class StrictReader:
    """Reader for the bytes of one peer, from the first one."""

    __slots__ = ("_decoder", "_findings", "_first", "_offset", "problem")

    def __init__(self, conversation: int = 0) -> None:
        self.problem: StrictProblem | None = None
        """why reading stopped, or None"""
        self._findings: list[Finding] = []
        self._decoder = FrameDecoder(conversation, self._findings, KEEP_ALL, True)
        self._first = b""
        self._offset = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of the incomplete frame."""
        return self._decoder.held_bytes

    def receive(self, data: bytes) -> list[ReceivedCommand]:
        """Return the commands completed by `data`, up to the first bad byte, which sets
        `problem`.
        """
        if self.problem is not None:
            return []
        frames: list[Frame] = []
        self._decoder.receive(data, 0, len(data), self._offset, 0, 0, frames)
        # So far there was no frame at all, and fewer bytes than decide on the protocol.
        if not frames and self._offset == len(self._first) < _FIRST_BYTES:
            self._note_first(data)
        self._offset += len(data)
        if self._findings or not self._decoder.synchronized:
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
        """Check whether a stream without a frame so far begins as another protocol."""
        self._first = (self._first + data)[:_FIRST_BYTES]
        protocol = protocol_of(self._first)
        if protocol is not None:
            self.problem = StrictProblem(f"these bytes look like {protocol}", protocol)

    def _note_bad_bytes(self, frames: list[Frame]) -> None:
        """Drop the frames after the first bad byte, which the decoder has searched for."""
        end = self._findings[0].offset if self._findings else self._offset
        frames[:] = [frame for frame in frames if frame.offset < end]
        if self.problem is None:
            detail = self._findings[0].detail if self._findings else "no frame"
            self.problem = StrictProblem(detail)
