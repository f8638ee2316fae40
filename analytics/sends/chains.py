"""Result of all attempts of one message: stored or not, copies, lateness, and useless retries.

Pure logic over `attempts.ObservedAttempt`. What a capture cannot show is `unknown`, not a failure.

RocketMQ: DefaultMQProducerImpl.sendDefaultImpl, DefaultMQProducer.retryResponseCodes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dissectors.grpc import send_codes
from dissectors.remoting.code_sets import RETRIED_SINCE
from dissectors.remoting.codes import ResponseCode

from .attempts import (
    FAILURES,
    LATE,
    MAY_BE_STORED,
    REFUSED,
    STORED,
    STORED_UNCONFIRMED,
    UNKNOWN,
    ObservedAttempt,
)

FAILED = "failed"
MAYBE = "may be stored"
"""A failure for the client, without a response."""

_LOAD_CODES = frozenset(
    (
        int(ResponseCode.SYSTEM_BUSY),
        int(ResponseCode.SERVICE_NOT_AVAILABLE),
        int(ResponseCode.GO_AWAY),
    )
)
"""Codes about the broker's current state, not about the message."""
_OF_THE_REQUEST = re.compile(
    r"AclException|signature|accessKey|access key|no permission|not allowed|denied|"
    r"User:.*not found|unauthori[sz]ed",
    re.IGNORECASE,
)
"""Remarks of refusals that every broker of the cluster would repeat."""
_NUMBERS = re.compile(r"\d+")
_LONGEST_REMARK = 200

# verdicts on unnecessary or missing retries
SENSELESS = "retried without sense"
OLD_CLIENT = "not retried: only newer clients retry this code"
NOT_RETRIED = "not retried, though this version retries this code"
NO_TIME = "not retried: one attempt used up the time"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits configured in the client."""

    timeout_us: int
    """sendMsgTimeout"""
    retries: int
    """retryTimesWhenSendFailed"""
    timeout_known: bool = True
    """the timeout is configured; otherwise it is learned or the default"""


@dataclass(frozen=True, slots=True)
class Chain:
    """Result of all attempts of a message."""

    final: str
    """STORED, STORED_UNCONFIRMED, FAILED, MAYBE, or UNKNOWN"""
    copies: int
    """times that a broker confirmed storage, each at another place"""
    unsure: int
    """attempts without a response, each of which may have stored another copy"""
    late: int
    """attempts taken for failures that were later confirmed as stored"""
    after_budget: int
    """attempts that started after sendMsgTimeout"""
    verdict: str | None
    """SENSELESS, OLD_CLIENT, NOT_RETRIED, or NO_TIME; None: nothing to say"""

    @property
    def duplicate(self) -> bool:
        """Whether the message is certainly stored more than once."""
        return self.copies > 1


def remark_shape(remark: str | None) -> str | None:
    """Return a remark with numbers replaced by `N`, to group similar remarks."""
    return None if remark is None else _NUMBERS.sub("N", remark[:_LONGEST_REMARK])


def chain_of(attempts: Sequence[ObservedAttempt], limits: Limits) -> Chain:
    """Return the result of the attempts of a message; `attempts` is not empty."""
    copies = {  # one offset message id is one copy; without an id, each response counts
        attempt.send.offset_msg_id or (attempt.send.server_address, attempt.number)
        for attempt in attempts
        if attempt.stored
    }
    begin, final = attempts[0].begin, _final(attempts)
    no_key = not attempts[0].send.unique_key  # retries cannot be detected without a key
    return Chain(
        final=UNKNOWN if no_key and final in (FAILED, MAYBE) else final,
        copies=len(copies),
        unsure=sum(attempt.outcome in MAY_BE_STORED for attempt in attempts[:-1]),
        late=sum(attempt.outcome == LATE for attempt in attempts),
        after_budget=sum(attempt.is_after_budget(begin, limits.timeout_us) for attempt in attempts),
        verdict=None
        if no_key or final in (STORED, STORED_UNCONFIRMED)
        else _verdict(attempts, limits),
    )


def _final(attempts: Sequence[ObservedAttempt]) -> str:
    outcomes = {attempt.outcome for attempt in attempts}
    if STORED in outcomes:
        return STORED
    if LATE in outcomes or STORED_UNCONFIRMED in outcomes:
        return STORED_UNCONFIRMED
    if outcomes <= FAILURES:
        return MAYBE if outcomes & MAY_BE_STORED else FAILED
    return UNKNOWN


def _verdict(attempts: Sequence[ObservedAttempt], limits: Limits) -> str | None:
    last = attempts[-1]
    refused = [attempt for attempt in attempts if attempt.outcome == REFUSED]
    if len(refused) > 1 and len(refused) == len(attempts) and not _may_change(refused):
        return SENSELESS
    if last.send.call:
        return None  # the limits, and the codes that are retried, are those of remoting clients
    if len(attempts) > limits.retries or last.outcome not in FAILURES:
        return None
    begin, end = attempts[0].begin, last.end
    if last.outcome != REFUSED:
        used_up = end is not None and end - begin >= limits.timeout_us * 0.9
        return NO_TIME if used_up and len(attempts) == 1 else None
    # which codes are retried depends on the version, and clients of other languages differ
    since = RETRIED_SINCE.get(last.send.response_code or 0)
    in_time = end is None or end - begin < limits.timeout_us
    if since is None or last.send.language != "JAVA" or not in_time or not _may_change(refused):
        return None
    if (last.send.version or 0) < since:
        return OLD_CLIENT
    return NOT_RETRIED if len(refused) == 1 else None  # retried as often as configured


def _may_change(refused: Sequence[ObservedAttempt]) -> bool:
    """Return whether another attempt could get a response other than these refusals."""
    if all(attempt.send.call for attempt in refused):
        return not all(send_codes.is_final(attempt.send.response_code or 0) for attempt in refused)
    reasons = {
        (attempt.send.response_code, remark_shape(attempt.send.remark)) for attempt in refused
    }
    code, remark = next(iter(reasons))
    if remark is not None and _OF_THE_REQUEST.search(remark):
        return False
    return len(reasons) > 1 or len(refused) == 1 or code in _LOAD_CODES
