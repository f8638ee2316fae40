"""Names of the numbers in a command: request, response and language codes, serialization types.

Rules: an unknown number is a value with a name, `UNKNOWN(9999)`, and nothing here raises. A new
code is one line in its enum; what is known of its headers and bodies is a row in `header_tables`.
The name functions run once a command, so each is a dict lookup. `version` is the MQVersion ordinal
of the one who wrote the command; it only matters for numbers that changed their meaning.
RocketMQ: RequestCode, ResponseCode, RemotingSysResponseCode, LanguageCode, SerializeType, and
DLedgerRequestCode of openmessaging/dledger.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from .operation_tables.operations import OPERATION_ROWS, Operation
from .operation_tables.responses import RESPONSE_ROWS, Response
from .versions import V5_0_0_SNAPSHOT, V5_1_0

_UNKNOWN_NAMES_KEPT = 1024  # a capture of noise must not fill the memory with names


class RequestCode(IntEnum):
    """What a request asks for; releases 4.0 to 5.5."""

    # messages, offsets, clients (broker)
    SEND_MESSAGE = 10
    PULL_MESSAGE = 11
    QUERY_MESSAGE = 12
    QUERY_BROKER_OFFSET = 13
    QUERY_CONSUMER_OFFSET = 14
    UPDATE_CONSUMER_OFFSET = 15
    UPDATE_AND_CREATE_TOPIC = 17
    UPDATE_AND_CREATE_TOPIC_LIST = 18
    GET_ALL_TOPIC_CONFIG = 21
    GET_TOPIC_CONFIG_LIST = 22
    GET_TOPIC_NAME_LIST = 23
    UPDATE_BROKER_CONFIG = 25
    GET_BROKER_CONFIG = 26
    TRIGGER_DELETE_FILES = 27
    GET_BROKER_RUNTIME_INFO = 28
    SEARCH_OFFSET_BY_TIMESTAMP = 29
    GET_MAX_OFFSET = 30
    GET_MIN_OFFSET = 31
    GET_EARLIEST_MSG_STORETIME = 32
    VIEW_MESSAGE_BY_ID = 33
    HEART_BEAT = 34
    UNREGISTER_CLIENT = 35
    CONSUMER_SEND_MSG_BACK = 36
    END_TRANSACTION = 37
    GET_CONSUMER_LIST_BY_GROUP = 38
    CHECK_TRANSACTION_STATE = 39
    NOTIFY_CONSUMER_IDS_CHANGED = 40
    LOCK_BATCH_MQ = 41
    UNLOCK_BATCH_MQ = 42
    GET_ALL_CONSUMER_OFFSET = 43
    GET_ALL_DELAY_OFFSET = 45
    CHECK_CLIENT_CONFIG = 46
    GET_CLIENT_CONFIG = 47
    GET_TIMER_CHECK_POINT = 60
    GET_TIMER_METRICS = 61
    # NameServer
    PUT_KV_CONFIG = 100
    GET_KV_CONFIG = 101
    DELETE_KV_CONFIG = 102
    REGISTER_BROKER = 103
    UNREGISTER_BROKER = 104
    GET_ROUTEINFO_BY_TOPIC = 105
    GET_BROKER_CLUSTER_INFO = 106
    # groups and administration (broker)
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP = 200
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 201
    GET_TOPIC_STATS_INFO = 202
    GET_CONSUMER_CONNECTION_LIST = 203
    GET_PRODUCER_CONNECTION_LIST = 204
    WIPE_WRITE_PERM_OF_BROKER = 205
    GET_ALL_TOPIC_LIST_FROM_NAMESERVER = 206
    DELETE_SUBSCRIPTIONGROUP = 207
    GET_CONSUME_STATS = 208
    SUSPEND_CONSUMER = 209
    RESUME_CONSUMER = 210
    RESET_CONSUMER_OFFSET_IN_CONSUMER = 211
    RESET_CONSUMER_OFFSET_IN_BROKER = 212
    ADJUST_CONSUMER_THREAD_POOL = 213
    WHO_CONSUME_THE_MESSAGE = 214
    DELETE_TOPIC_IN_BROKER = 215
    DELETE_TOPIC_IN_NAMESRV = 216
    REGISTER_TOPIC_IN_NAMESRV = 217
    GET_KVLIST_BY_NAMESPACE = 219
    RESET_CONSUMER_CLIENT_OFFSET = 220
    GET_CONSUMER_STATUS_FROM_CLIENT = 221
    INVOKE_BROKER_TO_RESET_OFFSET = 222
    INVOKE_BROKER_TO_GET_CONSUMER_STATUS = 223
    GET_TOPICS_BY_CLUSTER = 224
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST = 225
    # administration and later send forms (broker)
    QUERY_TOPIC_CONSUME_BY_WHO = 300
    REGISTER_FILTER_SERVER = 301
    REGISTER_MESSAGE_FILTER_CLASS = 302
    QUERY_CONSUME_TIME_SPAN = 303
    GET_SYSTEM_TOPIC_LIST_FROM_NS = 304
    GET_SYSTEM_TOPIC_LIST_FROM_BROKER = 305
    CLEAN_EXPIRED_CONSUMEQUEUE = 306
    GET_CONSUMER_RUNNING_INFO = 307
    QUERY_CORRECTION_OFFSET = 308
    CONSUME_MESSAGE_DIRECTLY = 309
    SEND_MESSAGE_V2 = 310
    GET_UNIT_TOPIC_LIST = 311
    GET_HAS_UNIT_SUB_TOPIC_LIST = 312
    GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST = 313
    CLONE_GROUP_OFFSET = 314
    VIEW_BROKER_STATS_DATA = 315
    CLEAN_UNUSED_TOPIC = 316
    GET_BROKER_CONSUME_STATS = 317
    UPDATE_NAMESRV_CONFIG = 318
    GET_NAMESRV_CONFIG = 319
    SEND_BATCH_MESSAGE = 320
    QUERY_CONSUME_QUEUE = 321
    QUERY_DATA_VERSION = 322
    RESUME_CHECK_HALF_MESSAGE = 323
    SEND_REPLY_MESSAGE = 324
    SEND_REPLY_MESSAGE_V2 = 325
    PUSH_REPLY_MESSAGE_TO_CLIENT = 326
    ADD_WRITE_PERM_OF_BROKER = 327
    GET_ALL_PRODUCER_INFO = 328
    DELETE_EXPIRED_COMMITLOG = 329
    QUERY_TOPICS_BY_CONSUMER = 343
    QUERY_SUBSCRIPTION_BY_CONSUMER = 345
    GET_TOPIC_CONFIG = 351
    GET_SUBSCRIPTIONGROUP_CONFIG = 352
    UPDATE_AND_GET_GROUP_FORBIDDEN = 353
    CHECK_ROCKSDB_CQ_WRITE_PROGRESS = 354
    EXPORT_ROCKSDB_CONFIG_TO_JSON = 355
    LITE_PULL_MESSAGE = 361
    RECALL_MESSAGE = 370
    # assignment by the broker
    QUERY_ASSIGNMENT = 400
    SET_MESSAGE_REQUEST_MODE = 401
    GET_ALL_MESSAGE_REQUEST_MODE = 402
    # static topics
    UPDATE_AND_CREATE_STATIC_TOPIC = 513
    # broker groups and containers
    GET_BROKER_MEMBER_GROUP = 901
    ADD_BROKER = 902
    REMOVE_BROKER = 903
    BROKER_HEARTBEAT = 904
    NOTIFY_MIN_BROKER_ID_CHANGE = 905
    EXCHANGE_BROKER_HA_INFO = 906
    GET_BROKER_HA_STATUS = 907
    RESET_MASTER_FLUSH_OFFSET = 908
    # controller; 1014..1018 are log entries inside it
    CONTROLLER_ALTER_SYNC_STATE_SET = 1001
    CONTROLLER_ELECT_MASTER = 1002
    CONTROLLER_REGISTER_BROKER = 1003
    CONTROLLER_GET_REPLICA_INFO = 1004
    CONTROLLER_GET_METADATA_INFO = 1005
    CONTROLLER_GET_SYNC_STATE_DATA = 1006
    GET_BROKER_EPOCH_CACHE = 1007
    NOTIFY_BROKER_ROLE_CHANGED = 1008
    UPDATE_CONTROLLER_CONFIG = 1009
    GET_CONTROLLER_CONFIG = 1010
    CLEAN_BROKER_DATA = 1011
    CONTROLLER_GET_NEXT_BROKER_ID = 1012
    CONTROLLER_APPLY_BROKER_ID = 1013
    BROKER_CLOSE_CHANNEL_REQUEST = 1014
    CHECK_NOT_ACTIVE_BROKER_REQUEST = 1015
    GET_BROKER_LIVE_INFO_REQUEST = 1016
    GET_SYNC_STATE_DATA_REQUEST = 1017
    RAFT_BROKER_HEART_BEAT_EVENT_REQUEST = 1018
    # cold data
    UPDATE_COLD_DATA_FLOW_CTR_CONFIG = 2001
    REMOVE_COLD_DATA_FLOW_CTR_CONFIG = 2002
    GET_COLD_DATA_FLOW_CTR_INFO = 2003
    SET_COMMITLOG_READ_MODE = 2004
    # users and access (ACL 2.0)
    AUTH_CREATE_USER = 3001
    AUTH_UPDATE_USER = 3002
    AUTH_DELETE_USER = 3003
    AUTH_GET_USER = 3004
    AUTH_LIST_USER = 3005
    AUTH_CREATE_ACL = 3006
    AUTH_UPDATE_ACL = 3007
    AUTH_DELETE_ACL = 3008
    AUTH_GET_ACL = 3009
    AUTH_LIST_ACL = 3010
    # since 5.4; 5002 and 5003 are in no release up to 5.5.0
    SWITCH_TIMER_ENGINE = 5001
    DELETE_TOPIC_IN_BROKER_LIST = 5002
    DELETE_SUBSCRIPTION_GROUP_LIST = 5003
    # DLedger: the log replication of openmessaging/dledger, same framing
    DLEDGER_METADATA = 50000
    DLEDGER_APPEND = 50001
    DLEDGER_GET = 50002
    DLEDGER_VOTE = 51001
    DLEDGER_HEART_BEAT = 51002
    DLEDGER_PULL = 51003
    DLEDGER_PUSH = 51004
    DLEDGER_LEADERSHIP_TRANSFER = 51005
    DLEDGER_INSTALL_SNAPSHOT = 51006
    DLEDGER_USER_DEFINE_REQUEST = 59999
    # POP; wider than the 16 bits of a ROCKETMQ header
    POP_MESSAGE = 200050
    ACK_MESSAGE = 200051
    PEEK_MESSAGE = 200052
    CHANGE_MESSAGE_INVISIBLETIME = 200053
    NOTIFICATION = 200054
    POLLING_INFO = 200055
    POP_ROLLBACK = 200056
    POP_LITE_MESSAGE = 200070
    LITE_SUBSCRIPTION_CTL = 200071
    ACK_LITE_MESSAGE = 200072
    NOTIFY_UNSUBSCRIBE_LITE = 200073
    GET_BROKER_LITE_INFO = 200074
    GET_PARENT_TOPIC_INFO = 200075
    GET_LITE_TOPIC_INFO = 200076
    GET_LITE_CLIENT_INFO = 200077
    GET_LITE_GROUP_INFO = 200078
    TRIGGER_LITE_DISPATCH = 200079
    BATCH_ACK_MESSAGE = 200151


class ResponseCode(IntEnum):
    """How a request was answered; negative ones are made up by a client and never sent."""

    RPC_TIME_OUT = -1006
    RPC_SEND_TO_CHANNEL_FAILED = -1004
    RPC_ADDR_IS_NULL = -1002
    RPC_UNKNOWN = -1000
    SUCCESS = 0
    SYSTEM_ERROR = 1
    SYSTEM_BUSY = 2
    REQUEST_CODE_NOT_SUPPORTED = 3
    TRANSACTION_FAILED = 4
    FLUSH_DISK_TIMEOUT = 10
    SLAVE_NOT_AVAILABLE = 11
    FLUSH_SLAVE_TIMEOUT = 12
    MESSAGE_ILLEGAL = 13
    SERVICE_NOT_AVAILABLE = 14
    VERSION_NOT_SUPPORTED = 15
    NO_PERMISSION = 16
    TOPIC_NOT_EXIST = 17
    TOPIC_EXIST_ALREADY = 18
    PULL_NOT_FOUND = 19
    PULL_RETRY_IMMEDIATELY = 20
    PULL_OFFSET_MOVED = 21
    QUERY_NOT_FOUND = 22
    SUBSCRIPTION_PARSE_FAILED = 23
    SUBSCRIPTION_NOT_EXIST = 24
    SUBSCRIPTION_NOT_LATEST = 25
    SUBSCRIPTION_GROUP_NOT_EXIST = 26
    FILTER_DATA_NOT_EXIST = 27
    FILTER_DATA_NOT_LATEST = 28
    INVALID_PARAMETER = 29
    TRANSACTION_SHOULD_COMMIT = 200
    TRANSACTION_SHOULD_ROLLBACK = 201
    TRANSACTION_STATE_UNKNOW = 202
    TRANSACTION_STATE_GROUP_WRONG = 203
    NO_BUYER_ID = 204
    NOT_IN_CURRENT_UNIT = 205
    CONSUMER_NOT_ONLINE = 206
    CONSUME_MSG_TIMEOUT = 207
    NO_MESSAGE = 208
    POLLING_FULL = 209
    POLLING_TIMEOUT = 210
    BROKER_NOT_EXIST = 211
    BROKER_DISPATCH_NOT_COMPLETE = 212
    BROADCAST_CONSUMPTION = 213
    FLOW_CONTROL = 215
    NOT_LEADER_FOR_QUEUE = 501
    ILLEGAL_OPERATION = 604
    GO_AWAY = 1500
    CONTROLLER_FENCED_MASTER_EPOCH = 2000
    CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH = 2001
    CONTROLLER_INVALID_MASTER = 2002
    CONTROLLER_INVALID_REPLICAS = 2003
    CONTROLLER_MASTER_NOT_AVAILABLE = 2004
    CONTROLLER_INVALID_REQUEST = 2005
    CONTROLLER_BROKER_NOT_ALIVE = 2006
    CONTROLLER_NOT_LEADER = 2007
    CONTROLLER_BROKER_METADATA_NOT_EXIST = 2008
    CONTROLLER_INVALID_CLEAN_BROKER_METADATA = 2009
    CONTROLLER_BROKER_NEED_TO_BE_REGISTERED = 2010
    CONTROLLER_MASTER_STILL_EXIST = 2011
    CONTROLLER_ELECT_MASTER_FAILED = 2012
    CONTROLLER_ALTER_SYNC_STATE_SET_FAILED = 2013
    CONTROLLER_BROKER_ID_INVALID = 2014
    CONTROLLER_JRAFT_INTERNAL_ERROR = 2015
    CONTROLLER_BROKER_LIVE_INFO_NOT_EXISTS = 2016
    LMQ_QUOTA_EXCEEDED = 2017
    LITE_SUBSCRIPTION_QUOTA_EXCEEDED = 2018
    USER_NOT_EXIST = 3001
    POLICY_NOT_EXIST = 3002


class LanguageCode(IntEnum):
    """Language of the sender: one byte in a ROCKETMQ header, the name in a JSON header."""

    JAVA = 0
    CPP = 1
    DOTNET = 2
    PYTHON = 3
    DELPHI = 4
    ERLANG = 5
    RUBY = 6
    OTHER = 7
    HTTP = 8
    GO = 9
    PHP = 10
    OMS = 11
    RUST = 12
    NODE_JS = 13


class SerializeType(IntEnum):
    """How the header is written: the byte after the frame length."""

    JSON = 0
    ROCKETMQ = 1


class FormerCode(NamedTuple):
    """A code that today's enums do not have, or have with another meaning."""

    code: int
    """Number on the wire."""
    name: str
    """Constant name of that time."""
    first: str = ""
    """First release that has it; empty: no release, only a branch."""
    last: str = ""
    """Last release that has it."""
    branches: str = ""
    """Unreleased branches of the repository that have it."""


