"""The definition of `apache.rocketmq.v2`: its enums, message types and methods.

`Type: number name kind; …`: a kind is a scalar type of proto3, an enum, or a message type, and `[]`
marks what may come more than once. Entries and fields are in the order of the definition.
Protocol Buffers: language guide (proto3), encoding.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from ..foreign import natural_of
from ..table_text import entries, parts_of

PACKAGE: Final = "apache.rocketmq.v2"


class FieldKind(StrEnum):
    """Type of a field; the other scalar types of proto3 are in none of the messages."""

    INT32 = "int32"
    INT64 = "int64"
    BOOL = "bool"
    FLOAT = "float"
    STRING = "string"
    BYTES = "bytes"
    ENUM = "enum"
    MESSAGE = "message"


class Field(NamedTuple):
    """One field of a message type."""

    number: int
    """number on the wire"""
    name: str
    """name in the definition"""
    kind: FieldKind
    """type"""
    of: str
    """type name of an enum or a message, without the package; else empty"""
    many: bool
    """repeated"""


class Method(NamedTuple):
    """One method of a service."""

    service: str
    """name of the service within the package"""
    name: str
    """name of the method, which is the name of the operation in rows"""
    asks: str
    """message type of a request"""
    asks_many: bool
    """client-streaming"""
    gives: str
    """message type of a response"""
    gives_many: bool
    """server-streaming"""

    @property
    def path(self) -> str:
        """`:path` of its requests"""
        return f"/{PACKAGE}.{self.service}/{self.name}"


_ENUMS: Final = """
TransactionResolution: 0 TRANSACTION_RESOLUTION_UNSPECIFIED; 1 COMMIT; 2 ROLLBACK
TransactionSource: 0 SOURCE_UNSPECIFIED; 1 SOURCE_CLIENT; 2 SOURCE_SERVER_CHECK
Permission: 0 PERMISSION_UNSPECIFIED; 1 NONE; 2 READ; 3 WRITE; 4 READ_WRITE
FilterType: 0 FILTER_TYPE_UNSPECIFIED; 1 TAG; 2 SQL
AddressScheme: 0 ADDRESS_SCHEME_UNSPECIFIED; 1 IPv4; 2 IPv6; 3 DOMAIN_NAME
MessageType: 0 MESSAGE_TYPE_UNSPECIFIED; 1 NORMAL; 2 FIFO; 3 DELAY; 4 TRANSACTION; 5 LITE;
  6 PRIORITY
DigestType: 0 DIGEST_TYPE_UNSPECIFIED; 1 CRC32; 2 MD5; 3 SHA1
ClientType: 0 CLIENT_TYPE_UNSPECIFIED; 1 PRODUCER; 2 PUSH_CONSUMER; 3 SIMPLE_CONSUMER;
  4 PULL_CONSUMER; 5 LITE_PUSH_CONSUMER; 6 LITE_SIMPLE_CONSUMER
Encoding: 0 ENCODING_UNSPECIFIED; 1 IDENTITY; 2 GZIP
Code: 0 CODE_UNSPECIFIED; 20000 OK; 30000 MULTIPLE_RESULTS; 40000 BAD_REQUEST;
  40001 ILLEGAL_ACCESS_POINT; 40002 ILLEGAL_TOPIC; 40003 ILLEGAL_CONSUMER_GROUP;
  40004 ILLEGAL_MESSAGE_TAG; 40005 ILLEGAL_MESSAGE_KEY; 40006 ILLEGAL_MESSAGE_GROUP;
  40007 ILLEGAL_MESSAGE_PROPERTY_KEY; 40008 INVALID_TRANSACTION_ID; 40009 ILLEGAL_MESSAGE_ID;
  40010 ILLEGAL_FILTER_EXPRESSION; 40011 ILLEGAL_INVISIBLE_TIME; 40012 ILLEGAL_DELIVERY_TIME;
  40013 INVALID_RECEIPT_HANDLE; 40014 MESSAGE_PROPERTY_CONFLICT_WITH_TYPE;
  40015 UNRECOGNIZED_CLIENT_TYPE; 40016 MESSAGE_CORRUPTED; 40017 CLIENT_ID_REQUIRED;
  40018 ILLEGAL_POLLING_TIME; 40019 ILLEGAL_OFFSET; 40020 ILLEGAL_LITE_TOPIC; 40100 UNAUTHORIZED;
  40200 PAYMENT_REQUIRED; 40300 FORBIDDEN; 40400 NOT_FOUND; 40401 MESSAGE_NOT_FOUND;
  40402 TOPIC_NOT_FOUND; 40403 CONSUMER_GROUP_NOT_FOUND; 40404 OFFSET_NOT_FOUND;
  40800 REQUEST_TIMEOUT; 41300 PAYLOAD_TOO_LARGE; 41301 MESSAGE_BODY_TOO_LARGE;
  41302 MESSAGE_BODY_EMPTY; 42800 PRECONDITION_FAILED; 42900 TOO_MANY_REQUESTS;
  42901 LITE_TOPIC_QUOTA_EXCEEDED; 42902 LITE_SUBSCRIPTION_QUOTA_EXCEEDED;
  43100 REQUEST_HEADER_FIELDS_TOO_LARGE; 43101 MESSAGE_PROPERTIES_TOO_LARGE; 50000 INTERNAL_ERROR;
  50001 INTERNAL_SERVER_ERROR; 50002 HA_NOT_AVAILABLE; 50100 NOT_IMPLEMENTED; 50400 PROXY_TIMEOUT;
  50401 MASTER_PERSISTENCE_TIMEOUT; 50402 SLAVE_PERSISTENCE_TIMEOUT; 50500 UNSUPPORTED;
  50501 VERSION_UNSUPPORTED; 50502 VERIFY_FIFO_MESSAGE_UNSUPPORTED;
  60000 FAILED_TO_CONSUME_MESSAGE
