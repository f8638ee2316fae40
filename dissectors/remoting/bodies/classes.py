"""The classes and enums of JSON bodies.

`Class: member Type; …` with members as fastjson names them; `long=short` is written as `short`. An
absent member is null. For the types see `java_type_of`. Enums are in the order of their ordinals;
fastjson writes them by name.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from ...table_text import entries, parts_of
from ..fastjson.reader import canonical_name


class ShortMember(NamedTuple):
    """A member that is written under a short name."""

    long_name: str
    """Java field name, used in decoded bodies."""
    java_type: str
    """As in the other cells."""


Members = dict[str, str | ShortMember]
"""Member as fastjson names it → Java type."""


def _members_of(text: str) -> Members:
    members: Members = {}
    for part in parts_of(text):
        name, _, type_ = part.partition(" ")
        long_name, equals, short = name.partition("=")
        members[short or name] = ShortMember(long_name, type_) if equals else type_
    return members


_CLASSES: Final = """
# Bodies of clients: routes, heartbeats, subscriptions, locks, assignments, POP
MessageQueue: brokerName String; queueId int; topic String
MessageQueueForC: brokerName String; offset long; queueId int; topic String
MessageQueueAssignment: attachments Map<String, String>; messageQueue MessageQueue;
  mode MessageRequestMode
BrokerData: brokerAddrs Map<Long, String>; brokerName String; cluster String;
  enableActingMaster boolean; zoneName String
QueueData: brokerName String; perm int; readQueueNums int; topicSynFlag int; topicSysFlag int;
  writeQueueNums int
TopicRouteData: brokerDatas List<BrokerData>; filterServerTable Map<String, List<String>>;
  orderTopicConf String; queueDatas List<QueueData>;
  topicQueueMappingByBroker Map<String, TopicQueueMappingInfo>;
  topicQueueMappingInfo Map<String, TopicQueueMappingInfo>
HeartbeatData: clientID String; consumerDataSet Set<ConsumerData>; heartbeatFingerprint int;
  producerDataSet Set<ProducerData>; withoutSub boolean
ProducerData: groupName String
ConsumerData: consumeFromWhere ConsumeFromWhere; consumeType ConsumeType; groupName String;
  messageModel MessageModel; subscriptionDataSet Set<SubscriptionData>; unitMode boolean
SubscriptionData: classFilterMode boolean; codeSet Set<Integer>; expressionType String;
  subString String; subVersion long; tagsSet Set<String>; topic String
CheckClientRequestBody: clientId String; group String; namespace String;
  subscriptionData SubscriptionData
GetConsumerListByGroupResponseBody: consumerIdList List<String>
LockBatchRequestBody: clientId String; consumerGroup String; mqSet Set<MessageQueue>;
  onlyThisBroker boolean
LockBatchResponseBody: lockOKMQSet Set<MessageQueue>
UnlockBatchRequestBody: clientId String; consumerGroup String; mqSet Set<MessageQueue>;
  onlyThisBroker boolean
QueryAssignmentRequestBody: clientId String; consumerGroup String; messageModel MessageModel;
  strategyName String; topic String
QueryAssignmentResponseBody: messageQueueAssignments Set<MessageQueueAssignment>
SetMessageRequestModeRequestBody: consumerGroup String; mode MessageRequestMode;
  popShareQueueNum int; topic String
MessageRequestModeSerializeWrapper:
  messageRequestModeMap Map<String, Map<String, SetMessageRequestModeRequestBody>>
BatchAck: bitSet=b BitSet; consumerGroup=c String; invisibleTime=it long; popTime=pt long;
  queueId=q int; retry=r String; reviveQueueId=rq int; startOffset=so long; topic=t String
BatchAckMessageRequestBody: acks List<BatchAck>; brokerName String
AckMsg: ackOffset=ao long; brokerName=bn String; consumerGroup=c String; popTime=pt long;
  queueId=q int; startOffset=so long; topic=t String