FORMER_REQUESTS: tuple[FormerCode, ...] = (
    FormerCode(50, "UPDATE_AND_CREATE_ACL_CONFIG", "4.5.2", "5.3.2"),
    FormerCode(51, "DELETE_ACL_CONFIG", "4.5.2", "5.3.2"),
    FormerCode(52, "GET_BROKER_CLUSTER_ACL_INFO", "4.5.2", "5.3.2"),
    FormerCode(53, "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG", "4.5.2", "5.3.2"),
    FormerCode(54, "GET_BROKER_CLUSTER_ACL_CONFIG", "4.6.0", "5.3.2"),
    FormerCode(350, "REGISTER_SNODE", branches="mqtt snode"),
    FormerCode(351, "SNODE_PULL_MESSAGE", branches="mqtt snode"),
    FormerCode(352, "SNODE_PUSH_MESSAGE", branches="mqtt snode"),
    FormerCode(353, "GET_SNODE_CLUSTER_INFO", branches="mqtt snode"),
    FormerCode(354, "GET_SNODE_INFO", branches="mqtt snode"),
    FormerCode(355, "CREATE_RETRY_TOPIC", branches="mqtt snode"),
    FormerCode(411, "UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING", "5.0.0-PREVIEW", "5.0.0-PREVIEW"),
    FormerCode(413, "QUERY_TOPIC_LOGICAL_QUEUE_MAPPING", "5.0.0-PREVIEW", "5.0.0-PREVIEW"),
    FormerCode(414, "SEAL_TOPIC_LOGICAL_QUEUE", "5.0.0-PREVIEW", "5.0.0-PREVIEW"),
    FormerCode(415, "REUSE_TOPIC_LOGICAL_QUEUE", "5.0.0-PREVIEW", "5.0.0-PREVIEW"),
    FormerCode(416, "CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE", "5.0.0-PREVIEW", "5.0.0-PREVIEW"),
    FormerCode(417, "MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE", "5.0.0-PREVIEW", "5.0.0-PREVIEW"),
    FormerCode(418, "MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT", "5.0.0-PREVIEW", "5.0.0-PREVIEW"),
    FormerCode(419, "MIGRATE_TOPIC_LOGICAL_QUEUE_NOTIFY", "5.0.0-PREVIEW", "5.0.0-PREVIEW"),
    FormerCode(422, "DELETE_TOPIC_LOGICAL_QUEUE_MAPPING", "5.0.0-PREVIEW", "5.0.0-PREVIEW"),
    FormerCode(1000, "MQTT_MESSAGE", branches="mqtt snode"),
    FormerCode(1001, "MQTT_IS_CLIENT2SUBSCRIPTION_PERSISTED", branches="mqtt"),
    FormerCode(1002, "MQTT_ADD_OR_UPDATE_CLIENT2SUBSCRIPTION", branches="mqtt"),
    FormerCode(1003, "MQTT_DELETE_CLIENT2SUBSCRIPTION", branches="mqtt"),
    FormerCode(1004, "MQTT_GET_SNODEADDRESS2CLIENT", branches="mqtt"),
    FormerCode(1005, "MQTT_CLIENT_UNSUBSRIBE", branches="mqtt"),
    FormerCode(1006, "MQTT_ADD_OR_UPDATE_ROOTTOPIC2CLIENTS", branches="mqtt"),
    FormerCode(1007, "MQTT_GET_ROOTTOPIC2CLIENTS", branches="mqtt"),
    FormerCode(1008, "MQTT_DELETE_ROOTTOPIC2CLIENT", branches="mqtt"),
    FormerCode(1009, "MQTT_GET_SUBSCRIPTION_BY_CLIENT_ID", branches="mqtt"),
    FormerCode(1010, "MQTT_GET_CLIENT_BY_CLIENTID_ID", branches="mqtt"),
)
"""Request codes that went away."""

