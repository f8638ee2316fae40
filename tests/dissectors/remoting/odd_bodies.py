"""Bodies that are not as Java writes them, and what RocketMQ's own classes make of each.

`odd_bodies.json` has what RemotingSerializable.decode of three releases answered. Run
`python -m tests.dissectors.remoting.odd_bodies` (needs Java) to write it again; `test_java_oracle`
holds it to the classes.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.cluster.clients.oracle import Refusal, decode_bodies
from tests.cluster.servers.artifacts import NEWEST_4_SERVER, NEWEST_5

VECTORS = Path(__file__).with_suffix(".json")
RELEASES = (NEWEST_4_SERVER, "5.3.3", NEWEST_5)

HEARTBEAT = "heartbeat.HeartbeatData"
LOCK = "body.LockBatchRequestBody"
DOTNET = (
    '{"ClientID":"10.0.0.5@85176","ConsumerDataSet":[{"GroupName":"G","ConsumeType":'
    '"CONSUME_PASSIVELY","MessageModel":"CLUSTERING","ConsumeFromWhere":"CONSUME_FROM_LAST_OFFSET",'
    '"SubscriptionDataSet":[{"Topic":"T","SubString":"*","SubVersion":5,"TagsSet":[],"CodeSet":[]}],'
    '"UnitMode":true}],"ProducerDataSet":[{"GroupName":"P"}]}'
)
"""A heartbeat of a real client in .NET."""
BODIES = (
    (HEARTBEAT, DOTNET),
    (HEARTBEAT, DOTNET.lower()),
    (HEARTBEAT, DOTNET.replace("GroupName", "group_name").replace("ClientID", "client-id")),
    (HEARTBEAT, '{"clientID":"c","ConsumerDataSet":[{"GroupName":"G"}],"producerDataSet":[]}'),
    (HEARTBEAT, '{"clientID":"c","consumerDataSet":[{"groupName":"G","isUnitMode":true}]}'),
    (HEARTBEAT, '{"clientId":"c","producerDataSet":[{"groupName":"a"}]}'),
    (HEARTBEAT, '{"clientID":"c","producerDataSet":[{"groupName":5}]}'),
    (HEARTBEAT, '{"clientID":"c","producerDataSet":{"groupName":"a"}}'),
    (HEARTBEAT, '{"clientID":"c","producerDataSet":[{"groupName":null}]}'),
    (HEARTBEAT, '{"clientID":"c","producerDataSet":[{"groupName":"a","GroupName":"b"}]}'),
    (HEARTBEAT, '\n  {"clientID":"c","producerDataSet":[{"groupName":"a"}],"more":{"x":1}}'),
    (LOCK, '{"ClientId":"c","ConsumerGroup":"G","MqSet":[{"Topic":"T","QueueId":1}]}'),
    (LOCK, '{"clientId":"c","consumer_group":"G","mqSet":[{"topic":"T","queue-id":1}]}'),
)


def answers_of(release: str) -> list[dict[str, object] | None]:
    """What a release makes of the bodies; None where it refuses one."""
    found = decode_bodies([(name, text.encode()) for name, text in BODIES], release)
    return [None if one is None or isinstance(one, Refusal) else json.loads(one) for one in found]


def recorded() -> list[list[dict[str, object] | None]]:
    """For each of `RELEASES` what it makes of each body."""
    columns: list[list[dict[str, object] | None]] = json.loads(VECTORS.read_text())
    return columns


if __name__ == "__main__":
    LINES = [json.dumps(answers_of(release)) for release in RELEASES]
    VECTORS.write_text("[\n" + ",\n".join(LINES) + "\n]\n")
