from __future__ import annotations

from analytics.diagnosis.problem import Confidence, ProblemSeverity
from analytics.diagnosis.rules.usage.dangerous_config_update import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import NAMESRV, exchange, problems, problems_of_sample, same_in_any_order

BROKER_CONFIG = int(RequestCode.UPDATE_BROKER_CONFIG)
NAMESRV_CONFIG = int(RequestCode.UPDATE_NAMESRV_CONFIG)
REFUSED = int(ResponseCode.NO_PERMISSION)


def change(
    at_ms: float, *names: str, code: int = BROKER_CONFIG, answer: int | None = 0
) -> ExchangeRecord:
    facts = [f"setting={name}" for name in names]
    server_address = NAMESRV if code == NAMESRV_CONFIG else "10.0.0.1:10911"
    return exchange(at_ms, code, answer, facts=facts, server_address=server_address)


ATTACK = [change(0, "rocketmqHome", "filterServerNums"), change(10, "rocketmqHome")]


def test_a_broker_of_4x_takes_them() -> None:
    first, second = problems_of_sample(RULE, "config-dangerous-4x.pcap")
    assert first.title == (
        "127.0.0.1 changed brokerConfigPath, rocketmqHome of broker-a, twice: attackers can use"
        " these settings to run commands"
    )
    assert (first.count, first.severity) == (2, ProblemSeverity.ERROR)
    assert second.title.startswith("127.0.0.1 tried to change configStorePath of 127.77.0.1:9876, ")


def test_servers_of_5x_refuse_them() -> None:
    found = problems_of_sample(RULE, "config-dangerous-5x.pcap")
    assert [(one.count, one.severity) for one in found] == [
        (2, ProblemSeverity.WARNING),
        (1, ProblemSeverity.WARNING),
    ]


def test_settings_that_run_commands() -> None:
    (one,) = problems(RULE, ATTACK)
    assert one.title == (
        "10.0.0.9 changed filterServerNums, rocketmqHome of 10.0.0.1:10911, twice: attackers can"
        " use these settings to run commands"
    )
    assert (one.count, one.severity, one.subject.client) == (2, ProblemSeverity.ERROR, "10.0.0.9")


def test_an_attempt_that_is_refused_is_a_warning() -> None:
    (one,) = problems(RULE, [change(0, "configStorePath", code=NAMESRV_CONFIG, answer=REFUSED)])
    assert one.severity is ProblemSeverity.WARNING
    assert one.title.startswith("10.0.0.9 tried to change configStorePath of 10.0.0.2:9876, once;")


def test_without_an_answer_less_is_said() -> None:
    (one,) = problems(RULE, [change(0, "rocketmqHome", answer=None)])
    assert (one.severity, one.confidence) == (ProblemSeverity.WARNING, Confidence.LIKELY)
    assert one.title.startswith("10.0.0.9 asked to change rocketmqHome of 10.0.0.1:10911, once: ")


def test_other_settings_are_an_operators_business() -> None:
    assert problems(RULE, [change(0, "flushDiskType", "brokerPermission")]) == []
    assert problems(RULE, [change(0, "filterServerNums", code=NAMESRV_CONFIG)]) == []
    for name in ("admin-5x.pcap", "admin-4x.pcap", "fault-read-only-5x.pcap"):
        assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, ATTACK)