RENAMED_REQUESTS: dict[str, RequestCode] = {
    "GET_ROUTEINTO_BY_TOPIC": RequestCode.GET_ROUTEINFO_BY_TOPIC,  # spelled so up to 4.7.0
    "DLEDGER_READ_FILE": RequestCode.DLEDGER_INSTALL_SNAPSHOT,  # never in a DLedger release
}
"""Other spellings of the same operation: found by name but never shown, so one filter finds all."""

FORMER_RESPONSES: tuple[FormerCode, ...] = (
    FormerCode(-2, "ASYNC_AND_RETURN_NULL", "5.0.0-ALPHA", "5.0.0-PREVIEW"),
    FormerCode(209, "UPDATE_AND_CREATE_ACL_CONFIG_FAILED", "4.5.2", "5.3.2"),
    FormerCode(210, "DELETE_ACL_CONFIG_FAILED", "4.5.2", "5.3.2"),
    FormerCode(210, "QUERY_OFFSET_ERROR", branches="mqtt snode"),
    FormerCode(211, "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED", "4.5.2", "5.3.2"),
    FormerCode(211, "PARAMETER_ERROR", branches="mqtt snode"),
    FormerCode(2010, "CONTROLLER_ALTER_SYNC_STATE_SET_FAILED", "5.0.0", "5.1.0"),
    FormerCode(2011, "CONTROLLER_ELECT_MASTER_FAILED", "5.0.0", "5.1.0"),
    FormerCode(2012, "CONTROLLER_REGISTER_BROKER_FAILED", "5.0.0", "5.1.0"),
)
"""Response codes that went away or mean something else today."""