Language: 0 LANGUAGE_UNSPECIFIED; 1 JAVA; 2 CPP; 3 DOT_NET; 4 GOLANG; 5 RUST; 6 PYTHON; 7 PHP;
  8 NODE_JS; 9 RUBY; 10 OBJECTIVE_C; 11 DART; 12 KOTLIN
LiteSubscriptionAction: 0 PARTIAL_ADD; 1 PARTIAL_REMOVE; 2 COMPLETE_ADD; 3 COMPLETE_REMOVE
QueryOffsetPolicy: 0 BEGINNING; 1 END; 2 TIMESTAMP
OffsetOption.Policy: 0 LAST; 1 MIN; 2 MAX
ChangeLogLevelRequest.Level: 0 TRACE; 1 DEBUG; 2 INFO; 3 WARN; 4 ERROR
"""
_MESSAGES: Final = """
# Fields of what requests and responses are made of: topics, queues, messages, settings
FilterExpression: 1 type FilterType; 2 expression string
RetryPolicy: 1 max_attempts int32; 2 exponential_backoff ExponentialBackoff;
  3 customized_backoff CustomizedBackoff
ExponentialBackoff: 1 initial google.protobuf.Duration; 2 max google.protobuf.Duration;
  3 multiplier float
CustomizedBackoff: 1 next google.protobuf.Duration[]
Resource: 1 resource_namespace string; 2 name string
SubscriptionEntry: 1 topic Resource; 2 expression FilterExpression
Address: 1 host string; 2 port int32
Endpoints: 1 scheme AddressScheme; 2 addresses Address[]
Broker: 1 name string; 2 id int32; 3 endpoints Endpoints
MessageQueue: 1 topic Resource; 2 id int32; 3 permission Permission; 4 broker Broker;
  5 accept_message_types MessageType[]
Digest: 1 type DigestType; 2 checksum string
SystemProperties: 1 tag string; 2 keys string[]; 3 message_id string; 4 body_digest Digest;
  5 body_encoding Encoding; 6 message_type MessageType;
  7 born_timestamp google.protobuf.Timestamp; 8 born_host string;
  9 store_timestamp google.protobuf.Timestamp; 10 store_host string;
  11 delivery_timestamp google.protobuf.Timestamp; 12 receipt_handle string; 13 queue_id int32;
  14 queue_offset int64; 15 invisible_duration google.protobuf.Duration;
  16 delivery_attempt int32; 17 message_group string; 18 trace_context string;
  19 orphaned_transaction_recovery_duration google.protobuf.Duration;
  20 dead_letter_queue DeadLetterQueue; 21 lite_topic string; 22 priority int32
DeadLetterQueue: 1 topic string; 2 message_id string
Message: 1 topic Resource; 2 user_properties Message.UserPropertiesEntry[];
  3 system_properties SystemProperties; 4 body bytes
Message.UserPropertiesEntry: 1 key string; 2 value string
Assignment: 1 message_queue MessageQueue
Status: 1 code Code; 2 message string
UA: 1 language Language; 2 version string; 3 platform string; 4 hostname string
Settings: 1 client_type ClientType; 2 access_point Endpoints; 3 backoff_policy RetryPolicy;
  4 request_timeout google.protobuf.Duration; 5 publishing Publishing;
  6 subscription Subscription; 7 user_agent UA; 8 metric Metric
