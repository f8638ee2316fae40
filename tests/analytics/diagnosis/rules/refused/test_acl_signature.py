"""When acl-signature speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.refused.acl_signature import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.topic_names import PROXY_HEARTBEATS

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

WHO = {
    "forged": "the signature of account sampleaccess is wrong",
    "stranger": "the broker does not know account nobody",
    "unsigned": "they have no signature",
}


@pytest.mark.parametrize(("name", "count"), [("acl-4x.pcap", 8), ("acl-5x.pcap", 9)])
def test_recorded(name: str, count: int) -> None:
    found = problems_of_sample(RULE, name)
    assert [one.title for one in found] == [
        f"broker-a refused {count} requests from 127.0.0.1@{who}: {why}" for who, why in WHO.items()
    ]
    assert [one.subject for one in found] == [
        Subject(
            broker="broker-a", topic="SignedTopic", group="acl_group", client=f"127.0.0.1@{who}"
        )
        for who in WHO
    ]
    assert {one.count for one in found} == {count}
    pointless = "2 messages sent up to 3 times, and refused each time: retries are pointless"
    assert all(pointless in one.details for one in found)
    assert found[1].advice.startswith("Create account nobody")
    assert same_in_any_order(RULE, sample(name).exchanges)


@pytest.mark.parametrize(
    ("answer", "remark", "why"),
    [
        (1, "AclException: No default permission for topic:Orders, org.apache", "topic:Orders"),
        (16, "User:eve has no permission to access Topic:Orders from 10.0.0.9, no", "Topic:Orders"),
        (16, "User:eve is disabled.", "account eve is disabled"),
        (
            1,
            "AclException: Need admin permission for request code=17, but accessKey=eve is not",
            "account eve is not an administrator",
        ),
        (1, "org.apache.rocketmq.acl.common.AclException: what else", "AclException: what else"),
    ],
)
def test_other_reasons(answer: int, remark: str, why: str) -> None:
    (one,) = problems(RULE, [exchange(0, int(RequestCode.SEND_MESSAGE_V2), answer, remark=remark)])
    assert one.title.startswith("10.0.0.1:10911 refused 1 send from 10.0.0.9: ")
    assert why in one.title


def test_a_request_without_signature() -> None:
    row = exchange(0, int(RequestCode.PULL_MESSAGE), 1, remark="No accessKey is configured")
    (one,) = problems(RULE, [row])
    assert one.title.endswith("refused 1 pull from 10.0.0.9: it has no signature")


@pytest.mark.parametrize(
    ("answer", "remark"),
    [
        (ResponseCode.SYSTEM_ERROR, "no consumer for this group, g"),
        (ResponseCode.NO_PERMISSION, "the broker[10.0.0.1] sending message is forbidden"),
        (ResponseCode.SYSTEM_ERROR, None),
    ],
)
def test_other_refusals_with_these_codes(answer: ResponseCode, remark: str | None) -> None:
    row = exchange(0, int(RequestCode.SEND_MESSAGE_V2), int(answer), remark=remark)
    assert not problems(RULE, [row])


CREATE_TOPIC = int(RequestCode.UPDATE_AND_CREATE_TOPIC)


def test_a_proxy_that_is_refused_needs_credentials_of_its_own() -> None:
    rows = [
        exchange(at, CREATE_TOPIC, 16, topic=PROXY_HEARTBEATS, remark="username cannot be null.")
        for at in range(3)
    ]
    (one,) = problems(RULE, rows)
    assert one.advice.startswith("Set innerClientAuthenticationCredentials")
    assert " from proxy 10.0.0.9: " in one.title
    rows = [exchange(0, CREATE_TOPIC, 16, topic="T", remark="username cannot be null.")]
    (one,) = problems(RULE, rows)
    assert one.advice.startswith("Give the client an account")