_DLEDGER_REQUESTS = frozenset(code for code in RequestCode if 50000 <= code <= 59999)
_DLEDGER_SUCCESS = 200  # what every DLedger answer carries; its real outcome is in the body
_ACL_REQUESTS = frozenset(range(50, 55))
_ACL_FAILURES = {209, 210, 211}  # also POLLING_FULL, POLLING_TIMEOUT, BROKER_NOT_EXIST since 5.0.0
_LAST_OLD_CONTROLLER = V5_1_0  # the last release with the old numbers 2010..2012

REQUEST_NAMES: dict[int, str] = {former.code: former.name for former in FORMER_REQUESTS}
REQUEST_NAMES.update((int(code), code.name) for code in RequestCode)
"""Name of every number that a release gave to a request; `request_name` names the others too."""
_RESPONSE_NAMES: dict[int, str] = {former.code: former.name for former in FORMER_RESPONSES}
_RESPONSE_NAMES.update((int(code), code.name) for code in ResponseCode)
_RELEASED_RESPONSES = {former.code: former.name for former in FORMER_RESPONSES if former.first}
_AMBIGUOUS_RESPONSES = frozenset({_DLEDGER_SUCCESS} | (_RELEASED_RESPONSES.keys() - {-2}))
_LANGUAGE_NAMES = {int(code): code.name for code in LanguageCode}
_LANGUAGE_CODES = {code.name: int(code) for code in LanguageCode}


