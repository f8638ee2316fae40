"""sendMsgTimeout of a client, learned from connections it closed without a response.

RocketMQ: DefaultMQProducerImpl.sendDefaultImpl, NettyRemotingClient.closeChannel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from .attempts import ALIKE_US, DEFAULT_TIMEOUT_US, GRACE_US, Send, creation_of, logged

_LEAST_TIMEOUT_US = 300_000
_ROUND_US = 100_000


def timeout_learnt(messages: Iterable[Sequence[Send]]) -> int | None:
    """Return sendMsgTimeout in µs learned from a client's messages, or None if unknown."""
    waited = sorted(
        send.closed - created
        for send in (same[0] for same in messages if len(same) == 1 and not same[0].call)
        # NettyRemotingClient closes the channel of a synchronous send that timed out.
        if send.status == "unanswered" and send.ended_by == "client" and not logged(send)
        if send.closed is not None
        and (created := creation_of(send, 100 * DEFAULT_TIMEOUT_US)) is not None
        if send.closed - created >= _LEAST_TIMEOUT_US
    )
    # Clients close at the timeout or slightly later: the smallest of several similar times is best.
    for least, following in pairwise(waited):
        if following - least <= ALIKE_US:  # a single time may be that of the client's end
            # people set round timeouts: half seconds first, then tenths
            whole = least // (5 * _ROUND_US) * 5 * _ROUND_US
            if least - whole <= ALIKE_US and whole >= _LEAST_TIMEOUT_US:
                return whole
            return least // _ROUND_US * _ROUND_US if least % _ROUND_US <= GRACE_US else least
    return None
