"""The fields of every header class, in the order in which the class writes them, as text.

`headers` is what others import. RocketMQ: CommandCustomHeader, CFNotNull, RpcRequestHeader,
TopicRequestHeader.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from ..table_text import entries, parts_of


class FieldType(StrEnum):
    """Java types of header fields; boxed and primitive types are the same."""

    STRING = "string"
    INT = "int"
    LONG = "long"
    BOOLEAN = "boolean"
    DOUBLE = "double"
    BOUNDARY = "BoundaryType"


class HeaderField(NamedTuple):
    """An ext field of a header class, in any release since 4.0."""

    name: str
    """Java field name; the long one if the wire has a letter."""
    type: FieldType
    """Type of the text on the wire."""
    required: bool
    """Marked as not null in the class."""
    wire: str
    """Key in the ext fields."""
    since: str
    """First release with it, if later than its operation; `>5.5.0`: in none up to that one."""
    until: str
    """Last release with it; empty: still present."""


def fields_of(text: str) -> tuple[HeaderField, ...]:
    """Parse the fields of a table."""
    fields: list[HeaderField] = []
    for part in parts_of(text):
        if part.startswith("*"):
            fields += INHERITED[part[1:]]
        else:
            fields.append(_field_of(part))
    return tuple(fields)


def _field_of(part: str) -> HeaderField:
    spelled, type_, *releases = part.split(" ")
    since_until = dict(zip(releases[::2], releases[1::2], strict=True))
    name, _, wire = spelled.partition("=")
    name = name.removesuffix("?")
    return HeaderField(
        name,
        FieldType(type_),
        "?" not in spelled,
        wire or name,
        since_until.get("since", ""),
        since_until.get("until", ""),
    )


def headers_of(text: str) -> dict[str, tuple[HeaderField, ...]]:
    """Parse the header classes of a table."""
    return {name: fields_of(fields) for name, fields in entries(text)}


_NAMESPACE: Final = "ns? string since 5.0.0; nsd? boolean since 5.0.0"
_ONEWAY: Final = "oway? boolean since 5.0.0"
INHERITED: Final[dict[str, tuple[HeaderField, ...]]] = {}
"""fields that many classes inherit, by their placeholder in the tables"""
INHERITED["RPC"] = fields_of(f"{_NAMESPACE}; bname? string since 5.0.0; {_ONEWAY}")
"""for subclasses of RpcRequestHeader: namespace, namespaced, broker name, oneway"""
INHERITED["EARLY_RPC"] = fields_of(f"{_NAMESPACE}; bname? string since 4.9.5; {_ONEWAY}")
"""for classes with the broker name already in 4.9.5"""
INHERITED["TOPIC_RPC"] = fields_of("lo? boolean since 5.0.0; *RPC")
"""for subclasses of TopicRequestHeader: also the mark of a logical queue"""
INHERITED["EARLY_TOPIC_RPC"] = fields_of("lo? boolean since 5.0.0; *EARLY_RPC")


# Class: name type; name? type; ...: `?` may be absent, `name=wire` is called otherwise on the wire,
# `since` and `until` are releases as in `HeaderField`, `*RPC` are the fields of `INHERITED`.
CLASSLESS: Final = headers_of("""
SET_COMMITLOG_READ_MODE: readAheadMode=READ_AHEAD_MODE int
SWITCH_TIMER_ENGINE: timerEngineType=E_T string
""")
"""Ext fields of requests that have no header class, by the name of the request code."""

HEADER_CLASSES: Final[dict[str, tuple[HeaderField, ...]]] = headers_of("""
RpcRequestHeader: *EARLY_RPC
TopicRequestHeader: *TOPIC_RPC
TopicQueueRequestHeader: *TOPIC_RPC
# Headers of sending: messages, replies, transactions, messages sent back
SendMessageRequestHeader: producerGroup string; topic string; defaultTopic string;
  defaultTopicQueueNums int; queueId int; sysFlag int; bornTimestamp long; flag int;
  properties? string; reconsumeTimes? int; unitMode? boolean; batch? boolean since 4.1.0;
  maxReconsumeTimes? int; *EARLY_TOPIC_RPC