Publishing: 1 topics Resource[]; 2 max_body_size int32; 3 validate_message_type bool
Subscription: 1 group Resource; 2 subscriptions SubscriptionEntry[]; 3 fifo bool;
  4 receive_batch_size int32; 5 long_polling_timeout google.protobuf.Duration;
  6 lite_subscription_quota int32; 7 max_lite_topic_size int32
Metric: 1 on bool; 2 endpoints Endpoints
OffsetOption: 1 policy OffsetOption.Policy; 2 offset int64; 3 tail_n int64; 4 timestamp int64
google.protobuf.Timestamp: 1 seconds int64; 2 nanos int32
google.protobuf.Duration: 1 seconds int64; 2 nanos int32
# Fields of the requests and responses of the services, and of what telemetry streams carry
QueryRouteRequest: 1 topic Resource; 2 endpoints Endpoints
QueryRouteResponse: 1 status Status; 2 message_queues MessageQueue[]
SendMessageRequest: 1 messages Message[]
SendResultEntry: 1 status Status; 2 message_id string; 3 transaction_id string; 4 offset int64;
  5 recall_handle string
SendMessageResponse: 1 status Status; 2 entries SendResultEntry[]
QueryAssignmentRequest: 1 topic Resource; 2 group Resource; 3 endpoints Endpoints
QueryAssignmentResponse: 1 status Status; 2 assignments Assignment[]
ReceiveMessageRequest: 1 group Resource; 2 message_queue MessageQueue;
  3 filter_expression FilterExpression; 4 batch_size int32;
  5 invisible_duration google.protobuf.Duration; 6 auto_renew bool;
  7 long_polling_timeout google.protobuf.Duration; 8 attempt_id string
ReceiveMessageResponse: 1 status Status; 2 message Message;
  3 delivery_timestamp google.protobuf.Timestamp
AckMessageEntry: 1 message_id string; 2 receipt_handle string; 3 lite_topic string
AckMessageRequest: 1 group Resource; 2 topic Resource; 3 entries AckMessageEntry[]
AckMessageResultEntry: 1 message_id string; 2 receipt_handle string; 3 status Status
AckMessageResponse: 1 status Status; 2 entries AckMessageResultEntry[]
ForwardMessageToDeadLetterQueueRequest: 1 group Resource; 2 topic Resource;
  3 receipt_handle string; 4 message_id string; 5 delivery_attempt int32;
  6 max_delivery_attempts int32; 7 lite_topic string
ForwardMessageToDeadLetterQueueResponse: 1 status Status
HeartbeatRequest: 1 group Resource; 2 client_type ClientType
HeartbeatResponse: 1 status Status
EndTransactionRequest: 1 topic Resource; 2 message_id string; 3 transaction_id string;
  4 resolution TransactionResolution; 5 source TransactionSource; 6 trace_context string
EndTransactionResponse: 1 status Status
PrintThreadStackTraceCommand: 1 nonce string
ReconnectEndpointsCommand: 1 nonce string
ThreadStackTrace: 1 nonce string; 2 thread_stack_trace string
VerifyMessageCommand: 1 nonce string; 2 message Message
VerifyMessageResult: 1 nonce string
RecoverOrphanedTransactionCommand: 1 message Message; 2 transaction_id string
NotifyUnsubscribeLiteCommand: 1 lite_topic string
TelemetryCommand: 1 status Status; 2 settings Settings; 3 thread_stack_trace ThreadStackTrace;
  4 verify_message_result VerifyMessageResult;
  5 recover_orphaned_transaction_command RecoverOrphanedTransactionCommand;
  6 print_thread_stack_trace_command PrintThreadStackTraceCommand;
  7 verify_message_command VerifyMessageCommand;
  8 reconnect_endpoints_command ReconnectEndpointsCommand;
  9 notify_unsubscribe_lite_command NotifyUnsubscribeLiteCommand
NotifyClientTerminationRequest: 1 group Resource
NotifyClientTerminationResponse: 1 status Status
ChangeInvisibleDurationRequest: 1 group Resource; 2 topic Resource; 3 receipt_handle string;
  4 invisible_duration google.protobuf.Duration; 5 message_id string; 6 lite_topic string;
  7 suspend bool