BatchAckMsg: ackOffset=ao long; ackOffsetList=aol List<Long>; brokerName=bn String;
  consumerGroup=c String; popTime=pt long; queueId=q int; startOffset=so long; topic=t String
PopCheckPoint: bitMap=bm int; brokerName=bn String; consumerGroup=c String;
  queueOffsetDiff=d List<Integer>; invisibleTime=it long; messageCount=n byte; popTime=pt long;
  queueId=q int; reviveTime long; reviveOffset=ro long; rePutTimes=rp String; startOffset=so long;
  suspend=sp boolean; topic=t String
OffsetMovedEvent: consumerGroup String; messageQueue MessageQueue; offsetNew long;
  offsetRequest long
# Bodies about topics, subscription groups and broker configuration
TopicConfig: attributes Map<String, String>; order boolean; perm int; readQueueNums int;
  topicFilterType TopicFilterType; topicName String; topicSysFlag int; writeQueueNums int
TopicConfigSerializeWrapper: dataVersion DataVersion; topicConfigTable Map<String, TopicConfig>
TopicConfigAndMappingSerializeWrapper: dataVersion DataVersion; mappingDataVersion DataVersion;
  topicConfigTable Map<String, TopicConfig>;
  topicQueueMappingDetailMap Map<String, TopicQueueMappingDetail>;
  topicQueueMappingInfoMap Map<String, TopicQueueMappingInfo>
TopicConfigAndQueueMapping: attributes Map<String, String>; mappingDetail TopicQueueMappingDetail;
  order boolean; perm int; readQueueNums int; topicFilterType TopicFilterType; topicName String;
  topicSysFlag int; writeQueueNums int
CreateTopicListRequestBody: topicConfigList List<TopicConfig>
TopicList: brokerAddr String; topicList Set<String>
RegisterBrokerBody: filterServerList List<String>;
  topicConfigSerializeWrapper TopicConfigAndMappingSerializeWrapper
DataVersion: counter long; stateVersion long; timestamp long; timestatmp long
LogicQueueMappingItem: bname String; endOffset long; gen int; logicOffset long; queueId int;
  startOffset long; timeOfEnd long; timeOfStart long
TopicQueueMappingContext: currentItem LogicQueueMappingItem; globalId Integer; leader boolean;
  leaderItem LogicQueueMappingItem; mappingDetail TopicQueueMappingDetail;
  mappingItemList List<LogicQueueMappingItem>; topic String
TopicQueueMappingDetail: bname String; currIdMap Map<Integer, Integer>; dirty boolean; epoch long;
  hostedQueues Map<Integer, List<LogicQueueMappingItem>>; scope String; topic String;
  totalQueues int
TopicQueueMappingInfo: bname String; currIdMap Map<Integer, Integer>; dirty boolean; epoch long;
  scope String; topic String; totalQueues int
TopicQueueMappingOne: bname String; globalId Integer; items List<LogicQueueMappingItem>;
  mappingDetail TopicQueueMappingDetail; topic String
TopicQueueMappingSerializeWrapper: dataVersion DataVersion;
  topicQueueMappingInfoMap Map<String, TopicQueueMappingDetail>
TopicRemappingDetailWrapper: brokerConfigMap Map<String, TopicConfigAndQueueMapping>;
  brokerToMapIn Set<String>; brokerToMapOut Set<String>; epoch long; topic String; type String
SubscriptionGroupConfig: attributes Map<String, String>; brokerId long;
  consumeBroadcastEnable boolean; consumeEnable boolean; consumeFromMinEnable boolean;
  consumeMessageOrderly boolean; consumeTimeoutMinute int; groupName String;
  groupRetryPolicy GroupRetryPolicy; groupSysFlag int; notifyConsumerIdsChangedEnable boolean;
  retryMaxTimes int; retryQueueNums int; subscriptionDataSet Set<SimpleSubscriptionData>;
  whichBrokerWhenConsumeSlowly long
SubscriptionGroupList: groupConfigList List<SubscriptionGroupConfig>
SubscriptionGroupWrapper: dataVersion DataVersion;
  forbiddenTable Map<String, Map<String, Integer>>;
  subscriptionGroupTable Map<String, SubscriptionGroupConfig>