SendMessageResponseHeader: msgId string; queueId int; queueOffset long; transactionId? string;
  batchUniqId? string since 5.0.0; recallHandle? string since 5.3.2
ConsumerSendMsgBackRequestHeader: offset long; group string; delayLevel int; originMsgId? string;
  originTopic? string; unitMode? boolean; maxReconsumeTimes? int; *EARLY_RPC
EndTransactionRequestHeader: topic? string since 5.3.0; producerGroup string;
  tranStateTableOffset long; commitLogOffset long; commitOrRollback int;
  fromTransactionCheck? boolean; msgId string; transactionId? string; *EARLY_RPC
CheckTransactionStateRequestHeader: topic? string since 5.3.0; tranStateTableOffset long;
  commitLogOffset long; msgId? string; transactionId? string; offsetMsgId? string since 4.3.0;
  *EARLY_RPC
SendMessageRequestHeaderV2: producerGroup=a string; topic=b string; defaultTopic=c string;
  defaultTopicQueueNums=d int; queueId=e int; sysFlag=f int; bornTimestamp=g long; flag=h int;
  properties?=i string; reconsumeTimes?=j int; unitMode?=k boolean; maxReconsumeTimes?=l int;
  batch?=m boolean since 4.1.0; brokerName?=n string since 4.9.5; *EARLY_TOPIC_RPC
ResumeCheckHalfMessageRequestHeader: topic? string since 5.3.0; msgId? string
ReplyMessageRequestHeader: producerGroup string; topic string; defaultTopic string;
  defaultTopicQueueNums int; queueId int; sysFlag int; bornTimestamp long; flag int;
  properties? string; reconsumeTimes? int; unitMode? boolean; bornHost string; storeHost string;
  storeTimestamp long; *TOPIC_RPC
RecallMessageRequestHeader: producerGroup? string; topic string; recallHandle string; *TOPIC_RPC
RecallMessageResponseHeader: msgId string
CheckTransactionStateResponseHeader: producerGroup string; tranStateTableOffset long;
  commitLogOffset long; commitOrRollback int
EndTransactionResponseHeader:
# Headers of reading: pull, offsets, queries of messages
PullMessageRequestHeader: consumerGroup string; topic string; liteTopic? string since 5.5.0;
  queueId int; queueOffset long; maxMsgNums int; sysFlag int; commitOffset long;
  suspendTimeoutMillis long; subscription? string; subVersion long;
  expressionType? string since 4.1.0; maxMsgBytes? int since 5.0.0;
  requestSource? int since 5.1.0; proxyFrowardClientId? string since 5.1.0; *EARLY_TOPIC_RPC
PullMessageResponseHeader: suggestWhichBrokerId long; nextBeginOffset long; minOffset long;
  maxOffset long; offsetDelta? long since 5.0.0; topicSysFlag? int since 5.0.0;
  groupSysFlag? int since 5.0.0; forbiddenType? int since 5.0.0
QueryMessageRequestHeader: topic string; key string; maxNum int; beginTimestamp long;
  endTimestamp long; indexType? string since 5.4.0; lastKey? string since 5.4.0; *TOPIC_RPC
QueryMessageResponseHeader: indexLastUpdateTimestamp long; indexLastUpdatePhyoffset long
QueryConsumerOffsetRequestHeader: consumerGroup string; topic string; queueId int;
  setZeroIfNotFound? boolean since 5.0.0; *EARLY_TOPIC_RPC
QueryConsumerOffsetResponseHeader: offset long
UpdateConsumerOffsetRequestHeader: consumerGroup string; topic string; queueId int;
  commitOffset long; *EARLY_TOPIC_RPC
UpdateConsumerOffsetResponseHeader:
SearchOffsetRequestHeader: topic string; liteTopic? string since 5.5.0; queueId int;
  timestamp long; boundaryType? BoundaryType since 5.1.4; *EARLY_TOPIC_RPC
