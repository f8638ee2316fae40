"""Bodies that keep a cluster together: members, replicas, statistics, users and access.

Java class → member as fastjson names it → Java type; see `java_types`. An absent member is null.
RocketMQ: ClusterInfo, BrokerReplicasInfo, HARuntimeInfo, UserInfo, AclInfo, AclConfig.
"""

from __future__ import annotations

from .member import Members

CLUSTER_CLASSES: dict[str, Members] = {
    "ClusterInfo": {
        "brokerAddrTable": "Map<String, BrokerData>",
        "clusterAddrTable": "Map<String, Set<String>>",
    },
    "KVTable": {
        "table": "Map<String, String>",
    },
    "BrokerMemberGroup": {
        "brokerAddrs": "Map<Long, String>",
        "brokerName": "String",
        "cluster": "String",
    },
    "GetBrokerMemberGroupResponseBody": {
        "brokerMemberGroup": "BrokerMemberGroup",
    },
    "BrokerSyncInfo": {
        "masterAddress": "String",
        "masterFlushOffset": "long",
        "masterHaAddress": "String",
    },
    "ElectMasterResponseBody": {
        "brokerMemberGroup": "BrokerMemberGroup",
        "syncStateSet": "Set<Long>",
    },
    "SyncStateSet": {
        "syncStateSet": "Set<Long>",
        "syncStateSetEpoch": "int",
    },
    "RoleChangeNotifyEntry": {
        "brokerMemberGroup": "BrokerMemberGroup",
        "masterAddress": "String",
        "masterBrokerId": "Long",
        "masterEpoch": "int",
        "syncStateSet": "Set<Long>",
        "syncStateSetEpoch": "int",
    },
    "BrokerReplicasInfo": {
        "replicasInfoTable": "Map<String, BrokerReplicasInfo.ReplicasInfo>",
    },
    "BrokerReplicasInfo.ReplicasInfo": {
        "inSyncReplicas": "List<BrokerReplicasInfo.ReplicaIdentity>",
        "masterAddress": "String",
        "masterBrokerId": "Long",
        "masterEpoch": "int",
        "notInSyncReplicas": "List<BrokerReplicasInfo.ReplicaIdentity>",
        "syncStateSetEpoch": "int",
    },
    "BrokerReplicasInfo.ReplicaIdentity": {
        "alive": "Boolean",
        "brokerAddress": "String",
        "brokerId": "Long",
        "brokerName": "String",
    },
    "EpochEntry": {
        "endOffset": "long",
        "epoch": "int",
        "startOffset": "long",
    },
    "EpochEntryCache": {
        "brokerId": "long",
        "brokerName": "String",
        "clusterName": "String",
        "epochList": "List<EpochEntry>",
        "maxOffset": "long",
    },
    "HARuntimeInfo": {
        "haClientRuntimeInfo": "HARuntimeInfo.HAClientRuntimeInfo",
        "haConnectionInfo": "List<HARuntimeInfo.HAConnectionRuntimeInfo>",
        "inSyncSlaveNums": "int",
        "master": "boolean",
        "masterCommitLogMaxOffset": "long",
    },
    "HARuntimeInfo.HAConnectionRuntimeInfo": {
        "addr": "String",
        "diff": "long",
        "inSync": "boolean",
        "slaveAckOffset": "long",
        "transferFromWhere": "long",
        "transferredByteInSecond": "long",
    },
    "HARuntimeInfo.HAClientRuntimeInfo": {
        "lastReadTimestamp": "long",
        "lastWriteTimestamp": "long",
        "masterAddr": "String",
        "masterFlushOffset": "long",
        "maxOffset": "long",
        "transferredByteInSecond": "long",
    },
    "BrokerStatsData": {
        "statsDay": "BrokerStatsItem",
        "statsHour": "BrokerStatsItem",
        "statsMinute": "BrokerStatsItem",
    },
    "BrokerStatsItem": {
        "avgpt": "double",
        "sum": "long",
        "tps": "double",
    },
    "TimerMetricsSerializeWrapper": {
        "dataVersion": "DataVersion",
        "timingCount": "Map<String, TimerMetrics.Metric>",
    },
    "TimerMetrics.Metric": {
        "count": "long",
        "timeStamp": "long",
    },
    "CheckRocksdbCqWriteResult": {
        "checkResult": "String",
        "checkStatus": "int",
    },
    "UserInfo": {
        "password": "String",
        "userStatus": "String",
        "userType": "String",
        "username": "String",
    },
    "AclInfo": {
        "policies": "List<AclInfo.PolicyInfo>",
        "subject": "String",
    },
    "AclInfo.PolicyInfo": {
        "entries": "List<AclInfo.PolicyEntryInfo>",
        "policyType": "String",
    },
    "AclInfo.PolicyEntryInfo": {
        "actions": "List<String>",
        "decision": "String",
        "resource": "String",
        "sourceIps": "List<String>",
    },
    "GetBrokerClusterAclConfigResponseBody": {
        "globalWhiteAddrs": "List<String>",
        "plainAccessConfigs": "List<PlainAccessConfig>",
    },
    "PlainAccessConfig": {
        "accessKey": "String",
        "admin": "boolean",
        "defaultGroupPerm": "String",
        "defaultTopicPerm": "String",
        "groupPerms": "List<String>",
        "secretKey": "String",
        "topicPerms": "List<String>",
        "whiteRemoteAddress": "String",
    },
}