@lru_cache(maxsize=_UNKNOWN_NAMES_KEPT)
def _unknown(code: int) -> str:
    return f"UNKNOWN({code})"


def request_name(code: int, version: int | None = None) -> str:  # noqa: ARG001
    """Constant name of a request code, a former one where the number is free today.

    No release gave the number of a removed request to another one so far, so `version` (MQVersion
    ordinal of the requester) changes nothing yet; callers pass it because responses need it.
    """
    name = REQUEST_NAMES.get(code)
    return name if name is not None else _unknown(code)


def response_name(code: int, request_code: int | None = None, version: int | None = None) -> str:
    """Constant name of a response code to `request_code`, `version` being the responder's ordinal.

    209..211 are access control failures as an answer to 50..54, 2010..2012 have older meanings from
    5.0.0 to 5.1.0, and DLedger answers 200 for success.
    """
    if code in _AMBIGUOUS_RESPONSES and _is_other_meaning(code, request_code, version):
        return _RELEASED_RESPONSES.get(code, "SUCCESS")
    name = _RESPONSE_NAMES.get(code)
    return name if name is not None else _unknown(code)


def _is_other_meaning(code: int, request_code: int | None, version: int | None) -> bool:
    if code == _DLEDGER_SUCCESS:
        return request_code in _DLEDGER_REQUESTS
    if code in _ACL_FAILURES:
        if request_code is not None:
            return request_code in _ACL_REQUESTS
        return version is not None and 0 < version < V5_0_0_SNAPSHOT  # 0: the sender set no version
    return version is not None and V5_0_0_SNAPSHOT <= version <= _LAST_OLD_CONTROLLER