ChangeInvisibleDurationResponse: 1 status Status; 2 receipt_handle string
PullMessageRequest: 1 group Resource; 2 message_queue MessageQueue; 3 offset int64;
  4 batch_size int32; 5 filter_expression FilterExpression;
  6 long_polling_timeout google.protobuf.Duration
PullMessageResponse: 1 status Status; 2 message Message; 3 next_offset int64
UpdateOffsetRequest: 1 group Resource; 2 message_queue MessageQueue; 3 offset int64
UpdateOffsetResponse: 1 status Status
GetOffsetRequest: 1 group Resource; 2 message_queue MessageQueue
GetOffsetResponse: 1 status Status; 2 offset int64
QueryOffsetRequest: 1 message_queue MessageQueue; 2 query_offset_policy QueryOffsetPolicy;
  3 timestamp google.protobuf.Timestamp
QueryOffsetResponse: 1 status Status; 2 offset int64
RecallMessageRequest: 1 topic Resource; 2 recall_handle string
RecallMessageResponse: 1 status Status; 2 message_id string
SyncLiteSubscriptionRequest: 1 action LiteSubscriptionAction; 2 topic Resource; 3 group Resource;
  4 lite_topic_set string[]; 5 version int64; 6 offset_option OffsetOption
SyncLiteSubscriptionResponse: 1 status Status
ChangeLogLevelRequest: 1 level ChangeLogLevelRequest.Level
ChangeLogLevelResponse: 1 remark string
"""
_METHODS: Final = """
MessagingService: QueryRoute QueryRouteRequest -> QueryRouteResponse;
  Heartbeat HeartbeatRequest -> HeartbeatResponse;
  SendMessage SendMessageRequest -> SendMessageResponse;
  QueryAssignment QueryAssignmentRequest -> QueryAssignmentResponse;
  ReceiveMessage ReceiveMessageRequest -> stream ReceiveMessageResponse;
  AckMessage AckMessageRequest -> AckMessageResponse;
  ForwardMessageToDeadLetterQueue ForwardMessageToDeadLetterQueueRequest ->
  ForwardMessageToDeadLetterQueueResponse;
  PullMessage PullMessageRequest -> stream PullMessageResponse;
  UpdateOffset UpdateOffsetRequest -> UpdateOffsetResponse;
  GetOffset GetOffsetRequest -> GetOffsetResponse;
  QueryOffset QueryOffsetRequest -> QueryOffsetResponse;
  EndTransaction EndTransactionRequest -> EndTransactionResponse;
  Telemetry stream TelemetryCommand -> stream TelemetryCommand;
  NotifyClientTermination NotifyClientTerminationRequest -> NotifyClientTerminationResponse;
  ChangeInvisibleDuration ChangeInvisibleDurationRequest -> ChangeInvisibleDurationResponse;
  RecallMessage RecallMessageRequest -> RecallMessageResponse;
  SyncLiteSubscription SyncLiteSubscriptionRequest -> SyncLiteSubscriptionResponse
Admin: ChangeLogLevel ChangeLogLevelRequest -> ChangeLogLevelResponse
"""


def _number_of(text: str) -> int:
    number = natural_of(text)
    assert number is not None, text
    return number


def _names_of(text: str) -> dict[int, str]:
    return {
        _number_of(number): name for number, name in (part.split(" ") for part in parts_of(text))
    }


def _field_of(part: str) -> Field:
    number, name, of = part.split(" ")
    many = of.endswith("[]")
    of = of.removesuffix("[]")
    if of in _SCALARS:
        return Field(_number_of(number), name, FieldKind(of), "", many)
    kind = FieldKind.ENUM if of in ENUMS else FieldKind.MESSAGE
    return Field(_number_of(number), name, kind, of, many)


def _methods_of(service: str, text: str) -> Iterator[Method]:
    for part in parts_of(text):
        name, _, types = part.partition(" ")
        asks, gives = types.split(" -> ")
        request, response = asks.removeprefix("stream "), gives.removeprefix("stream ")
        yield Method(service, name, request, asks != request, response, gives != response)


_SCALARS: Final = frozenset(FieldKind) - {FieldKind.ENUM, FieldKind.MESSAGE}
ENUMS: Final = {name: _names_of(text) for name, text in entries(_ENUMS)}
"""enum → number → name"""
MESSAGES: Final = {name: tuple(map(_field_of, parts_of(text))) for name, text in entries(_MESSAGES)}
"""message type → its fields"""
METHODS: Final = tuple(
    method for name, text in entries(_METHODS) for method in _methods_of(name, text)
)
"""all methods"""