SimpleSubscriptionData: expression String; expressionType String; topic String; version long
CustomizedRetryPolicy: next List<Long>
ExponentialRetryPolicy: initial long; max long; multiplier long
GroupRetryPolicy: customizedRetryPolicy CustomizedRetryPolicy;
  exponentialRetryPolicy ExponentialRetryPolicy; type GroupRetryPolicyType
RetryPolicy:
GroupForbidden: group String; readable Boolean; topic String
# Bodies about consumers and producers: offsets, connections, statistics, diagnosis
ConsumeStats: consumeTps double; offsetTable Map<MessageQueue, OffsetWrapper>
OffsetWrapper: brokerOffset long; consumerOffset long; lastTimestamp long; pullOffset long
ConsumeStatsList: brokerAddr String; consumeStatsList List<Map<String, List<ConsumeStats>>>;
  totalDiff long; totalInflightDiff long
RollbackStats: brokerName String; brokerOffset long; consumerOffset long; queueId long;
  rollbackOffset long; timestampOffset long
ConsumeStatus: consumeFailedMsgs long; consumeFailedTPS double; consumeOKTPS double;
  consumeRT double; pullRT double; pullTPS double
ConsumeByWho: consumedGroup Set<String>; notConsumedGroup Set<String>; offset long; queueId int;
  topic String
ConsumeMessageDirectlyResult: autoCommit boolean; consumeResult CMResult; order boolean;
  remark String; spentTimeMills long
ConsumeQueueData: bitMap String; eval boolean; extendDataJson String; msg String;
  physicOffset long; physicSize int; tagsCode long
Connection: clientAddr String; clientId String; language LanguageCode; version int
ConsumerConnection: connectionSet Set<Connection>; consumeFromWhere ConsumeFromWhere;
  consumeType ConsumeType; messageModel MessageModel;
  subscriptionTable Map<String, SubscriptionData>
ProducerConnection: connectionSet Set<Connection>
ProducerInfo: clientId String; language LanguageCode; lastUpdateTimestamp long; remoteIP String;
  version int
ProducerTableInfo: data Map<String, List<ProducerInfo>>
ConsumerOffsetSerializeWrapper: dataVersion DataVersion; groupTopicMap Map<String, Set<String>>;
  offsetTable Map<String, Map<Integer, Long>>; pullOffsetTable Map<String, Map<Integer, Long>>
DelayOffsetSerializeWrapper: dataVersion DataVersion; offsetTable Map<Integer, Long>
ConsumerRunningInfo: jstack String; mqPopTable Map<MessageQueue, PopProcessQueueInfo>;
  mqTable Map<MessageQueue, ProcessQueueInfo>; properties Map<String, String>;
  statusTable Map<String, ConsumeStatus>; subscriptionSet Set<SubscriptionData>;
  userConsumerInfo Map<String, String>
PopProcessQueueInfo: droped boolean; lastPopTimestamp long; waitAckCount int
ProcessQueueInfo: cachedMsgCount int; cachedMsgMaxOffset long; cachedMsgMinOffset long;
  cachedMsgSizeInMiB int; commitOffset long; droped boolean; lastConsumeTimestamp long;
  lastLockTimestamp long; lastPullTimestamp long; locked boolean; transactionMsgCount int;
  transactionMsgMaxOffset long; transactionMsgMinOffset long; tryUnlockTimes long
GetConsumerStatusBody: consumerTable Map<String, Map<MessageQueue, Long>>;
  messageQueueTable Map<MessageQueue, Long>
GroupList: groupList Set<String>
QueryConsumeQueueResponseBody: filterData String; maxQueueIndex long; minQueueIndex long;
  queueData List<ConsumeQueueData>; subscriptionData SubscriptionData
QueryConsumeTimeSpanBody: consumeTimeSpanSet List<QueueTimeSpan>
QueueTimeSpan: consumeTimeStamp long; consumeTimeStampStr String; delayTime long;
  maxTimeStamp long; maxTimeStampStr String; messageQueue MessageQueue; minTimeStamp long;
  minTimeStampStr String