SearchOffsetResponseHeader: offset long
GetMaxOffsetRequestHeader: topic string; queueId int; committed? boolean since 5.0.0;
  logicalQueue? boolean since 5.0.0-PREVIEW until 5.0.0-PREVIEW; *EARLY_TOPIC_RPC
GetMaxOffsetResponseHeader: offset long
GetMinOffsetRequestHeader: topic string; queueId int; *EARLY_TOPIC_RPC
GetMinOffsetResponseHeader: offset long
GetEarliestMsgStoretimeRequestHeader: topic string; queueId int; *EARLY_TOPIC_RPC
GetEarliestMsgStoretimeResponseHeader: timestamp long
ViewMessageRequestHeader: topic? string since 5.3.0; offset long
InitConsumerOffsetRequestHeader: topic? string; initMode? int; *TOPIC_RPC
ViewMessageResponseHeader:
# Headers of clients and consumer groups, and of what a broker asks a client
HeartbeatRequestHeader: *RPC
UnregisterClientRequestHeader: clientID string; producerGroup? string; consumerGroup? string; *RPC
UnregisterClientResponseHeader:
GetConsumerListByGroupRequestHeader: consumerGroup string; *RPC
GetConsumerListByGroupResponseHeader:
NotifyConsumerIdsChangedRequestHeader: consumerGroup string; *RPC
LockBatchMqRequestHeader: *RPC
UnlockBatchMqRequestHeader: *RPC
ResetOffsetRequestHeader: group string; topic string; queueId? int since 5.1.0;
  offset? long since 5.1.0; timestamp long; isForce boolean; *TOPIC_RPC
GetConsumerStatusRequestHeader: topic string; group string; clientAddr? string; *TOPIC_RPC
GetConsumerRunningInfoRequestHeader: consumerGroup string; clientId string; jstackEnable? boolean;
  *RPC
ConsumeMessageDirectlyResultRequestHeader: consumerGroup string; clientId? string; msgId? string;
  brokerName? string; topic? string since 5.0.0; topicSysFlag? int since 5.0.0;
  groupSysFlag? int since 5.0.0; *TOPIC_RPC
# Headers of POP consumption, lite topics included
PopMessageRequestHeader: consumerGroup string; topic string; queueId int; maxMsgNums int;
  invisibleTime long; pollTime long; bornTime long; initMode int; expType? string; exp? string;
  order? boolean; attemptId? string since 5.1.1; *TOPIC_RPC
PopMessageResponseHeader: popTime long; invisibleTime long; reviveQid int; restNum long;
  startOffsetInfo? string; msgOffsetInfo? string; orderCountInfo? string
AckMessageRequestHeader: consumerGroup string; topic string; queueId int; extraInfo string;
  offset long; liteTopic? string since 5.5.0; *TOPIC_RPC
PeekMessageRequestHeader: topic string; queueId int; maxMsgNums int; consumerGroup string;
  *TOPIC_RPC
ChangeInvisibleTimeRequestHeader: consumerGroup string; topic string; queueId int;
  extraInfo string; offset long; invisibleTime long; liteTopic? string since 5.5.0;
  suspend? boolean since 5.5.0; *TOPIC_RPC
ChangeInvisibleTimeResponseHeader: popTime long; invisibleTime long; reviveQid int
NotificationRequestHeader: consumerGroup string; topic string; queueId int; pollTime long;
  bornTime long; order? boolean since 5.1.2; attemptId? string since 5.1.2;
  clientId? string since >5.5.0; expType? string since 5.5.0; exp? string since 5.5.0;
  isLiteConsumer? boolean since >5.5.0; *TOPIC_RPC
NotificationResponseHeader: hasMsg boolean; pollingFull? boolean since 5.3.2
PollingInfoRequestHeader: consumerGroup string; topic string; queueId int; *TOPIC_RPC
PollingInfoResponseHeader: pollingNum int
PopLiteMessageRequestHeader: clientId string; consumerGroup string; topic string; maxMsgNum int;
  invisibleTime long; pollTime long; bornTime long; attemptId? string; *RPC
