"""Protocol words, which are not names and stay; those of texts are in `words.txt`."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from ..conversations.recognition import SIGNATURES
from ..remoting.bodies.classes import CLASSES
from ..remoting.bodies.classes import ENUMS as _JAVA_ENUMS
from ..remoting.headers import HEADERS, HOOK_FIELDS
from ..table_text import entries

_NAME_WORDS: Final = """
RETRY DLQ REPLY TOPIC REVIVE LOG TRACE SYS RMQ rmq sys TRANS HALF OP SCHEDULE XXXX SELF TEST TBW102
TOOLS CONSUMER CLIENT INNER PRODUCER DEFAULT CID OFFSET MOVED EVENT CHECK MAX TIME wheel timer PROXY
HOUSEKEEPING SYNC BROKER MEMBER TRANSACTION FILTERSRV ONSAPI PERMISSION OWNER GROUP PULL HTTP
MONITOR DATA DefaultHeartBeatSyncerTopic
"""
NAME_WORDS: Final = frozenset(_NAME_WORDS.split())
"""Runs of letters in names of topics and groups of RocketMQ itself."""

_CHOICES: Final = """
* TAG SQL SQL92 JSON ROCKETMQ PROTOBUF true false null NORMAL FIFO DELAY MIXED TRANSACTION
UNSPECIFIED
SimpleCQ BatchCQ RocksDBCQ DELETE COMPACTION SYNC_MASTER ASYNC_MASTER SLAVE GRPC REMOTING LOWER
UPPER CLUSTER BROADCAST Pub SubBefore SubAfter EndTransaction Recall DefaultRegion DEFAULT
"""
ENUMS: Final = frozenset(_CHOICES.split()) | {
    name for names in _JAVA_ENUMS.values() for name in names
}
"""Values of enumerated fields."""

MEMBERS: Final = frozenset(name for members in CLASSES.values() for name in members)
"""Names of members of JSON bodies."""
_SIMPLE_TYPES: Final = frozenset(("String", "boolean", "byte", "double", "int", "long"))
_JAVA_TYPES: Final = [
    (name, member if isinstance(member, str) else member.java_type)
    for members in CLASSES.values()
    for name, member in members.items()
]
SIMPLE_MEMBERS: Final = MEMBERS - {
    name for name, java_type in _JAVA_TYPES if java_type not in _SIMPLE_TYPES
}
"""Members that are a text or a number in every class, never an object or a list."""
FIELDS: Final = (
    {field.name for fields in HEADERS.values() for field in fields}
    | set(HOOK_FIELDS)
    | set("abcdefghijklmn")
    | {"ext", "extFields", "code", "flag", "language", "opaque", "remark", "version"}
    | {"serializeTypeCurrentRPC"}
)
"""Names of members of headers."""

_MESSAGE_IDS: Final = """
UNIQ_KEY ORIGIN_MESSAGE_ID DLQ_ORIGIN_MESSAGE_ID TIMER_DEL_UNIQKEY __transactionId__ msgId
offsetMsgId transactionId uniqKey originMsgId unique_key offset_msg_id transaction_id
"""
MESSAGE_IDS: Final = frozenset(_MESSAGE_IDS.split())
"""Properties, fields, and columns with a message id."""

_NAMED: Final = """
topic topicName originTopic parentTopic defaultTopic liteTopic liteTopicSet topicList destTopic
producerGroup consumerGroup group groupName groups groupList srcGroup destGroup compareGroup
consumedGroup notConsumedGroup pgroup brokerName bname bn cluster clusterName brokerClusterName
clientId clientID consumerIdList key keys lastKey tags tagsSet subString username subject resource
namespace ns accessKey regionId c t KEYS TAGS __SHARDINGKEY BUYER_ID INSTANCE_ID PGROUP CLUSTER
MSG_REGION REAL_TOPIC RETRY_TOPIC DLQ_ORIGIN_TOPIC ORIGIN_GROUP __LITE_TOPIC INNER_MULTI_DISPATCH
REPLY_TO_CLIENT CORRELATION_ID DUP_INFO TRANSFER_FLAG subscription exp statsKey AccessKey
objectStoreAccessKey whiteRemoteAddress globalWhiteAddrs sourceIps extraInfo POP_CK
"""
NAMED: Final = frozenset(_NAMED.split())
"""Fields, members, and properties with names: digits in them are a name, not a number."""

_GROUPS: Final = {
    "topics": """topic topicName originTopic parentTopic defaultTopic liteTopic lite_topic topicList
destTopic REAL_TOPIC RETRY_TOPIC DLQ_ORIGIN_TOPIC b""",
    "groups": """producerGroup consumerGroup group groupName groups groupList srcGroup destGroup
compareGroup consumedGroup notConsumedGroup pgroup PGROUP ORIGIN_GROUP a""",
    "brokers": """brokerName broker_name bname bn cluster clusterName brokerClusterName CLUSTER
broker n""",
    "clients": "clientId clientID client_id consumerIdList INSTANCE_ID client",
    "keys": "key keys lastKey KEYS __SHARDINGKEY message_group",
    "tags": "tags tag tagsSet TAGS",
}
GROUP_OF: Final = {field: group for group, fields in _GROUPS.items() for field in fields.split()}
"""Fields, members, properties, and columns with names of one kind → that kind."""

_JAVA: Final = """
java javax jdk sun com io net lang util nio base concurrent atomic locks reflect invoke internal
netty channel handler codec util buffer apache rocketmq String Integer Long Thread Object List Map
HashMap ArrayList Optional Arrays Objects Collections ThreadPoolExecutor Worker run Unknown Source
Native Method because null
"""
_JAVA_WORDS: Final = frozenset(_JAVA.split())
_FAQ_WORDS: Final = frozenset(("docs", "bestPractice", "06FAQ"))
"""words of the address at the end of many remarks (FAQUrl)"""

_LISTS: Final = dict(entries(files(__package__).joinpath("words.txt").read_text("utf-8")))
REMARK_WORDS: Final = (
    frozenset(_LISTS["words"].split()) | NAME_WORDS | MEMBERS | FIELDS | _JAVA_WORDS | _FAQ_WORDS
)
"""Words of remarks that stay."""
SETTINGS: Final = frozenset(_LISTS["settings"].split())
"""Names of settings of brokers, NameServers, and proxies."""
_FAULT_WORDS: Final = """
KiB disk-full freeze garbage huge leave-route lognormal p read-only silent slow-read
"""
OWN_WORDS: Final = (
    REMARK_WORDS
    | set(_LISTS["findings"].split())
    | {part for word in _FAULT_WORDS.split() for part in (word, *word.split("-"))}
    | {name[:1].upper() + name[1:] for name in MEMBERS}  # spelled as in Go
    | {protocol for protocol, _ in SIGNATURES}
)
"""Words of findings and of injected faults that stay."""