def language_name(code: int) -> str:
    """Enum name of a language byte."""
    name = _LANGUAGE_NAMES.get(code)
    return name if name is not None else _unknown(code)


def language_code(name: str) -> int | None:
    """Language byte of an enum name, spelled exactly as in Java; None if there is no such name."""
    return _LANGUAGE_CODES.get(name)


# The ROCKETMQ header has 16 bits for the code and Java reads them signed, so a wide code arrives as
# its low 16 bits. The small numbers that wide ones collapse to are not codes themselves.
_WIDE_CODES: dict[int, int] = {
    wire: int(code)
    for code in RequestCode
    if code > 0x7FFF
    for wire in ({code & 0xFFFF, (code & 0xFFFF) - 0x10000} if code & 0x8000 else {code & 0xFFFF})
}


def wide_request_code(wire: int) -> int:
    """Real code of a ROCKETMQ header's 16-bit value (signed or unsigned): 3442 is 200050."""
    return _WIDE_CODES.get(wire, wire)


_REQUEST_CODES: dict[str, int] = {former.name: former.code for former in FORMER_REQUESTS}
_REQUEST_CODES.update((name, int(code)) for name, code in RENAMED_REQUESTS.items())
_REQUEST_CODES.update((code.name, int(code)) for code in RequestCode)


def request_code(name: str) -> int | None:
    """Return the number of a request's constant name, former names included; None if unknown."""
    return _REQUEST_CODES.get(name)


OPERATIONS: dict[int, Operation] = {
    _REQUEST_CODES[name]: operation for name, operation in OPERATION_ROWS.items()
}
"""Request code → its headers, bodies, direction and mode."""


def operation_of(code: int, version: int | None = None) -> Operation | None:  # noqa: ARG001
    """Return what is known of a request code; None for an unknown one. `version` as in
    `request_name`.
    """
    return OPERATIONS.get(code)


RESPONSES: dict[int, Response] = {
    int(code): RESPONSE_ROWS[code.name] for code in ResponseCode if code.name in RESPONSE_ROWS
}
"""Response code → what it says and since when."""
