"""A capture in which everything that has a name tries to write to the screen."""

from __future__ import annotations

from pathlib import Path

from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command
from tests.traffic.talk import MILLISECOND, End, Talk, merged

EVIL = "\x1b[2J\x1b]0;title\x07[red]evil[/red]\n\r\x00\u202e\u2066\x9b31m=SUM(1)"
REMARKS = {
    2: "[TIMEOUT_CLEAN_QUEUE]broker busy",
    14: "service not available now. It may be caused by: the broker's disk is full [CL: 0.95]",
    16: "the broker[127.0.0.1] sending message is forbidden",
    17: "topic[x] not exist, apply first please!",
    1: "org.apache.rocketmq.acl.common.AclException: check signature failed.",
    13: "the message body size over max value, MAX: 4194304",
}


def hostile_capture(folder: Path) -> Path:
    """Write a capture of refused and silent requests with evil names, heartbeats and routes."""
    talk = Talk().open()
    opaque = 0
    for code, remark in REMARKS.items():
        for _ in range(3):
            opaque += 1
            ext = {"a": f"g{EVIL}", "b": f"T{EVIL}", "e": "1", "n": f"b{EVIL}"}
            ext |= {"i": f"UNIQ_KEY\x01{'A' * 30}{opaque:02}\x02KEYS\x01{EVIL}"}
            ext |= {"AccessKey": f"me{EVIL}", "Signature": "s3cret="}
            asked = Command(310, opaque, ext=ext, body=b"x")
            talk.say(0, asked.frame).wait(10 * MILLISECOND)
            talk.say(1, asked.answer(code, remark=f"{remark} {EVIL}").frame)
    body = b'{"clientID":"c\\u001b[2J\\u202e","producerDataSet":[{"groupName":"g\\u001b[31m"}]}'
    talk.say(0, Command(34, 90, body=body).frame)
    talk.say(0, Command(11, 91, ext={"consumerGroup": EVIL, "topic": EVIL, "queueId": "1"}).frame)
    talk.wait(4000 * MILLISECOND).reset(1)
    names = Talk(End("10.0.0.5", 40000), End("10.0.0.9", 9876), isn=(7, 9)).open()
    for opaque, topic in enumerate((EVIL, "T")):
        asked = Command(105, opaque, ext={"topic": topic})
        names.say(0, asked.frame).say(1, asked.answer(17, remark=f"No topic route {EVIL}").frame)
    path = folder / "hostile.pcap"
    path.write_bytes(pcap_of(merged(talk, names.close())))
    return path