PopLiteMessageResponseHeader: popTime long; invisibleTime long; reviveQid int;
  startOffsetInfo? string; msgOffsetInfo? string; orderCountInfo? string
LiteSubscriptionCtlRequestHeader: *RPC
NotifyUnsubscribeLiteRequestHeader: liteTopic string; consumerGroup string; clientId string; *RPC
GetParentTopicInfoRequestHeader: topic string
GetLiteTopicInfoRequestHeader: parentTopic? string; liteTopic? string
GetLiteClientInfoRequestHeader: parentTopic? string; group? string; clientId? string;
  maxCount? int
GetLiteGroupInfoRequestHeader: group string; liteTopic? string; topK? int
TriggerLiteDispatchRequestHeader: group string; clientId? string
# Headers of administration: topics, groups, statistics
CreateTopicRequestHeader: topic string; defaultTopic string; readQueueNums int;
  writeQueueNums int; perm int; topicFilterType string; topicSysFlag? int; order boolean;
  attributes? string since 5.0.0; force? boolean since 5.0.0; *TOPIC_RPC
CreateTopicListRequestHeader: *RPC
GetAllTopicConfigRequestHeader: topicSeq int since 5.4.0; dataVersion? string since 5.4.0;
  maxTopicNum? int since 5.4.0
GetAllTopicConfigResponseHeader: totalTopicNum? int since 5.4.0
GetBrokerConfigResponseHeader: version string
GetAllSubscriptionGroupRequestHeader: groupSeq int since 5.4.0; dataVersion? string since 5.4.0;
  maxGroupNum? int since 5.4.0
GetAllSubscriptionGroupResponseHeader: totalGroupNum int since 5.4.0
GetTopicStatsInfoRequestHeader: topic string; *TOPIC_RPC
GetConsumerConnectionListRequestHeader: consumerGroup string; *RPC
GetProducerConnectionListRequestHeader: producerGroup string; *RPC
DeleteSubscriptionGroupRequestHeader: groupName string; cleanOffset? boolean since 5.0.0;
  removeOffset? boolean since 4.9.0 until 5.0.0-ALPHA; *RPC
GetConsumeStatsRequestHeader: consumerGroup string; topic? string; topicList? string since 5.3.2;
  *TOPIC_RPC
DeleteTopicRequestHeader: topic string; *TOPIC_RPC
QueryTopicConsumeByWhoRequestHeader: topic string; *TOPIC_RPC
QueryConsumeTimeSpanRequestHeader: topic string; group string; *TOPIC_RPC
QueryCorrectionOffsetHeader: filterGroups? string; compareGroup string; topic string; *TOPIC_RPC
CloneGroupOffsetRequestHeader: srcGroup string; destGroup string; topic? string; offline? boolean;
  *RPC
ViewBrokerStatsDataRequestHeader: statsName string; statsKey string
GetConsumeStatsInBrokerHeader: isOrder boolean
QueryConsumeQueueRequestHeader: topic? string; queueId? int; index? long; count? int;
  consumerGroup? string; *TOPIC_RPC
GetAllProducerInfoRequestHeader:
QueryTopicsByConsumerRequestHeader: group string; *RPC
QuerySubscriptionByConsumerRequestHeader: group string; topic? string; *TOPIC_RPC
GetTopicConfigRequestHeader: topic string; *TOPIC_RPC
GetSubscriptionGroupConfigRequestHeader: group string; *RPC
UpdateGroupForbiddenRequestHeader: group string; topic string; readable? boolean; *TOPIC_RPC
CheckRocksdbCqWriteProgressRequestHeader: topic string; checkStoreTime? long since 5.3.2
ExportRocksDBConfigToJsonRequestHeader: configType string
StatisticsMessagesRequestHeader: consumerGroup string; topic string; queueId int; fromTime? long;
  toTime? long; *TOPIC_RPC