QueryCorrectionOffsetBody: correctionOffsets Map<Integer, Long>
QuerySubscriptionResponseBody: group String; subscriptionData SubscriptionData; topic String
ResetOffsetBody: offsetTable Map<MessageQueue, Long>
ResetOffsetBodyForC: offsetTable List<MessageQueueForC>
TopicOffset: lastUpdateTimestamp long; maxOffset long; minOffset long
TopicStatsTable: offsetTable Map<MessageQueue, TopicOffset>; topicPutTps double
# Bodies that keep a cluster together: members, replicas, statistics, users and access
ClusterInfo: brokerAddrTable Map<String, BrokerData>; clusterAddrTable Map<String, Set<String>>
KVTable: table Map<String, String>
BrokerMemberGroup: brokerAddrs Map<Long, String>; brokerName String; cluster String
GetBrokerMemberGroupResponseBody: brokerMemberGroup BrokerMemberGroup
BrokerSyncInfo: masterAddress String; masterFlushOffset long; masterHaAddress String
ElectMasterResponseBody: brokerMemberGroup BrokerMemberGroup; syncStateSet Set<Long>
SyncStateSet: syncStateSet Set<Long>; syncStateSetEpoch int
RoleChangeNotifyEntry: brokerMemberGroup BrokerMemberGroup; masterAddress String;
  masterBrokerId Long; masterEpoch int; syncStateSet Set<Long>; syncStateSetEpoch int
BrokerReplicasInfo: replicasInfoTable Map<String, BrokerReplicasInfo.ReplicasInfo>
BrokerReplicasInfo.ReplicasInfo: inSyncReplicas List<BrokerReplicasInfo.ReplicaIdentity>;
  masterAddress String; masterBrokerId Long; masterEpoch int;
  notInSyncReplicas List<BrokerReplicasInfo.ReplicaIdentity>; syncStateSetEpoch int
BrokerReplicasInfo.ReplicaIdentity: alive Boolean; brokerAddress String; brokerId Long;
  brokerName String
EpochEntry: endOffset long; epoch int; startOffset long
EpochEntryCache: brokerId long; brokerName String; clusterName String; epochList List<EpochEntry>;
  maxOffset long
HARuntimeInfo: haClientRuntimeInfo HARuntimeInfo.HAClientRuntimeInfo;
  haConnectionInfo List<HARuntimeInfo.HAConnectionRuntimeInfo>; inSyncSlaveNums int;
  master boolean; masterCommitLogMaxOffset long
HARuntimeInfo.HAConnectionRuntimeInfo: addr String; diff long; inSync boolean;
  slaveAckOffset long; transferFromWhere long; transferredByteInSecond long
HARuntimeInfo.HAClientRuntimeInfo: lastReadTimestamp long; lastWriteTimestamp long;
  masterAddr String; masterFlushOffset long; maxOffset long; transferredByteInSecond long
BrokerStatsData: statsDay BrokerStatsItem; statsHour BrokerStatsItem; statsMinute BrokerStatsItem
BrokerStatsItem: avgpt double; sum long; tps double
TimerMetricsSerializeWrapper: dataVersion DataVersion;
  timingCount Map<String, TimerMetrics.Metric>
TimerMetrics.Metric: count long; timeStamp long
CheckRocksdbCqWriteResult: checkResult String; checkStatus int
UserInfo: password String; userStatus String; userType String; username String
AclInfo: policies List<AclInfo.PolicyInfo>; subject String
AclInfo.PolicyInfo: entries List<AclInfo.PolicyEntryInfo>; policyType String
AclInfo.PolicyEntryInfo: actions List<String>; decision String; resource String;
  sourceIps List<String>
GetBrokerClusterAclConfigResponseBody: globalWhiteAddrs List<String>;
  plainAccessConfigs List<PlainAccessConfig>
