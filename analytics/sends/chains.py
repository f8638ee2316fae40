"""What the attempts of one message come to: was it stored, how often, in time, and with sense.

Pure logic over `attempts.Attempt`. Rules: what a capture cannot say is `unknown`, never a failure;
a copy is counted only where the broker gave it an id of its own, and one id is one copy always; a
code counts as one to retry by the client's version.
RocketMQ: DefaultMQProducerImpl.sendDefaultImpl, DefaultMQProducer.retryResponseCodes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dissectors.grpc import send_codes
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.retries import RETRIED_SINCE

from .attempts import (
    FAILURES,
    LATE,
    MAY_BE_STORED,
    REFUSED,
    STORED,
    UNKNOWN,
    UNTOLD,
    ObservedAttempt,
)

STORED_UNTOLD = UNTOLD
FAILED = "failed"
MAYBE = "may be stored"
FINAL = (STORED, STORED_UNTOLD, FAILED, MAYBE, UNKNOWN)
"""What may become of a message: `MAYBE` is a failure for the client, of which no answer came."""

_LOAD_CODES = frozenset(
    (
        int(ResponseCode.SYSTEM_BUSY),
        int(ResponseCode.SERVICE_NOT_AVAILABLE),
        int(ResponseCode.GO_AWAY),
    )
)
"""Codes that say something of the moment, not of the message."""
_OF_THE_REQUEST = re.compile(
    r"AclException|signature|accessKey|access key|no permission|not allowed|denied|"
    r"User:.*not found|unauthori[sz]ed",
    re.IGNORECASE,
)
"""Remarks of refusals that no other broker of the cluster would take back."""
_NUMBERS = re.compile(r"\d+")
_LONGEST_REMARK = 200

SENSELESS = "retried without sense"
OLD_CLIENT = "not retried: only newer clients retry this code"
NOT_RETRIED = "not retried, though this version retries this code"
NO_TIME = "not retried: one attempt used up the time"
VERDICTS = (SENSELESS, OLD_CLIENT, NOT_RETRIED, NO_TIME)
"""Verdicts on retries that were made or are missing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the client was set to."""

    timeout_us: int
    """sendMsgTimeout"""
    retries: int
    """retryTimesWhenSendFailed"""
    timeout_known: bool = True
    """the user says the timeout; else it is learnt, or the default"""


@dataclass(frozen=True, slots=True)
class Chain:
    """What the attempts of one message come to."""

    final: str
    """one of FINAL"""
    copies: int
    """times that a broker said that it stored the message, each at another place"""
    unsure: int
    """attempts without answer, each of which may have stored it once more"""
    late: int
    """attempts taken for failures that were answered as stored afterwards"""
    after_budget: int
    """attempts that began when sendMsgTimeout was over"""
    verdict: str | None
    """one of VERDICTS"""

    @property
    def duplicate(self) -> bool:
        """Whether the message is stored more than once, for certain."""
        return self.copies > 1


def remark_shape(remark: str | None) -> str | None:
    """Return a remark with its numbers as `N`, so that alike remarks are equal; None stays None."""
    return None if remark is None else _NUMBERS.sub("N", remark[:_LONGEST_REMARK])


def chain_of(attempts: Sequence[ObservedAttempt], limits: Limits) -> Chain:
    """Return what the attempts of a message, at least one, come to."""
    copies = {  # an id is of one message wherever it was answered; without one, an answer is
        attempt.send.offset_msg_id or (attempt.send.responder, attempt.number)
        for attempt in attempts
        if attempt.stored
    }
    begin, final = attempts[0].begin, _final(attempts)
    alone = not attempts[0].send.unique_key  # whether it was sent again cannot be told
    return Chain(
        final=UNKNOWN if alone and final in (FAILED, MAYBE) else final,
        copies=len(copies),
        unsure=sum(attempt.outcome in MAY_BE_STORED for attempt in attempts[:-1]),
        late=sum(attempt.outcome == LATE for attempt in attempts),
        after_budget=sum(one.is_after_budget(begin, limits.timeout_us) for one in attempts),
        verdict=None if alone or final in (STORED, STORED_UNTOLD) else _verdict(attempts, limits),
    )


def _final(attempts: Sequence[ObservedAttempt]) -> str:
    outcomes = {attempt.outcome for attempt in attempts}
    if STORED in outcomes:
        return STORED
    if LATE in outcomes or UNTOLD in outcomes:
        return STORED_UNTOLD
    if outcomes <= FAILURES:
        return MAYBE if outcomes & MAY_BE_STORED else FAILED
    return UNKNOWN


def _verdict(attempts: Sequence[ObservedAttempt], limits: Limits) -> str | None:
    last = attempts[-1]
    refused = [attempt for attempt in attempts if attempt.outcome == REFUSED]
    if len(refused) > 1 and len(refused) == len(attempts) and not _may_change(refused):
        return SENSELESS
    if last.send.call:
        return None
    if len(attempts) > limits.retries or last.outcome not in FAILURES:
        return None
    begin, end = attempts[0].begin, last.end
    if last.outcome != REFUSED:
        used_up = end is not None and end - begin >= limits.timeout_us * 0.9
        return NO_TIME if used_up and len(attempts) == 1 else None
    since = RETRIED_SINCE.get(last.send.response_code or 0)
    in_time = end is None or end - begin < limits.timeout_us
    if since is None or last.send.language != "JAVA" or not in_time or not _may_change(refused):
        return None
    if (last.send.version or 0) < since:
        return OLD_CLIENT
    return NOT_RETRIED if len(refused) == 1 else None  # it was retried, as often as was set


def _may_change(refused: Sequence[ObservedAttempt]) -> bool:
    """Return whether another attempt may have another answer than these refusals."""
    if all(one.send.call for one in refused):
        return not all(send_codes.is_final(one.send.response_code or 0) for one in refused)
    said = {(one.send.response_code, remark_shape(one.send.remark)) for one in refused}
    code, remark = next(iter(said))
    if remark is not None and _OF_THE_REQUEST.search(remark):
        return False
    return len(said) > 1 or len(refused) == 1 or code in _LOAD_CODES
