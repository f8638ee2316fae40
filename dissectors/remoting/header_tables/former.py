"""Headers that no current release has: ACL 1.0, filter servers, 5.0.0-PREVIEW.

One entry a Java class, fields in the order in which the class writes them.
"""

from __future__ import annotations

from .field import BOOLEAN, INT, LONG, STRING, HeaderField, may, must

FORMER_HEADERS: dict[str, tuple[HeaderField, ...]] = {
    "CreateAccessConfigRequestHeader": (
        must("accessKey", STRING),
        may("secretKey", STRING),
        may("whiteRemoteAddress", STRING),
        may("admin", BOOLEAN),
        may("defaultTopicPerm", STRING),
        may("defaultGroupPerm", STRING),
        may("topicPerms", STRING),
        may("groupPerms", STRING),
    ),
    "DeleteAccessConfigRequestHeader": (must("accessKey", STRING),),
    "GetBrokerAclConfigResponseHeader": (
        must("version", STRING),
        may("allAclFileVersion", STRING, since="4.9.3"),
        must("brokerName", STRING),
        must("brokerAddr", STRING),
        must("clusterName", STRING),
    ),
    "UpdateGlobalWhiteAddrsConfigRequestHeader": (
        must("globalWhiteAddrs", STRING),
        must("aclFileFullPath", STRING, since="4.9.4"),
    ),
    "GetBrokerClusterAclConfigResponseHeader": (must("plainAccessConfigs", STRING),),
    "RegisterFilterServerRequestHeader": (must("filterServerAddr", STRING),),
    "RegisterFilterServerResponseHeader": (
        must("brokerName", STRING),
        must("brokerId", LONG),
    ),
    "RegisterMessageFilterClassRequestHeader": (
        must("consumerGroup", STRING),
        must("topic", STRING),
        must("className", STRING),
        must("classCRC", INT),
    ),
    "QueryTopicLogicalQueueMappingRequestHeader": (must("topic", STRING),),
    "DeleteTopicLogicalQueueRequestHeader": (must("topic", STRING),),
}