PlainAccessConfig: accessKey String; admin boolean; defaultGroupPerm String;
  defaultTopicPerm String; groupPerms List<String>; secretKey String; topicPerms List<String>;
  whiteRemoteAddress String
# Bodies of lite topics (5.5.0): subscriptions of lite consumers and what brokers tell of them
LiteSubscriptionCtlRequestBody: subscriptionSet Set<LiteSubscriptionDTO>
LiteSubscriptionDTO: action LiteSubscriptionAction; clientId String; group String;
  liteTopicSet Set<String>; offsetOption OffsetOption; topic String; version long
OffsetOption: type OffsetOption.Type; value long
GetBrokerLiteInfoResponseBody: cqTableSize int; currentLmqNum int; eventMapSize int;
  groupMeta Map<String, Set<String>>; liteSubscriptionCount int; maxLmqNum int;
  offsetTableSize int; orderInfoCount int; storeType String; topicMeta Map<String, Integer>
GetParentTopicInfoResponseBody: groups Set<String>; liteTopicCount int; lmqNum int; topic String;
  ttl int
GetLiteTopicInfoResponseBody: liteTopic String; parentTopic String; shardingToBroker boolean;
  subscriber Set<ClientGroup>; topicOffset TopicOffset
ClientGroup: clientId String; group String
GetLiteClientInfoResponseBody: clientId String; group String; lastAccessTime long;
  lastConsumeTime long; liteTopicCount int; liteTopicSet Set<String>; parentTopic String
GetLiteGroupInfoResponseBody: earliestUnconsumedTimestamp long; group String;
  lagCountTopK List<LiteLagInfo>; lagTimestampTopK List<LiteLagInfo>; liteTopic String;
  liteTopicOffsetWrapper OffsetWrapper; parentTopic String; totalLagCount long
LiteLagInfo: earliestUnconsumedTimestamp long; lagCount long; liteTopic String
"""
_ENUMS: Final = """
MessageRequestMode: PULL; POP
CMResult: CR_SUCCESS; CR_LATER; CR_ROLLBACK; CR_COMMIT; CR_THROW_EXCEPTION; CR_RETURN_NULL
ConsumeType: CONSUME_ACTIVELY; CONSUME_PASSIVELY; CONSUME_POP
MessageModel: BROADCASTING; CLUSTERING; LITE_SELECTIVE
MessageQueueRouteState: Expired; ReadOnly; Normal; WriteOnly
GroupRetryPolicyType: EXPONENTIAL; CUSTOMIZED
ConsumeFromWhere: CONSUME_FROM_LAST_OFFSET; CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST;
  CONSUME_FROM_MIN_OFFSET; CONSUME_FROM_MAX_OFFSET; CONSUME_FROM_FIRST_OFFSET;
  CONSUME_FROM_TIMESTAMP
TopicFilterType: SINGLE_TAG; MULTI_TAG
LanguageCode: JAVA; CPP; DOTNET; PYTHON; DELPHI; ERLANG; RUBY; OTHER; HTTP; GO; PHP; OMS; RUST;
  NODE_JS
