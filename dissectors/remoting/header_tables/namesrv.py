"""Headers of the NameServer.

One entry a Java class, fields in the order in which the class writes them.
"""

from __future__ import annotations

from .field import BOOLEAN, INT, LONG, STRING, TOPIC_RPC, HeaderField, may, must

NAMESRV_HEADERS: dict[str, tuple[HeaderField, ...]] = {
    "PutKVConfigRequestHeader": (
        must("namespace", STRING),
        must("key", STRING),
        must("value", STRING),
    ),
    "GetKVConfigRequestHeader": (
        must("namespace", STRING),
        must("key", STRING),
    ),
    "GetKVConfigResponseHeader": (may("value", STRING),),
    "DeleteKVConfigRequestHeader": (
        must("namespace", STRING),
        must("key", STRING),
    ),
    "RegisterBrokerRequestHeader": (
        must("brokerName", STRING),
        must("brokerAddr", STRING),
        must("clusterName", STRING),
        must("haServerAddr", STRING),
        must("brokerId", LONG),
        may("heartbeatTimeoutMillis", LONG, since="5.0.0"),
        may("enableActingMaster", BOOLEAN, since="5.0.0"),
        may("compressed", BOOLEAN, since="4.3.0"),
        may("bodyCrc32", INT, since="4.3.0"),
    ),
    "RegisterBrokerResponseHeader": (
        may("haServerAddr", STRING),
        may("masterAddr", STRING),
    ),
    "UnRegisterBrokerRequestHeader": (
        must("brokerName", STRING),
        must("brokerAddr", STRING),
        must("clusterName", STRING),
        must("brokerId", LONG),
    ),
    "GetRouteInfoRequestHeader": (
        must("topic", STRING),
        may("acceptStandardJsonOnly", BOOLEAN, since="4.9.4"),
        may("sysFlag", INT, since="5.0.0-PREVIEW", until="5.0.0-PREVIEW"),
        may("logicalQueueIdsFilter", STRING, since="5.0.0-PREVIEW", until="5.0.0-PREVIEW"),
        *TOPIC_RPC,
    ),
    "WipeWritePermOfBrokerRequestHeader": (must("brokerName", STRING),),
    "WipeWritePermOfBrokerResponseHeader": (must("wipeTopicCount", INT),),
    "DeleteTopicFromNamesrvRequestHeader": (
        must("topic", STRING),
        may("clusterName", STRING, since="4.9.4"),
        *TOPIC_RPC,
    ),
    "RegisterTopicRequestHeader": (
        must("topic", STRING),
        *TOPIC_RPC,
    ),
    "GetKVListByNamespaceRequestHeader": (must("namespace", STRING),),
    "GetTopicsByClusterRequestHeader": (must("cluster", STRING),),
    "QueryDataVersionRequestHeader": (
        must("brokerName", STRING),
        must("brokerAddr", STRING),
        must("clusterName", STRING),
        must("brokerId", LONG),
    ),
    "QueryDataVersionResponseHeader": (must("changed", BOOLEAN),),
    "AddWritePermOfBrokerRequestHeader": (must("brokerName", STRING),),
    "AddWritePermOfBrokerResponseHeader": (must("addTopicCount", INT),),
    "RegisterOrderTopicRequestHeader": (
        must("topic", STRING),
        must("orderTopicString", STRING),
    ),
}
