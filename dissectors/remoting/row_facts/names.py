"""Names and meanings of facts, and how facts are written and looked up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ...facts import value_in
from ...table_text import entries

MAX_FACTS: Final = 128
"""maximum facts of an exchange"""
MAX_VALUE: Final = 400
"""maximum characters of a value"""


class FactKind(NamedTuple):
    """Meaning of a fact name."""

    name: str
    meaning: str
    source: str


CLIENT: Final = "client"
"""client id: the column `client_id`; older logs have it among the facts"""
CONSUMER: Final = "consumer"
PRODUCER: Final = "producer"
SUBSCRIPTION: Final = "subscription"
ROUTE: Final = "route"
SLAVE: Final = "slave"
GROUP: Final = "group"
QUEUES_REQUESTED: Final = "queues_asked"
QUEUES_LOCKED: Final = "queues_locked"
MEMBERS: Final = "members"
MEMBER: Final = "member"
OFFSETS: Final = "offsets"
FROM_BROKER: Final = "from_broker"
STORED_MS: Final = "stored_ms"
FIRST_KEY: Final = "first_key"
TIMER: Final = "timer"
DELAY_LEVEL: Final = "delay_level"
TRANSACTION: Final = "transaction"
TRANSACTION_ID: Final = "transaction_id"
DECISION: Final = "decision"
CHECKED: Final = "checked"
DEADLINE_MS: Final = "deadline_ms"
BORN_MS: Final = "born_ms"
SETTING: Final = "setting"
RECONSUMED: Final = "reconsumed"
RECONSUME_LIMIT: Final = "reconsume_limit"
PROPERTIES: Final = "properties_bytes"
ACCOUNT: Final = "account"
CLIENT_TYPE: Final = "client_type"
MESSAGE_TYPE: Final = "message_type"
MESSAGE_GROUP: Final = "message_group"
FIFO: Final = "fifo"
DELIVER_MS: Final = "deliver_ms"
STREAM_RESET: Final = "stream_reset"
CONSUME_FROM: Final = "consume_from"
RESPELLED: Final = "respelled"
REQUESTED_ENDPOINT: Final = "asked_endpoint"
ENDPOINT: Final = "endpoint"
SUSPEND_MS: Final = "suspend_ms"
CORRELATION: Final = "correlation"
TTL_MS: Final = "ttl_ms"
SERVER_VERSION: Final = "server_version"
FAULT: Final = "fault"

# NAME: value <- source; the table of docs/decoded-log.md
_TABLE: Final = """
consumer: `TYPE MODEL GROUP` of a consumer group <- heartbeat: body
producer: a producer group <- heartbeat: body
consume_from: `WHERE GROUP`: where a group without an offset starts <- heartbeat: body
respelled: field of the body that is not spelled as in Java; brokers since 5.4 do not read it
  <- heartbeat: body
subscription: `GROUP TOPIC TYPE EXPRESSION` of a subscription <- heartbeat: body
route: `PERM READ WRITE IDS NAME` of a broker in a route: permission bits, numbers of queues, ids
  of its addresses (0: the master) joined by commas <- route: body of the response
slave: `ID ADDRESS` of a broker in a route that is not a master <- route: body of the response
group: group whose queues are locked or unlocked <- request body
queues_asked: queues that a consumer asks to lock <- request body
queues_locked: queues that were locked for the consumer <- response body
members: members of a consumer group <- response body
member: client id of one of them <- response body
offsets: `ASKED NEXT MIN MAX` of a pull; `-` for what is absent <- ext fields `queueOffset`,
  `nextBeginOffset`, `minOffset`, `maxOffset`
from_broker: id of the broker that the next pull should go to, unless it is the master's <- ext
  field `suggestWhichBrokerId`
stored_ms: store time of the first message of a pull or of ReceiveMessage, ms <- response body
first_key: UNIQ_KEY of that message <- response body
timer: `ASKED TOOK LATE` of the first message of a pull or of ReceiveMessage, if timed: ms of
  delay that its producer asked for, ms from its creation to its delivery to the queue, ms that
  the broker delivered it after it was due (`-`: the broker did not delay it) <- response body
delay_level: delay level of a returned message <- ext field `delayLevel`
transaction: `prepared` of a half message <- sysFlag of a send
transaction_id: transaction id <- ext field `transactionId`
decision: `commit`, `rollback` or `unknown`: how a transaction ends <- ext field
  `commitOrRollback`
checked: `true`: the transaction was ended in response to a check by the broker <- ext field
  `fromTransactionCheck`
deadline_ms: time until which a message of POP may be acknowledged, ms <- ext field `extraInfo`;
  gRPC: receipt handle
born_ms: time of a pop by its client's clock, ms, if the broker reports that the pop has expired
  <- ext field `bornTime`
setting: name of a setting that is changed, without its value <- request body
reconsumed: how often a message that is sent was consumed, or the first message of a pull or of
  ReceiveMessage, if it was <- ext field of a send; response body; gRPC: field of a dead letter
reconsume_limit: maximum of `reconsumed` before the message becomes a dead letter <- ext field of
  a send; gRPC: field of a dead letter
properties_bytes: bytes of the properties of a refused send <- ext field of a send
account: account of a client whose send, pull or unregistration was refused with code 1 or 16;
  never its secret <- ext field `AccessKey`; gRPC: metadata `authorization`, code 40100 or 40300
client_type: type of a gRPC client: `PRODUCER`, `PUSH_CONSUMER`, … <- message of gRPC
message_type: `NORMAL`, `FIFO`, `DELAY`, `TRANSACTION`, … of a message <- message of gRPC
message_group: message group, within which FIFO messages keep their order <- message of gRPC
fifo: `true` or `false`: whether a proxy delivers to a consumer group in order <- settings of gRPC
deliver_ms: time from which a message may be delivered, ms <- message of gRPC
stream_reset: `REASON SIDE`: why and by whom a call of gRPC was ended before its response <-
  RST_STREAM
asked_endpoint: `HOST:PORT` of a proxy as its client knows it <- request of a route, gRPC
endpoint: `HOST:PORT` of a proxy that a route names <- response of a route, gRPC
suspend_ms: ms that a broker may hold a pull that has no response; 0: it may not <- ext fields
  `suspendTimeoutMillis`, `sysFlag`
correlation: id that joins a request (a message that asks for a reply) and its reply <- ext field
  `properties` of a send, and of a reply that is passed on (326)
ttl_ms: ms that the sender of the request waits for the reply <- ext field `properties` of a send,
  and of a reply that is passed on (326)
server_version: release of the broker that answered a pull with the fact `timer` <- field
  `version` of the response
fault: fault that `rmqtool proxy` injected into the request or its response <- comment of the
  packet of the request, pcapng
"""
FACTS: Final = tuple(FactKind(name, *text.split(" <- ")) for name, text in entries(_TABLE))
"""All names, in document order."""


fact_in = value_in


def fault_in(note: str) -> str:
    """Return an injected fault without its request: ``busy`` of ``busy: SEND_MESSAGE_V2 to T``.

    Earlier captures have ``busy: request 310 of T``.
    """
    return note.rpartition(": ")[0] or note


def fact(name: str, value: object) -> str:
    """Format a fact for its column."""
    return f"{name}={str(value)[:MAX_VALUE]}"


def facts_in(facts: Iterable[str], name: str) -> list[str]:
    """Return the values of all facts of that name."""
    start = name + "="
    return [text[len(start) :] for text in facts if text.startswith(start)]


def present_facts(*named: tuple[str, str | None]) -> list[str]:
    """Return facts for the non-empty values."""
    return [fact(name, value) for name, value in named if value]