LiteSubscriptionAction: PARTIAL_ADD; PARTIAL_REMOVE; COMPLETE_ADD; COMPLETE_REMOVE
OffsetOption.Type: POLICY; OFFSET; TAIL_N; TIMESTAMP
"""
CLASSES: Final = {name: _members_of(text) for name, text in entries(_CLASSES)}
"""Java class → its members."""
ENUMS: Final = {name: tuple(parts_of(text)) for name, text in entries(_ENUMS)}
"""Java enum → its values."""


class TypeKind(Enum):
    """Kind of a type of a member."""

    STRING = "a string"
    INTEGER = "an integer"
    DOUBLE = "a number"
    BOOLEAN = "a boolean"
    BITS = "a bit set in base64"
    ENUM = "an enum name"
    CLASS = "an object"
    LIST = "a list"
    MAP = "a map"
    ANY = "any value"


class JavaType(NamedTuple):
    """One type; `key` and `item` are None unless the kind has them."""

    kind: TypeKind
    """Kind of the type."""
    name: str
    """Spelling in the table."""
    key: JavaType | None = None
    """Type of the keys of a map."""
    item: JavaType | None = None
    """Type of the values of a map or of the items of a list."""


_SCALARS: Final = {
    "String": TypeKind.STRING,
    "int": TypeKind.INTEGER,
    "Integer": TypeKind.INTEGER,
    "long": TypeKind.INTEGER,
    "Long": TypeKind.INTEGER,
    "byte": TypeKind.INTEGER,
    "double": TypeKind.DOUBLE,
    "boolean": TypeKind.BOOLEAN,
    "Boolean": TypeKind.BOOLEAN,
    "BitSet": TypeKind.BITS,
    "Object": TypeKind.ANY,
}


@lru_cache(maxsize=512)
def java_type_of(text: str) -> JavaType:
    """Parse a type of a table; raise ValueError if it is invalid."""
    text = text.strip()
    outer, bracket, inner = text.partition("<")
    if bracket and text.endswith(">"):
        inner = inner[:-1]
        if outer in ("List", "Set"):
            return JavaType(TypeKind.LIST, text, item=java_type_of(inner))
        if outer == "Map":
            key, _, item = inner.partition(",")  # no key type of the tables has a comma
            return JavaType(TypeKind.MAP, text, java_type_of(key), java_type_of(item))
    if text in _SCALARS:
        return JavaType(_SCALARS[text], text)
    if text in ENUMS:
        return JavaType(TypeKind.ENUM, text)
    if text in CLASSES:
        return JavaType(TypeKind.CLASS, text)
    raise ValueError(f"{text!r} is not a type of the tables")


# fastjson 1 (RocketMQ through 5.3) ignores case, `_`, and `-` in member names, and accepts `is`
# before a boolean one (JavaBeanDeserializer.smartMatch); fastjson2 ignores such members.
@lru_cache(maxsize=512)
def spellings_of(class_name: str) -> dict[str, str]:
    """Return the members of a class by their names as fastjson 1 compares them."""
    names = {canonical_name(name): name for name in CLASSES[class_name]}
    for name, cell in CLASSES[class_name].items():
        if (cell.java_type if isinstance(cell, ShortMember) else cell) == "boolean":
            # A member of that very name would come first.
            names.setdefault("is" + canonical_name(name), name)
    return names


@lru_cache(maxsize=64)
def _spellings_of_all(class_names: tuple[str, ...]) -> tuple[dict[str, str], frozenset[str]]:
    """Return the members of classes by their compared names, and their Java names."""
    names: dict[str, str] = {}
    for class_name in class_names:
        names |= spellings_of(class_name)
    return names, frozenset(names.values())


def with_java_names(
    value: dict[str, object], class_names: tuple[str, ...]
) -> tuple[dict[str, object], list[str]]:
    """Rename the members of an object, recursively, to those of the classes.

    Also return the names that were spelled differently, each once.
    """
    spellings, names = _spellings_of_all(class_names)
    if _is_written_so(value, names):  # the usual case
        return value, []
    others: dict[str, None] = {}
    renamed = _renamed(value, spellings, others)
    return (renamed if isinstance(renamed, dict) else value), list(others)


def _is_written_so(value: object, names: frozenset[str]) -> bool:
    """Return whether objects have only members with these names."""
    if type(value) is dict:
        if not value.keys() <= names:
            return False
        value = list(value.values())
    if type(value) is not list:
        return True
    return all(
        _is_written_so(item, names) for item in value if type(item) is dict or type(item) is list
    )


def _renamed(value: object, spellings: dict[str, str], others: dict[str, None]) -> object:
    if isinstance(value, dict):
        renamed: dict[str, object] = {}
        for name, item in value.items():
            java = spellings.get(canonical_name(name), name)
            if java != name and java not in value:
                others[name] = None
                name = java
            renamed.setdefault(name, _renamed(item, spellings, others))
        return renamed
    if type(value) is list:
        return [_renamed(item, spellings, others) for item in value]
    return value
