"""Facts: what diagnosis needs of headers and bodies that has no column of its own.

Rules: a fact is `name=value`; names and what they hold are declared here once (`FACTS`), and each
form of value is written and read side by side. Only requests and answers that have something to say
get facts, so that a plain send costs nothing. Everything is bounded, and nothing raises because of
what was captured.
RocketMQ: HeartbeatData, TopicRouteData, LockBatchRequestBody, LockBatchResponseBody,
GetConsumerListByGroupResponseBody, EndTransactionRequestHeader, PullMessageResponseHeader,
AckMessageRequestHeader, ExtraInfoUtil, MessageSysFlag.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from .code_sets import SENDS
from .codes import RequestCode, ResponseCode
from .fastjson.codec import decode_json
from .messages.counting import RECORD_MAGICS
from .send_fields import send_fields_of

MAX_FACTS: Final = 128
"""facts of one exchange"""
MAX_VALUE: Final = 400
"""characters of one value"""
MAX_BODY: Final = 256 * 1024
"""bytes of a JSON body that facts are taken from; a heartbeat has some kilobytes"""


class Fact(NamedTuple):
    """What one name stands for."""

    name: str
    meaning: str
    source: str


CLIENT: Final = "client"
CONSUMER: Final = "consumer"
PRODUCER: Final = "producer"
SUBSCRIPTION: Final = "subscription"
ROUTE: Final = "route"
SLAVE: Final = "slave"
GROUP: Final = "group"
QUEUES_ASKED: Final = "queues_asked"
QUEUES_LOCKED: Final = "queues_locked"
MEMBERS: Final = "members"
MEMBER: Final = "member"
OFFSETS: Final = "offsets"
FROM_BROKER: Final = "from_broker"
STORED_MS: Final = "stored_ms"
DELAY_LEVEL: Final = "delay_level"
TRANSACTION: Final = "transaction"
TRANSACTION_ID: Final = "transaction_id"
DECISION: Final = "decision"
CHECKED: Final = "checked"
DEADLINE_MS: Final = "deadline_ms"
SETTING: Final = "setting"
RECONSUMED: Final = "reconsumed"
RECONSUME_LIMIT: Final = "reconsume_limit"
PROPERTIES: Final = "properties_bytes"
ACCOUNT: Final = "account"

FACTS: Final = (
    Fact(CLIENT, "client id", "heartbeat: body; ext field `clientID`; lock of queues: body"),
    Fact(CONSUMER, "`TYPE MODEL GROUP` of a consumer group", "heartbeat: body"),
    Fact(PRODUCER, "a producer group", "heartbeat: body"),
    Fact(SUBSCRIPTION, "`GROUP TOPIC TYPE EXPRESSION` of a subscription", "heartbeat: body"),
    Fact(
        ROUTE,
        "`PERM READ WRITE IDS NAME` of a broker in a route: permission bits, numbers of queues, ids"
        " of its addresses (0: the master) joined by commas",
        "route: body of the response",
    ),
    Fact(SLAVE, "`ID ADDRESS` of a broker in a route that is no master", "the same"),
    Fact(GROUP, "group whose queues are locked or unlocked", "request body"),
    Fact(QUEUES_ASKED, "queues that a consumer asks to lock", "request body"),
    Fact(QUEUES_LOCKED, "queues that it got", "response body"),
    Fact(MEMBERS, "members of a consumer group", "response body"),
    Fact(MEMBER, "client id of one of them", "response body"),
    Fact(
        OFFSETS,
        "`ASKED NEXT MIN MAX` of a pull; `-` for what is absent",
        "ext fields `queueOffset`, `nextBeginOffset`, `minOffset`, `maxOffset`",
    ),
    Fact(
        FROM_BROKER,
        "id of the broker that the next pull should go to, unless it is the master's",
        "ext field `suggestWhichBrokerId`",
    ),
    Fact(STORED_MS, "store time of the first message of a pull, ms", "response body"),
    Fact(DELAY_LEVEL, "delay level of a message sent back", "ext field `delayLevel`"),
    Fact(TRANSACTION, "`prepared` of a half message", "sysFlag of a send"),
    Fact(TRANSACTION_ID, "transaction id", "ext field `transactionId`"),
    Fact(
        DECISION,
        "`commit`, `rollback` or `unknown`: how a transaction ends",
        "ext field `commitOrRollback`",
    ),
    Fact(
        CHECKED, "`true` where it answers a check of the broker", "ext field `fromTransactionCheck`"
    ),
    Fact(
        DEADLINE_MS,
        "time until which a message of POP may be acknowledged, ms",
        "ext field `extraInfo`",
    ),
    Fact(SETTING, "name of a setting that is changed, without its value", "request body"),
    Fact(RECONSUMED, "how often a message that is sent was consumed", "ext field of a send"),
    Fact(RECONSUME_LIMIT, "how often it may be, before it is a dead letter", "the same"),
    Fact(PROPERTIES, "bytes of the properties of a refused send", "ext field of a send"),
    Fact(
        ACCOUNT,
        "account of a client whose send, pull or unregistration was refused with code 1 or 16;"
        " never its secret",
        "ext field `AccessKey`",
    ),
)
"""All names, in the order of the document."""

MASTER_ID: Final = "0"
"""MixAll.MASTER_ID"""
_PREPARED: Final = 0x4
_TRANSACTION_BITS: Final = 0xC
_BORN_HOST_V6: Final = 0x10
_DECISIONS: Final = {"8": "commit", "12": "rollback", "0": "unknown"}
_PULLS: Final = frozenset((int(RequestCode.PULL_MESSAGE), int(RequestCode.LITE_PULL_MESSAGE)))
_LOCKS: Final = frozenset((int(RequestCode.LOCK_BATCH_MQ), int(RequestCode.UNLOCK_BATCH_MQ)))
_CONFIGS: Final = frozenset(
    (int(RequestCode.UPDATE_BROKER_CONFIG), int(RequestCode.UPDATE_NAMESRV_CONFIG))
)
_SEND_BACK: Final = int(RequestCode.CONSUMER_SEND_MSG_BACK)
_END: Final = int(RequestCode.END_TRANSACTION)
_CHECK: Final = int(RequestCode.CHECK_TRANSACTION_STATE)
_HEARTBEAT: Final = int(RequestCode.HEART_BEAT)
_ACKS: Final = frozenset(
    (int(RequestCode.ACK_MESSAGE), int(RequestCode.CHANGE_MESSAGE_INVISIBLETIME))
)
_CLIENT_REQUESTS: Final = frozenset((int(RequestCode.UNREGISTER_CLIENT),))

_NOT_ALLOWED: Final = frozenset((int(ResponseCode.SYSTEM_ERROR), int(ResponseCode.NO_PERMISSION)))
"""How 4.x and 5.x answer a client that may not do what it asks."""
_ACCESS_KEY: Final = "AccessKey"
"""SessionCredentials.ACCESS_KEY"""

HEADER_FACTS: Final = (
    _PULLS | SENDS | _ACKS | _CLIENT_REQUESTS | frozenset((_SEND_BACK, _END, _CHECK))
)
"""Requests of which ext fields give facts."""
BODY_REQUESTS: Final = (*sorted(_LOCKS), *sorted(_CONFIGS), _HEARTBEAT)
"""Requests of which the body gives facts."""

_LONGEST: Final = 20
"""characters of a 64-bit number"""
_RECORD: Final = struct.Struct(">iI28xi")
_STORE_TIME: Final = struct.Struct(">q")


def fact(name: str, value: object) -> str:
    """Return a fact as it stands in the column."""
    return f"{name}={str(value)[:MAX_VALUE]}"


def fact_in(facts: Iterable[str], name: str) -> str | None:
    """Return the value of the first fact of that name; None where there is none."""
    start = name + "="
    for one in facts:
        if one.startswith(start):
            return one[len(start) :]
    return None


def number_in(facts: Iterable[str], name: str) -> int | None:
    """Return the number that the first fact of that name is; None where it is none."""
    value = fact_in(facts, name)
    return _number(value) if value is not None else None


def facts_in(facts: Iterable[str], name: str) -> list[str]:
    """Return the values of all facts of that name."""
    start = name + "="
    return [one[len(start) :] for one in facts if one.startswith(start)]


# -- ext fields -----------------------------------------------------------------------------------


def header_facts(
    code: int, asked: dict[str, str], answer_code: int, answered: dict[str, str] | None
) -> list[str]:
    """Return the facts in the ext fields of a request of `HEADER_FACTS` and of its answer.

    `answer_code` is -1 and `answered` None where there is no answer.
    """
    facts = _facts_of_kind(code, asked, answer_code, answered)
    if answer_code in _NOT_ALLOWED and (account := asked.get(_ACCESS_KEY)):
        facts.append(fact(ACCOUNT, account))
    return facts


def _facts_of_kind(
    code: int, asked: dict[str, str], answer_code: int, answered: dict[str, str] | None
) -> list[str]:
    if code in SENDS:
        return _send_facts(code, asked, answer_code)
    get = asked.get
    if code in _PULLS:
        return _pull_facts(asked, answered)
    if code == _SEND_BACK:
        return _given((DELAY_LEVEL, get("delayLevel")))
    if code == _END:
        flag = get("commitOrRollback")
        decision = _DECISIONS.get(flag, flag) if flag is not None else None
        checked = "true" if get("fromTransactionCheck") == "true" else None
        return _given(
            (DECISION, decision), (CHECKED, checked), (TRANSACTION_ID, get("transactionId"))
        )
    if code == _CHECK:
        return _given((TRANSACTION_ID, get("transactionId") or get("msgId")))
    if code in _ACKS:
        return _given((DEADLINE_MS, _deadline(get("extraInfo"))))
    return _given((CLIENT, get("clientID")))


def _given(*named: tuple[str, str | None]) -> list[str]:
    return [fact(name, value) for name, value in named if value]


def _send_facts(code: int, asked: dict[str, str], answer_code: int) -> list[str]:
    names = send_fields_of(code)
    get = asked.get
    facts: list[str] = []
    flag = get(names.sys_flag)
    if flag is not None and flag != "0" and _small(flag) & _TRANSACTION_BITS == _PREPARED:
        facts.append(fact(TRANSACTION, "prepared"))
    reconsumed = get(names.reconsume_times)
    if reconsumed is not None and reconsumed != "0":
        facts.append(fact(RECONSUMED, reconsumed))
        if limit := get(names.max_reconsume_times):
            facts.append(fact(RECONSUME_LIMIT, limit))
    if answer_code > 0:
        properties = get(names.properties)
        if properties:
            facts.append(fact(PROPERTIES, len(properties.encode("utf-8", "replace"))))
    return facts


def _pull_facts(asked: dict[str, str], answered: dict[str, str] | None) -> list[str]:
    begin = _short(asked.get("queueOffset"))
    if answered is None:
        return [fact(OFFSETS, f"{begin} - - -")]
    get = answered.get
    following, least = _short(get("nextBeginOffset")), _short(get("minOffset"))
    facts = [fact(OFFSETS, f"{begin} {following} {least} {_short(get('maxOffset'))}")]
    broker = get("suggestWhichBrokerId")
    if broker is not None and broker != "0":
        facts.append(fact(FROM_BROKER, broker))
    return facts


def _short(text: str | None) -> str:
    return text if text and len(text) <= _LONGEST else "-"


def offsets_in(facts: Iterable[str]) -> tuple[int | None, int | None, int | None, int | None]:
    """Return (asked, next, min, max) of a pull; None for what is absent."""
    value = fact_in(facts, OFFSETS)
    parts = value.split(" ") if value is not None else []
    if len(parts) != 4:
        return None, None, None, None
    asked, following, least, most = (_number(part) for part in parts)
    return asked, following, least, most


def _deadline(receipt: str | None) -> str | None:
    """Return popTime + invisibleTime of a POP receipt (ExtraInfoUtil.buildExtraInfo)."""
    parts = receipt.split(" ", 3) if receipt else []
    if len(parts) < 3:
        return None
    popped, invisible = _number(parts[1]), _number(parts[2])
    return str(popped + invisible) if popped is not None and invisible is not None else None


def _number(text: str) -> int | None:
    """Return a 64-bit number in decimal; None for anything else."""
    digits = text[1:] if text[:1] == "-" else text
    if len(text) > _LONGEST or not (digits.isascii() and digits.isdecimal()):
        return None
    value = int(text)
    return value if -(1 << 63) <= value < 1 << 63 else None


def _small(text: str) -> int:
    return _number(text) or 0


# -- bodies ---------------------------------------------------------------------------------------


def request_body_facts(code: int, body: bytes) -> list[str]:
    """Return the facts in the body of a request of `BODY_REQUESTS`."""
    if code in _CONFIGS:
        return _settings(body)
    value = _object_in(body)
    if value is None:
        return []
    if code == _HEARTBEAT:
        return _heartbeat_facts(value)
    queues = value.get("mqSet")
    return _given(
        (CLIENT, _text(value.get("clientId"))),
        (GROUP, _text(value.get("consumerGroup"))),
        (QUEUES_ASKED, str(len(queues)) if isinstance(queues, list) else None),
    )


def response_body_facts(body: bytes) -> list[str]:
    """Return the facts in the body of a good response, told by what is in it."""
    if b'"queueDatas"' in body:
        return _route_facts(_object_in(body) or {})
    if b'"lockOKMQSet"' in body:
        queues = (_object_in(body) or {}).get("lockOKMQSet")
        return _given((QUEUES_LOCKED, str(len(queues)) if isinstance(queues, list) else None))
    if b'"consumerIdList"' in body:
        members = (_object_in(body) or {}).get("consumerIdList")
        if not isinstance(members, list):
            return []
        named = [fact(MEMBER, one) for one in members[: MAX_FACTS - 1] if isinstance(one, str)]
        return [fact(MEMBERS, len(members)), *named]
    return []


def message_facts(body: bytes) -> list[str]:
    """Return the facts of a body of stored messages: of its first."""
    if len(body) < 76:
        return []
    _, magic, flag = _RECORD.unpack_from(body)
    if magic not in RECORD_MAGICS:
        return []
    (stored,) = _STORE_TIME.unpack_from(body, 68 if flag & _BORN_HOST_V6 else 56)
    return [fact(STORED_MS, stored)]


def _object_in(body: bytes) -> dict[str, object] | None:
    if len(body) > MAX_BODY:
        return None
    value = decode_json(body).value
    return value if isinstance(value, dict) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _heartbeat_facts(value: dict[str, object]) -> list[str]:
    facts = _given((CLIENT, _text(value.get("clientID"))))
    for group in _objects(value.get("producerDataSet")):
        if name := _text(group.get("groupName")):
            facts.append(fact(PRODUCER, name))
    for group in _objects(value.get("consumerDataSet")):
        name = _text(group.get("groupName"))
        if name is None:
            continue
        kind = _text(group.get("consumeType")) or "-"
        model = _text(group.get("messageModel")) or "-"
        facts.append(fact(CONSUMER, f"{kind} {model} {name}"))
        for one in _objects(group.get("subscriptionDataSet")):
            topic = _text(one.get("topic")) or "-"
            type_ = _text(one.get("expressionType")) or "TAG"
            expression = _text(one.get("subString")) or "*"
            facts.append(fact(SUBSCRIPTION, f"{name} {topic} {type_} {expression}"))
    return facts[:MAX_FACTS]


def _objects(value: object) -> list[dict[str, object]]:
    found = value if isinstance(value, list) else []
    return [one for one in found[:MAX_FACTS] if isinstance(one, dict)]


class AnnouncedSubscription(NamedTuple):
    """One subscription of a heartbeat."""

    group: str
    topic: str
    type: str
    expression: str


def subscriptions_in(facts: Iterable[str]) -> list[AnnouncedSubscription]:
    """Return the subscriptions that a heartbeat announces."""
    parts = (value.split(" ", 3) for value in facts_in(facts, SUBSCRIPTION))
    return [AnnouncedSubscription(*one) for one in parts if len(one) == 4]


class AnnouncedGroup(NamedTuple):
    """One consumer group of a heartbeat."""

    type: str
    """CONSUME_ACTIVELY (pull) or CONSUME_PASSIVELY (push)"""
    model: str
    """CLUSTERING or BROADCASTING"""
    name: str


def consumers_in(facts: Iterable[str]) -> list[AnnouncedGroup]:
    """Return the consumer groups that a heartbeat announces."""
    parts = (value.split(" ", 2) for value in facts_in(facts, CONSUMER))
    return [AnnouncedGroup(*one) for one in parts if len(one) == 3]


class RoutedBroker(NamedTuple):
    """One broker of a route."""

    perm: int | None
    """bits: 4 readable, 2 writable, 1 inherited; None: it has no queues of the topic"""
    read_queues: int
    write_queues: int
    ids: tuple[str, ...]
    """ids of its addresses; `0` is the master"""
    name: str


def routed_brokers_in(facts: Iterable[str]) -> list[RoutedBroker]:
    """Return the brokers that a route names."""
    found = map(_routed_broker, facts_in(facts, ROUTE))
    return [one for one in found if one is not None]


@lru_cache(maxsize=4096)  # clients ask for the same routes all the time
def _routed_broker(value: str) -> RoutedBroker | None:
    parts = value.split(" ", 4)
    if len(parts) != 5:
        return None
    perm, read, write, ids, name = parts
    each = tuple(ids.split(",")) if ids != "-" else ()
    return RoutedBroker(_number(perm), _small(read), _small(write), each, name)


def _route_facts(value: dict[str, object]) -> list[str]:
    queues = {_text(one.get("brokerName")): one for one in _objects(value.get("queueDatas"))}
    brokers = {_text(one.get("brokerName")): one for one in _objects(value.get("brokerDatas"))}
    facts: list[str] = []
    slaves: list[str] = []
    for name in dict.fromkeys((*queues, *brokers)):
        if name is None:
            continue
        queue, addresses = queues.get(name, {}), brokers.get(name, {}).get("brokerAddrs")
        by_id = addresses if isinstance(addresses, dict) else {}
        ids = sorted(str(one) for one in by_id if _is_id(one))
        numbers = [_whole_number(queue.get(field)) for field in _QUEUE_FIELDS]
        facts.append(fact(ROUTE, " ".join((*numbers, ",".join(ids[:16]) or "-", name))))
        slaves += [
            fact(SLAVE, f"{one} {address}")
            for one, address in by_id.items()
            if _is_id(one) and str(one) != MASTER_ID and isinstance(address, str)
        ]
    return (facts + slaves)[:MAX_FACTS]


def _is_id(value: object) -> bool:
    """Return whether that may be the id of a broker; a blank or comma would shift what follows."""
    return _number(str(value)) is not None and not isinstance(value, float)


def _whole_number(value: object) -> str:
    """Return a 32-bit number as text; `-` for anything else."""
    return str(value) if type(value) is int and -(1 << 31) <= value < 1 << 31 else "-"


def slaves_in(facts: Iterable[str]) -> dict[str, str]:
    """Return address -> id of the slaves that a route names."""
    parts = (value.split(" ", 1) for value in facts_in(facts, SLAVE))
    return {one[1]: one[0] for one in parts if len(one) == 2}


_QUEUE_FIELDS: Final = ("perm", "readQueueNums", "writeQueueNums")


def _settings(body: bytes) -> list[str]:
    """Return the names of `name=value` lines; values may be secrets.

    A value may go on in the next line: after a backslash, or because it has line ends itself. Such
    a line is no setting, as far as can be told.
    """
    names: dict[str, None] = {}
    goes_on = False
    for line in body[:MAX_BODY].splitlines():
        found = None if goes_on else _SETTING_LINE.match(line)
        if found is not None:
            names[found[1].decode("ascii")] = None
        goes_on = line.endswith(b"\\")
    return [fact(SETTING, name) for name in list(names)[:MAX_FACTS]]


_SETTING_LINE: Final = re.compile(rb"\s*([A-Za-z][A-Za-z0-9_.$-]{0,99})\s*=(?!=\s*$)")