# Headers of users and access rules (ACL 2.0)
CreateUserRequestHeader: username? string
UpdateUserRequestHeader: username? string
DeleteUserRequestHeader: username? string
GetUserRequestHeader: username? string
ListUsersRequestHeader: filter? string
CreateAclRequestHeader: subject? string
UpdateAclRequestHeader: subject? string
DeleteAclRequestHeader: subject? string; policyType? string; resource? string
GetAclRequestHeader: subject? string
ListAclsRequestHeader: subjectFilter? string; resourceFilter? string
# Headers of the NameServer
PutKVConfigRequestHeader: namespace string; key string; value string
GetKVConfigRequestHeader: namespace string; key string
GetKVConfigResponseHeader: value? string
DeleteKVConfigRequestHeader: namespace string; key string
RegisterBrokerRequestHeader: brokerName string; brokerAddr string; clusterName string;
  haServerAddr string; brokerId long; heartbeatTimeoutMillis? long since 5.0.0;
  enableActingMaster? boolean since 5.0.0; compressed? boolean since 4.3.0;
  bodyCrc32? int since 4.3.0
RegisterBrokerResponseHeader: haServerAddr? string; masterAddr? string
UnRegisterBrokerRequestHeader: brokerName string; brokerAddr string; clusterName string;
  brokerId long
GetRouteInfoRequestHeader: topic string; acceptStandardJsonOnly? boolean since 4.9.4;
  sysFlag? int since 5.0.0-PREVIEW until 5.0.0-PREVIEW;
  logicalQueueIdsFilter? string since 5.0.0-PREVIEW until 5.0.0-PREVIEW; *TOPIC_RPC
WipeWritePermOfBrokerRequestHeader: brokerName string
WipeWritePermOfBrokerResponseHeader: wipeTopicCount int
DeleteTopicFromNamesrvRequestHeader: topic string; clusterName? string since 4.9.4; *TOPIC_RPC
RegisterTopicRequestHeader: topic string; *TOPIC_RPC
GetKVListByNamespaceRequestHeader: namespace string
GetTopicsByClusterRequestHeader: cluster string
QueryDataVersionRequestHeader: brokerName string; brokerAddr string; clusterName string;
  brokerId long
QueryDataVersionResponseHeader: changed boolean
AddWritePermOfBrokerRequestHeader: brokerName string
AddWritePermOfBrokerResponseHeader: addTopicCount int
RegisterOrderTopicRequestHeader: topic string; orderTopicString string
# Headers of broker groups and the controller
GetBrokerMemberGroupRequestHeader: clusterName string; brokerName string
AddBrokerRequestHeader: configPath? string
RemoveBrokerRequestHeader: brokerName string; brokerClusterName string; brokerId long
BrokerHeartbeatRequestHeader: clusterName string; brokerAddr string; brokerName string;
  brokerId? long since 5.1.0; epoch? int; maxOffset? long; confirmOffset? long;
  heartbeatTimeoutMills? long since 5.1.0; electionPriority? int since 5.1.0
NotifyMinBrokerIdChangeRequestHeader: minBrokerId? long; brokerName? string;
  minBrokerAddr? string; offlineBrokerAddr? string; haBrokerAddr? string
ExchangeHAInfoRequestHeader: masterHaAddress? string; masterFlushOffset? long;
  masterAddress? string
ExchangeHAInfoResponseHeader: masterHaAddress? string; masterFlushOffset? long;
  masterAddress? string
ResetMasterFlushOffsetHeader: masterFlushOffset long
AlterSyncStateSetRequestHeader: brokerName? string; masterBrokerId? long since 5.1.1;
  masterEpoch? int; invokeTime? long since 5.2.0; masterAddress? string until 5.1.0
AlterSyncStateSetResponseHeader: newSyncStateSetEpoch? int
ElectMasterRequestHeader: clusterName string; brokerName string; brokerId long since 5.1.1;
  designateElect boolean since 5.1.1; invokeTime? long since 5.2.0;
  brokerAddress string until 5.1.0
ElectMasterResponseHeader: masterBrokerId? long since 5.1.1; masterAddress? string since 5.1.1;
  masterEpoch? int; syncStateSetEpoch? int; newMasterAddress? string until 5.1.0;
  brokerMemberGroup? string until 5.1.0
