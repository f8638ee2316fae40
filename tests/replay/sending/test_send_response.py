"""Answers to sends: those of the samples, and those that no broker should give."""

from __future__ import annotations

import pytest

from dissectors.decode.pipeline import Decode
from dissectors.remoting.command import RemotingCommand
from replay.message import MessageQueue, SendStatus
from replay.sending.attempt import Stored, stored_of
from tests.replay.java_sends import SAMPLES

QUEUE = MessageQueue("T", "broker-a", 1)
GOOD = {"msgId": "id", "queueId": "2", "queueOffset": "7"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("send-sync-5x", 8), ("send-batch-4x", 3), ("send-timer-5x", 8), ("acl-5x", 2)],
)
def test_answers_of_real_brokers(name: str, expected: int) -> None:
    stored = refused = 0
    for batch in Decode([str(SAMPLES / f"{name}.pcap")]).exchanges():
        for exchange in batch:
            asked, answered = exchange.request, exchange.response
            if asked is None or answered is None or asked.command.code not in (310, 320):
                continue
            answer = stored_of(answered.command, QUEUE)
            if answered.command.code:
                refused += 1
                assert answer is None
            else:
                stored += 1
                assert isinstance(answer, Stored)
                assert answer.offset_msg_id == answered.command.ext_fields["msgId"]
                assert answer.region == "DefaultRegion"
                assert answer.trace_on
    assert stored == expected
    assert (refused > 0) == (name == "acl-5x")


@pytest.mark.parametrize("code", [0, 10, 11, 12])
def test_four_codes_mean_that_the_broker_has_it(code: int) -> None:
    answer = stored_of(RemotingCommand(code, 1, 1, ext_fields=dict(GOOD)), QUEUE)
    assert isinstance(answer, Stored)
    names = {0: "SEND_OK", 10: "FLUSH_DISK_TIMEOUT", 11: "SLAVE_NOT_AVAILABLE"}
    assert answer.status == SendStatus(names.get(code, "FLUSH_SLAVE_TIMEOUT"))
    assert answer.queue == MessageQueue("T", "broker-a", 2)
    assert answer.queue_offset == 7


@pytest.mark.parametrize("code", [1, 2, 13, 14, 16, 17, 1500, -1, 9999])
def test_other_codes_refuse(code: int) -> None:
    assert stored_of(RemotingCommand(code, 1, 1, ext_fields=dict(GOOD)), QUEUE) is None


@pytest.mark.parametrize("name", sorted(GOOD))
@pytest.mark.parametrize("text", [None, "x", "", "1" * 30])
def test_an_answer_without_what_it_must_say(name: str, text: str | None) -> None:
    fields = dict(GOOD)
    if text is None:
        del fields[name]
    else:
        fields[name] = text
    answer = stored_of(RemotingCommand(0, 1, 1, ext_fields=fields), QUEUE)
    assert isinstance(answer, str) if text is None or name != "msgId" else True
    if isinstance(answer, str):
        assert name in answer


def test_traces_can_be_unwanted() -> None:
    fields = {**GOOD, "MSG_REGION": "north", "TRACE_ON": "false"}
    answer = stored_of(RemotingCommand(0, 1, 1, ext_fields=fields), QUEUE)
    assert isinstance(answer, Stored)
    assert (answer.region, answer.trace_on) == ("north", False)
