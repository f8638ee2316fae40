"""Values of the enums in bodies, in the order of their ordinals; fastjson writes them by name."""

from __future__ import annotations

ENUMS: dict[str, tuple[str, ...]] = {
    "MessageRequestMode": (
        "PULL",
        "POP",
    ),
    "CMResult": (
        "CR_SUCCESS",
        "CR_LATER",
        "CR_ROLLBACK",
        "CR_COMMIT",
        "CR_THROW_EXCEPTION",
        "CR_RETURN_NULL",
    ),
    "ConsumeType": (
        "CONSUME_ACTIVELY",
        "CONSUME_PASSIVELY",
        "CONSUME_POP",
    ),
    "MessageModel": (
        "BROADCASTING",
        "CLUSTERING",
        "LITE_SELECTIVE",
    ),
    "MessageQueueRouteState": (
        "Expired",
        "ReadOnly",
        "Normal",
        "WriteOnly",
    ),
    "GroupRetryPolicyType": (
        "EXPONENTIAL",
        "CUSTOMIZED",
    ),
    "ConsumeFromWhere": (
        "CONSUME_FROM_LAST_OFFSET",
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        "CONSUME_FROM_MIN_OFFSET",
        "CONSUME_FROM_MAX_OFFSET",
        "CONSUME_FROM_FIRST_OFFSET",
        "CONSUME_FROM_TIMESTAMP",
    ),
    "TopicFilterType": (
        "SINGLE_TAG",
        "MULTI_TAG",
    ),
    "LanguageCode": (
        "JAVA",
        "CPP",
        "DOTNET",
        "PYTHON",
        "DELPHI",
        "ERLANG",
        "RUBY",
        "OTHER",
        "HTTP",
        "GO",
        "PHP",
        "OMS",
        "RUST",
        "NODE_JS",
    ),
    "LiteSubscriptionAction": (
        "PARTIAL_ADD",
        "PARTIAL_REMOVE",
        "COMPLETE_ADD",
        "COMPLETE_REMOVE",
    ),
    "OffsetOption.Type": (
        "POLICY",
        "OFFSET",
        "TAIL_N",
        "TIMESTAMP",
    ),
}
