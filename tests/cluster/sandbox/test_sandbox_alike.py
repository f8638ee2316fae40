"""The sandbox answers as a real broker does: the same requests to both, compared.

Compared are response code, names of the ext fields, remark, the members of JSON bodies, and of
messages all but ids and times.
Where they differ on purpose, the step says why.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest

from dissectors.remoting.bodies.registry import decode_body
from dissectors.remoting.messages.records import decode_messages
from replay.sandbox import SandboxOptions, sandbox_thread
from tests.cluster.fixtures import skip_or_fail
from tests.cluster.servers.artifacts import NEWEST_4_SERVER, NEWEST_5, Unavailable
from tests.cluster.servers.cluster import CLUSTER_NAME, BrokerSpec, Cluster
from tests.replay.sandbox.talk import Reply, Talk

from .alike_steps import Asked, broker_steps, namesrv_steps

pytestmark = pytest.mark.cluster

ON_PURPOSE = {
    "pull sql": "the cluster of the tests has SQL filters on, the sandbox has none",
    "370 bad": "a broker takes nothing back unless recallMessageEnable is set",
}
ONLY_REMARK = {
    "send empty body": "a NullPointerException",
    "send header missing": "a NullPointerException",
    "37 bad": "a NullPointerException",
}
OTHER_MEMBERS = {"317", "317 order", "45"}
"""Members named after groups, of which a broker has some of its own; offsets by delay level."""
ONLY_CODE = {"pop many", "pop nope"}
"""Error answers to which a broker adds the empty fields of its header."""


def answers(address: str, steps: Callable[[], Iterator[Asked]]) -> dict[str, Reply]:
    """Name of a step → its answer; what the server asks in between is left unanswered."""
    found = {}
    with Talk(address, 15) as talk:
        for name, code, fields, body in steps():
            talk.send(code, fields, body)
            reply = talk.receive()
            while not reply.flag & 1:
                reply = talk.receive()
            found[name] = reply
            time.sleep(0.3 if code in (310, 320, 10) and reply.code == 0 else 0)
    return found


def seen(name: str, reply: Reply) -> object:
    """What is compared of an answer."""
    if name in ONLY_CODE:
        return reply.code
    remark = re.sub(r"127\.\d+\.\d+\.\d+(:\d+)?", "ADDRESS", reply.remark)
    remark = re.sub(r", org\.apache\..*", "", remark)  # where in Java it was thrown
    if remark == "not set any response code" or name in ONLY_REMARK:
        remark = ""
    return reply.code, sorted(reply.fields), remark, messages_of(reply)


MAPS = frozenset(
    {
        *("topicConfigTable", "subscriptionGroupTable", "offsetTable", "brokerAddrTable"),
        *("clusterAddrTable", "subscriptionTable", "brokerAddrs", "table", "attributes", "data"),
    }
)
"""Members whose own members have names of topics, groups and figures."""


def members(value: object, name: str = "") -> set[str]:
    """Paths of the members of a JSON value."""
    if isinstance(value, dict):
        named = {("*" if name in MAPS else str(key)): item for key, item in value.items()}
        found = {f".{key}" for key in named}
        return found | {
            f".{'*' if name in MAPS else key}{path}"
            for key, item in value.items()
            for path in members(item, "" if name in MAPS else str(key))
        }
    if isinstance(value, list):
        return {path for item in value for path in members(item)}
    return set()


def members_of(code: int, reply: Reply) -> set[str]:
    """Paths of the members of a JSON body."""
    if reply.body[:1] not in (b"{", b"["):
        return set()
    return members(decode_body(code, True, 0, reply.body, {}).value)


def messages_of(reply: Reply) -> list[object]:
    """The messages of a body without what differs from run to run."""
    if reply.body[:1] == b"{" or len(reply.body) < 88:
        return []
    return [
        (
            message.topic,
            message.queue_id,
            message.queue_offset,
            message.sys_flag,
            message.flag,
            message.body,
            message.reconsume_times,
            {name: text for name, text in message.properties.items() if name != "UNIQ_KEY"},
        )
        for message in decode_messages(reply.body).messages
    ]


@pytest.mark.parametrize("version", [NEWEST_4_SERVER, NEWEST_5])
def test_the_sandbox_answers_as_a_broker_does(version: str) -> None:
    network = f"127.77.19{version[0]}"
    cluster = Cluster([BrokerSpec("broker-a")], version=version, network=network)
    try:
        cluster.start()
    except Unavailable as reason:
        skip_or_fail(str(reason))
    options = SandboxOptions(server_version=version, cluster=CLUSTER_NAME)
    try:
        with sandbox_thread(options) as box:
            real = answers(cluster.brokers[0].text, broker_steps)
            ours = answers(box.addresses["broker-a"], broker_steps)
            real |= answers(cluster.namesrvs[0].text, namesrv_steps)
            ours |= answers(box.namesrv, namesrv_steps)
    finally:
        cluster.stop()
    assert len(real) == len(ours) > 110
    differences = [
        f"{name}: ours {seen(name, ours[name])}\n{' ' * len(name)}  real {seen(name, real[name])}"
        for name in real
        if name not in ON_PURPOSE and seen(name, ours[name]) != seen(name, real[name])
    ]
    codes = {name: code for name, code, _, _ in (*broker_steps(), *namesrv_steps())}
    for name, code in codes.items():
        if name in ON_PURPOSE or name in OTHER_MEMBERS:
            continue
        theirs, own = members_of(code, real[name]), members_of(code, ours[name])
        if theirs != own:
            differences.append(
                f"{name}: only ours {sorted(own - theirs)}, only real {sorted(theirs - own)}"
            )
    if differences:
        pytest.fail("\n".join(differences))