RegisterBrokerToControllerRequestHeader: clusterName? string; brokerName? string;
  brokerId? long since 5.1.1; brokerAddress? string; invokeTime? long since 5.2.0;
  epoch? int until 5.1.0; maxOffset? long until 5.1.0; heartbeatTimeoutMillis? long until 5.1.0;
  confirmOffset? long since 5.1.0 until 5.1.0; electionPriority? int since 5.1.0 until 5.1.0
RegisterBrokerToControllerResponseHeader: clusterName? string since 5.1.1;
  brokerName? string since 5.1.1; masterBrokerId? long since 5.1.1; masterAddress? string;
  masterEpoch? int; syncStateSetEpoch? int; brokerId? long until 5.1.0
GetReplicaInfoRequestHeader: brokerName? string; brokerAddress? string until 5.1.0
GetReplicaInfoResponseHeader: masterBrokerId? long since 5.1.1; masterAddress? string;
  masterEpoch? int; brokerId? long until 5.1.0
GetMetaDataResponseHeader: group? string; controllerLeaderId? string;
  controllerLeaderAddress? string; isLeader? boolean; peers? string
NotifyBrokerRoleChangedRequestHeader: masterAddress? string; masterEpoch? int;
  syncStateSetEpoch? int; masterBrokerId? long since 5.1.1; brokerId? long until 5.1.0
CleanControllerBrokerDataRequestHeader: clusterName? string; brokerName string;
  brokerControllerIdsToClean? string since 5.1.1; isCleanLivingBroker? boolean;
  invokeTime? long since 5.2.0; brokerAddress? string until 5.1.0
GetNextBrokerIdRequestHeader: clusterName? string; brokerName? string
GetNextBrokerIdResponseHeader: clusterName? string; brokerName? string; nextBrokerId? long
ApplyBrokerIdRequestHeader: clusterName? string; brokerName? string; appliedBrokerId? long;
  registerCheckCode? string
ApplyBrokerIdResponseHeader: clusterName? string; brokerName? string
BrokerCloseChannelRequest: clusterName? string; brokerName? string; brokerId? long
BrokerCloseChannelResponse:
CheckNotActiveBrokerRequest: checkTimeMillis? long
CheckNotActiveBrokerResponse:
GetBrokerLiveInfoRequest: clusterName? string; brokerName? string; brokerId? long
GetBrokerLiveInfoResponse:
GetSyncStateDataRequest: invokeTime? long
RaftBrokerHeartBeatEventRequest: clusterNameIdentityInfo? string; brokerNameIdentityInfo? string;
  brokerIdIdentityInfo? long; brokerName? string; brokerAddr? string;
  heartbeatTimeoutMillis? long; brokerId? long; lastUpdateTimestamp? long; epoch? int;
  maxOffset? long; confirmOffset? long; electionPriority? int
RaftBrokerHeartBeatEventResponse:
# Headers that no current release has: ACL 1.0, filter servers, 5.0.0-PREVIEW
CreateAccessConfigRequestHeader: accessKey string; secretKey? string; whiteRemoteAddress? string;
  admin? boolean; defaultTopicPerm? string; defaultGroupPerm? string; topicPerms? string;
  groupPerms? string
DeleteAccessConfigRequestHeader: accessKey string
GetBrokerAclConfigResponseHeader: version string; allAclFileVersion? string since 4.9.3;
  brokerName string; brokerAddr string; clusterName string
UpdateGlobalWhiteAddrsConfigRequestHeader: globalWhiteAddrs string;
  aclFileFullPath string since 4.9.4
GetBrokerClusterAclConfigResponseHeader: plainAccessConfigs string
RegisterFilterServerRequestHeader: filterServerAddr string
RegisterFilterServerResponseHeader: brokerName string; brokerId long
RegisterMessageFilterClassRequestHeader: consumerGroup string; topic string; className string;
  classCRC int
QueryTopicLogicalQueueMappingRequestHeader: topic string
DeleteTopicLogicalQueueRequestHeader: topic string
""")
"""Java class → its fields, inherited ones last."""
