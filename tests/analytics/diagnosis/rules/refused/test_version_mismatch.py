"""When version-mismatch speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.refused.call_refused import RULE as CALL_REFUSED
from analytics.diagnosis.rules.refused.version_mismatch import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import NAMESRV, exchange, problems, problems_of_sample, same_in_any_order, sample

UNKNOWN = int(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)


def refused(request: RequestCode, **values: str) -> ExchangeRecord:
    remark = f" request type {int(request)} not supported"
    return exchange(0, int(request), UNKNOWN, **{"remark": remark, **values})


def test_numbers_that_do_not_fit_a_binary_header() -> None:
    (one,) = problems_of_sample(RULE, "binary-header-cluster-5x.pcap")
    assert one.title == (
        "broker-a does not know NOTIFICATION, POLLING_INFO and POP_MESSAGE: 3 requests refused,"
        " because these request codes do not fit into the client's 16-bit binary header (200050"
        " as 3442, 200054 as"
        " 3446 and 200055 as 3447)"
    )
    assert one.subject == Subject(broker="broker-a", topic="BinaryTopic", group="pop_group")
    assert one.count == 3
    assert "client versions: JAVA V5_5_0 (3)" in one.details
    assert same_in_any_order(RULE, sample("binary-header-cluster-5x.pcap").exchanges)


def test_a_status_of_grpc_with_the_same_number_is_no_mismatch() -> None:
    (row,) = (row for row in sample("grpc-refused-5x.pcap.gz").exchanges if row.response_code == 3)
    assert (row.request_name, row.response_name) == ("Telemetry", "GRPC_INVALID_ARGUMENT")
    assert problems(RULE, [row]) == []
    (one,) = problems(CALL_REFUSED, [row])
    assert one.advice.startswith("Create the group")


def test_an_old_broker() -> None:
    (one,) = problems(RULE, [refused(RequestCode.LITE_PULL_MESSAGE)])
    assert one.title == "10.0.0.1:10911 does not know LITE_PULL_MESSAGE: 1 pull refused"


def test_a_request_to_the_wrong_server() -> None:
    route = exchange(
        0, int(RequestCode.GET_ROUTEINFO_BY_TOPIC), server_address=NAMESRV, topic="Orders"
    )
    (one,) = problems(RULE, [route, refused(RequestCode.GET_CONSUME_STATS, server_address=NAMESRV)])
    assert one.title == (
        "10.0.0.2:9876 does not know GET_CONSUME_STATS: 1 request refused, because it is a"
        " NameServer, and they are for a broker"
    )


@pytest.mark.parametrize(
    "request_",
    [
        RequestCode.SEND_BATCH_MESSAGE,  # batch-not-supported
        RequestCode.QUERY_ASSIGNMENT,  # the client then assigns queues itself
        RequestCode.BROKER_HEARTBEAT,
        RequestCode.GET_BROKER_MEMBER_GROUP,
    ],
)
def test_what_is_left_out(request_: RequestCode) -> None:
    assert not problems(RULE, [refused(request_)])


def test_a_client_of_5_at_a_broker_of_4() -> None:
    (one,) = problems_of_sample(RULE, "request-unsupported-5x-client-4x-server.pcap")
    assert one.title == (
        "broker-a does not know AUTH_LIST_USER, NOTIFICATION, POLLING_INFO and 1 more: 4 requests"
        " refused"
    )
    assert one.details[-1] == (
        "first releases with these requests: AUTH_LIST_USER 5.3.0, NOTIFICATION 5.0.0, POLLING_INFO"
        " 5.0.0, POP_MESSAGE 5.0.0"
    )
    assert one.subject == Subject(broker="broker-a", topic="OldTopic", group="old_group")
