"""Facts in the ext fields of requests and responses.

RocketMQ: EndTransactionRequestHeader, PullMessageResponseHeader, AckMessageRequestHeader,
ExtraInfoUtil, MessageSysFlag.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ..code_sets import SENDS
from ..codes import RequestCode, ResponseCode
from ..messages.properties import decode_properties
from ..send_fields import V1, send_fields_of
from ..sysflag import COMMIT, NO_TRANSACTION, PREPARED, ROLLBACK, TRANSACTION_MASK
from .names import (
    ACCOUNT,
    BORN_MS,
    CHECKED,
    CLIENT,
    CORRELATION,
    DEADLINE_MS,
    DECISION,
    DELAY_LEVEL,
    FROM_BROKER,
    OFFSETS,
    PROPERTIES,
    RECONSUME_LIMIT,
    RECONSUMED,
    SUSPEND_MS,
    TRANSACTION,
    TRANSACTION_ID,
    TTL_MS,
    fact,
    fact_in,
    present_facts,
)
from .values import LONGEST_NUMBER, number_of, number_or_zero

_DECISIONS: Final = {
    str(COMMIT): "commit",
    str(ROLLBACK): "rollback",
    str(NO_TRANSACTION): "unknown",
}
PULLS: Final = frozenset((int(RequestCode.PULL_MESSAGE), int(RequestCode.LITE_PULL_MESSAGE)))
"""Requests with offsets as facts, including those of the response."""

POPS: Final = frozenset((int(RequestCode.POP_MESSAGE), int(RequestCode.POP_LITE_MESSAGE)))
"""Requests with times as facts if the broker reports them as expired."""
POLLING_TIMEOUT: Final = int(ResponseCode.POLLING_TIMEOUT)

_SEND_BACK: Final = int(RequestCode.CONSUMER_SEND_MSG_BACK)
_END: Final = int(RequestCode.END_TRANSACTION)
_CHECK: Final = int(RequestCode.CHECK_TRANSACTION_STATE)
_PUSHED_REPLY: Final = int(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT)

_ACKS: Final = frozenset(
    (int(RequestCode.ACK_MESSAGE), int(RequestCode.CHANGE_MESSAGE_INVISIBLETIME))
)
_UNREGISTER: Final = int(RequestCode.UNREGISTER_CLIENT)

NOT_ALLOWED: Final = frozenset((int(ResponseCode.SYSTEM_ERROR), int(ResponseCode.NO_PERMISSION)))
"""Codes of 4.x and 5.x for a client without permission."""
_ACCESS_KEY: Final = "AccessKey"
"""SessionCredentials.ACCESS_KEY"""
_SUSPENDS: Final = 2
"""PullSysFlag.FLAG_SUSPEND"""
CORRELATION_ID: Final = "CORRELATION_ID"
"""property of a request message and of its reply"""

HEADER_FACTS: Final = (
    PULLS | POPS | SENDS | _ACKS | frozenset((_SEND_BACK, _END, _CHECK, _PUSHED_REPLY, _UNREGISTER))
)
"""Requests whose ext fields give facts."""


def header_facts(
    code: int, request: dict[str, str], response_code: int, response: dict[str, str] | None
) -> list[str]:
    """Return the facts in the ext fields of a request of `HEADER_FACTS` and of its response.

    `response_code` is -1 and `response` None without a response.
    """
    facts = _facts_of_kind(code, request, response_code, response)
    if response_code in NOT_ALLOWED and (account := request.get(_ACCESS_KEY)):
        facts.append(fact(ACCOUNT, account))
    return facts


def _facts_of_kind(
    code: int, request: dict[str, str], response_code: int, response: dict[str, str] | None
) -> list[str]:
    if code in SENDS:
        return _send_facts(code, request, response_code)
    get = request.get
    if code in PULLS:
        return _pull_facts(request, response)
    if code == _SEND_BACK:
        return present_facts((DELAY_LEVEL, get("delayLevel")))
    if code == _END:
        flag = get("commitOrRollback")
        decision = _DECISIONS.get(flag, flag) if flag is not None else None
        checked = "true" if get("fromTransactionCheck") == "true" else None
        return present_facts(
            (DECISION, decision), (CHECKED, checked), (TRANSACTION_ID, get("transactionId"))
        )
    if code == _CHECK:
        return present_facts((TRANSACTION_ID, get("transactionId") or get("msgId")))
    if code in POPS and response_code == POLLING_TIMEOUT:
        return present_facts((BORN_MS, get("bornTime")), (SUSPEND_MS, get("pollTime")))
    if code in _ACKS:
        return present_facts((DEADLINE_MS, deadline_of(get("extraInfo"))))
    if code == _PUSHED_REPLY:
        return _reply_facts(get(V1.properties))
    return [] if code in POPS else present_facts((CLIENT, get("clientID")))


def _send_facts(code: int, request: dict[str, str], response_code: int) -> list[str]:
    names = send_fields_of(code)
    get = request.get
    facts: list[str] = []
    flag = get(names.sys_flag)
    if flag is not None and flag != "0" and number_or_zero(flag) & TRANSACTION_MASK == PREPARED:
        facts.append(fact(TRANSACTION, "prepared"))
    reconsumed = get(names.reconsume_times)
    if reconsumed is not None and reconsumed != "0":
        facts.append(fact(RECONSUMED, reconsumed))
        if limit := get(names.max_reconsume_times):
            facts.append(fact(RECONSUME_LIMIT, limit))
    properties = get(names.properties)
    # Their size may be the reason: brokers refuse more than 32767 bytes.
    if properties and response_code > 0:
        facts.append(fact(PROPERTIES, len(properties.encode("utf-8", "replace"))))
    return facts + _reply_facts(properties)


def _reply_facts(properties: str | None) -> list[str]:
    if not properties or CORRELATION_ID not in properties:  # nearly all sends
        return []
    values = decode_properties(properties)
    return present_facts((CORRELATION, values.get(CORRELATION_ID)), (TTL_MS, values.get("TTL")))


def _pull_facts(request: dict[str, str], response: dict[str, str] | None) -> list[str]:
    begin = request.get("queueOffset")
    if response is None:
        suspends = number_or_zero(request.get("sysFlag", "")) & _SUSPENDS
        # A pull that a broker may hold is not late before this time.
        held = request.get("suspendTimeoutMillis") if suspends else "0"
        return pull_facts(begin, None, None, None, None) + present_facts((SUSPEND_MS, held))
    get = response.get
    return pull_facts(
        begin, get("nextBeginOffset"), get("minOffset"), get("maxOffset"),
        get("suggestWhichBrokerId"),
    )  # fmt: skip


def pull_facts(
    begin: str | None,
    following: str | None,
    least: str | None,
    most: str | None,
    broker: str | None,
) -> list[str]:
    """Return the facts of a pull: its offset, and the offsets in the response, or None."""
    offsets = f"{_short(begin)} {_short(following)} {_short(least)} {_short(most)}"
    facts = [fact(OFFSETS, offsets)]
    if broker is not None and broker != "0":
        facts.append(fact(FROM_BROKER, broker))
    return facts


def _short(text: str | None) -> str:
    return text if text and len(text) <= LONGEST_NUMBER else "-"


_OFFSETS: Final = f"{OFFSETS}="


def offsets_in(facts: Iterable[str]) -> tuple[int | None, int | None, int | None, int | None]:
    """Return (asked, next, min, max) of a pull, each None if absent."""
    value = fact_in(facts, OFFSETS)
    parts = value.split(" ") if value is not None else []
    if len(parts) != 4:
        return None, None, None, None
    asked, following, least, most = (number_of(part) for part in parts)
    return asked, following, least, most


def following_in(facts: Sequence[str]) -> int | None:
    """Return next of `offsets_in` if it is the first fact, as it is of a pull; else None."""
    if not facts or not facts[0].startswith(_OFFSETS):
        return None
    parts = facts[0].split(" ", 2)
    return number_of(parts[1]) if len(parts) == 3 else None


def deadline_of(receipt: str | None) -> str | None:
    """Return popTime + invisibleTime of a POP receipt (ExtraInfoUtil.buildExtraInfo)."""
    parts = receipt.split(" ", 3) if receipt else []
    if len(parts) < 3:
        return None
    popped, invisible = number_of(parts[1]), number_of(parts[2])
    return str(popped + invisible) if popped is not None and invisible is not None else None
