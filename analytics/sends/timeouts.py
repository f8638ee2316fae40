"""sendMsgTimeout of a client, as the connections show that it closed without an answer.

RocketMQ: DefaultMQProducerImpl.sendDefaultImpl, NettyRemotingClient.closeChannel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from .attempts import ALIKE_US, DEFAULT_TIMEOUT_US, GRACE_US, Send, born_of, logged

_LEAST_TIMEOUT_US = 300_000
_ROUND_US = 100_000


def timeout_learnt(messages: Iterable[Sequence[Send]]) -> int | None:
    """Return sendMsgTimeout in µs as a client's messages show it; None: they do not.

    A client that gets no answer to its only attempt closes the connection when the time is over, or
    a little later, so the least of several such times that are alike is nearest. People choose
    round numbers. One alone may be the end of the client.
    """
    waited = sorted(
        one.closed - born
        for one in (same[0] for same in messages if len(same) == 1 and not same[0].call)
        if one.status == "unanswered" and one.ended_by == "client" and not logged(one)
        if one.closed is not None and (born := born_of(one, 100 * DEFAULT_TIMEOUT_US)) is not None
        if one.closed - born >= _LEAST_TIMEOUT_US
    )
    for least, following in pairwise(waited):
        if following - least <= ALIKE_US:
            whole = least // (5 * _ROUND_US) * 5 * _ROUND_US
            if least - whole <= ALIKE_US and whole >= _LEAST_TIMEOUT_US:
                return whole
            return least // _ROUND_US * _ROUND_US if least % _ROUND_US <= GRACE_US else least
    return None
