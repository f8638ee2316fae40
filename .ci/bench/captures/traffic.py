"""What the clients of a generated capture say: producers, push consumers and name-server clients.

A role turns the time into calls (a request, its response, how long the server takes). It knows
the protocol's shapes and no TCP. All choices come from the connection's own random generator, so
a capture depends on the seed alone.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

from .frames import Fields, Writer, encode_command, encode_stored_message, stored_crc
from .truth import Truth

EPOCH_MS = 1_700_000_000_000
ONEWAY = 2
RESPONSE = 1

TOPICS = tuple(
    f"{area}-{kind}".encode()
    for area in ("order", "payment", "stock", "user", "coupon", "delivery", "audit", "search")
    for kind in ("created", "changed", "closed", "sync", "event")
)
BROKERS = tuple(bytes((10, 0, 2, number)) + struct.pack(">H", 10911) for number in range(1, 5))
NAMESERVERS = tuple(bytes((10, 0, 3, number)) + struct.pack(">H", 9876) for number in range(1, 3))
PLAIN_BODY = 600
"""bytes of the body of a `PlainProducer`"""
TAGS = (b"TagA", b"TagB", b"created", b"paid", b"cancelled")

Body = tuple[bytes, int]
"""A message body and its stored CRC."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request, and what comes back."""

    request: bytes
    """Frame of the request; empty for a response whose request came before the capture."""
    response: bytes
    """Frame of the response; empty when none comes."""
    delay: int
    """Microseconds until the response; a long one is a parked long poll."""
    from_server: bool = False
    """True when the broker asks."""


def message_bodies(seed: int, count: int = 97) -> list[Body]:
    """Return a pool of message bodies of 60 to 4000 bytes, mostly around 500."""
    rng = random.Random(f"{seed}/bodies")
    pool: list[Body] = []
    for number in range(count):
        size = min(4000, max(60, int(rng.lognormvariate(6.2, 0.75))))
        text = f'{{"order":{number},"buyer":"{rng.getrandbits(64):x}","note":"'
        while len(text) < size:
            text += f"{rng.getrandbits(120):030x} "
        data = (text[: size - 2] + '"}').encode()
        pool.append((data, stored_crc(data)))
    return pool


class Role:
    """What producers, consumers and name-server clients have in common."""

    pause_us = 50_000
    """Mean pause between two bursts."""

    def __init__(
        self,
        rng: random.Random,
        truth: Truth,
        writers: tuple[Writer, Writer],
        client: bytes,
        server: bytes,
        bodies: list[Body],
    ) -> None:
        """Take the two processes (client, server), their endpoints and the pool of bodies."""
        self.rng = rng
        self.truth = truth
        self.client, self.server = writers
        self.bodies = bodies
        self.server_host = server[:4] + b"\0\0" + server[4:]
        self.client_host = client[:4] + b"\0\0" + client[4:]
        self.broker = b"broker-%c" % (96 + server[3])
        self.address = ".".join(map(str, client[:4])).encode()
        self.topic = rng.choice(TOPICS)
        self.group = b"GID_" + self.topic.replace(b"-", b"_")
        self.opaque = rng.randrange(100_000)
        self.server_opaque = rng.randrange(100_000)
        self.position = rng.randrange(1 << 40)
        self.unique = b"%s%04X18B4AAC2" % (client[:4].hex().upper().encode(), rng.getrandbits(16))
        self.counter = 0

    def burst(self, now: int) -> list[Call]:
        """Return the calls that start together at `now` (microseconds since the start)."""
        raise NotImplementedError

    def orphan(self, now: int) -> Call:
        """Return a response whose request was before the capture."""
        self.truth.exchanges["orphan"] += 1
        self.opaque += 1
        return Call(b"", self._respond(0, []), 0)

    def _request(self, code: int, fields: Fields, body: bytes = b"", flag: int = 0) -> bytes:
        self.opaque += 1
        frame = encode_command(self.client, code, flag, self.opaque, fields, b"", body)
        self._count(self.client, code, self.opaque, flag, frame, body)
        return frame

    def _respond(self, code: int, fields: Fields, remark: bytes = b"", body: bytes = b"") -> bytes:
        """Return the response to the latest request."""
        frame = encode_command(self.server, code, RESPONSE, self.opaque, fields, remark, body)
        self._count(self.server, code, self.opaque, RESPONSE, frame, body)
        return frame

    def _count(
        self, writer: Writer, code: int, opaque: int, flag: int, frame: bytes, body: bytes
    ) -> None:
        self.truth.add_command(code, opaque, flag, len(frame) - 4, len(body), writer.binary)

    def _call(self, request: bytes, response: bytes, delay: int = 0) -> Call:
        self.truth.exchanges["answered" if response else "unanswered"] += 1
        return Call(request, response, delay or int(self.rng.lognormvariate(6.5, 0.6)))

    def _properties(self, now: int) -> bytes:
        """Return the property string of a new message, without the end mark of older clients."""
        self.counter = counter = self.counter + 1
        unique = b"%b%08X%04X" % (self.unique, now // 1000, counter & 0xFFFF)
        tag = TAGS[counter % len(TAGS)]
        return b"KEYS\1order-%d\2UNIQ_KEY\1%b\2WAIT\1true\2TAGS\1%b" % (counter, unique, tag)

    def _heartbeat(self, kind: bytes) -> Call:
        entry = b'[{"groupName":"%b"}]' % self.group
        producers, consumers = (entry, b"[]") if kind == b"producer" else (b"[]", entry)
        body = (
            b'{"clientID":"%b@4711","consumerDataSet":%b,"heartbeatFingerprint":0,'
            b'"producerDataSet":%b,"withoutSub":false}'
        ) % (self.address, consumers, producers)
        request = self._request(34, [], body)
        fields = [(b"IS_SUB_CHANGE", b"false"), (b"IS_SUPPORT_HEART_BEAT_V2", b"true")]
        return self._call(request, self._respond(0, fields))


class Producer(Role):
    """Sends: V2 from Java, V1 from Go; some batches, one-way sends and heartbeats."""

    pause_us = 40_000

    def burst(self, now: int) -> list[Call]:
        """Return one to four sends, or a heartbeat."""
        if self.rng.random() < 0.02:
            return [self._heartbeat(b"producer")]
        return [self._send(now) for _ in range(self.rng.randint(1, 4))]

    def _send(self, now: int) -> Call:
        rng = self.rng
        queue = b"%d" % (self.counter & 7)
        body = rng.choice(self.bodies)[0]
        choice = rng.random()
        if choice < 0.01:
            self.truth.exchanges["oneway"] += 1
            return Call(self._send_request(now, queue, body, 310, ONEWAY), b"", 0)
        if choice < 0.03 and self.client.language == b"JAVA":
            request = self._send_request(now, queue, self._batch(now), 320, 0)
        else:
            request = self._send_request(now, queue, body, 310, 0)
        if choice > 0.9995:
            return self._call(request, b"")
        return self._call(request, self._send_response(queue, choice))

    def _batch(self, now: int) -> bytes:
        items = []
        for _ in range(self.rng.randint(2, 5)):
            data = self.rng.choice(self.bodies)[0]
            properties = self._properties(now)
            size = 22 + len(data) + len(properties)
            head = struct.pack(">IIIII", size, 0, 0, 0, len(data))
            items.append(head + data + struct.pack(">H", len(properties)) + properties)
        return b"".join(items)

    def _send_request(self, now: int, queue: bytes, body: bytes, code: int, flag: int) -> bytes:
        born = b"%d" % (EPOCH_MS + now // 1000)
        properties = self._properties(now)
        if self.client.language == b"GO":
            fields = [
                (b"producerGroup", self.group), (b"topic", self.topic), (b"queueId", queue),
                (b"sysFlag", b"0"), (b"bornTimestamp", born), (b"flag", b"0"),
                (b"reconsumeTimes", b"0"), (b"unitMode", b"false"),
                (b"maxReconsumeTimes", b"0"), (b"batch", b"false"),
                (b"defaultTopic", b"TBW102"), (b"defaultTopicQueueNums", b"4"),
                (b"properties", properties),
            ]  # fmt: skip
            return self._request(10 if code == 310 else code, fields, body, flag)
        fields = [
            (b"a", self.group), (b"b", self.topic), (b"c", b"TBW102"), (b"d", b"4"),
            (b"e", queue), (b"f", b"0"), (b"g", born), (b"h", b"0"), (b"i", properties),
            (b"j", b"0"), (b"k", b"false"), (b"m", b"true" if code == 320 else b"false"),
            (b"n", self.broker),
        ]  # fmt: skip
        return self._request(code, fields, body, flag)

    def _send_response(self, queue: bytes, choice: float) -> bytes:
        if choice > 0.995:
            remark = b"[PC_SYNCHRONIZED]broker busy, start flow control for a while"
            return self._respond(2, [], remark)
        if choice > 0.992:
            return self._respond(10, [], b"flush disk timeout")
        self.position += 700
        offset_id = (self.server_host.hex() + f"{self.position:016x}").upper().encode()
        fields = [
            (b"queueId", queue), (b"TRACE_ON", b"true"), (b"MSG_REGION", b"DefaultRegion"),
            (b"msgId", offset_id), (b"queueOffset", b"%d" % (self.position >> 10)),
        ]  # fmt: skip
        return self._respond(0, fields)


class PlainProducer(Producer):
    """Sends of one message of 600 bytes, one at a time: what makes most commands of few bytes."""

    def burst(self, now: int) -> list[Call]:
        """Return one send, whose response comes before the next one."""
        queue = b"%d" % (self.counter & 7)
        body = self.rng.choice(self.bodies)[0][:PLAIN_BODY].ljust(PLAIN_BODY, b".")
        request = self._send_request(now, queue, body, 310, 0)
        return [self._call(request, self._send_response(queue, 0.5))]


class Consumer(Role):
    """Pulls (some are parked by the broker), offsets, heartbeats; the broker notifies."""

    pause_us = 108_000

    def burst(self, now: int) -> list[Call]:
        """Return the pulls of one or two queues and now and then what else a consumer says."""
        choice = self.rng.random()
        if choice < 0.03:
            return [self._heartbeat(b"consumer"), self._consumer_list()]
        if choice < 0.15:
            return [self._commit(), self._query_offset()]
        if choice < 0.16:
            return [self._notification()]
        return [self._pull(now, choice) for _ in range(self.rng.randint(1, 2))]

    def _queue_fields(self) -> Fields:
        queue = b"%d" % self.rng.randrange(8)
        return [(b"consumerGroup", self.group), (b"topic", self.topic), (b"queueId", queue)]

    def _pull(self, now: int, choice: float) -> Call:
        offset = self.position >> 10
        commit = b"%d" % (offset - 64)
        fields = [
            *self._queue_fields(), (b"queueOffset", b"%d" % offset), (b"maxMsgNums", b"32"),
            (b"sysFlag", b"3"), (b"commitOffset", commit), (b"suspendTimeoutMillis", b"15000"),
            (b"subscription", b"*"), (b"subVersion", b"%d" % (EPOCH_MS - 5000)),
            (b"expressionType", b"TAG"), (b"bname", self.broker),
        ]  # fmt: skip
        request = self._request(11, fields)
        if choice < 0.30:
            wait = self.rng.randrange(1_000_000, 15_000_000)
            late = self._pull_response(19, offset, b"PULL_NOT_FOUND", b"")
            return self._call(request, late, wait)
        body = self._stored_messages(now, int(fields[2][1]), offset)
        return self._call(request, self._pull_response(0, offset + 32, b"FOUND", body))

    def _pull_response(self, code: int, offset: int, remark: bytes, body: bytes) -> bytes:
        fields = [
            (b"suggestWhichBrokerId", b"0"), (b"topicSysFlag", b"0"), (b"groupSysFlag", b"0"),
            (b"nextBeginOffset", b"%d" % offset), (b"minOffset", b"0"),
            (b"maxOffset", b"%d" % (offset + 4096)),
        ]  # fmt: skip
        return self._respond(code, fields, remark, body)

    def _stored_messages(self, now: int, queue: int, offset: int) -> bytes:
        """Return stored messages up to 32 KB, which is what a broker gives out at most at once."""
        records: list[bytes] = []
        size = 0
        born = EPOCH_MS + now // 1000 - 3
        while size < 32_000:
            record = encode_stored_message(
                self.topic, queue, offset + len(records), self.position, born,
                self.client_host, self.server_host, self._properties(now),
                self.rng.choice(self.bodies),
            )  # fmt: skip
            self.position += len(record)
            size += len(record)
            records.append(record)
        self.truth.messages_in_pulls += len(records)
        return b"".join(records)

    def _commit(self) -> Call:
        fields = [*self._queue_fields(), (b"commitOffset", b"%d" % (self.position >> 10))]
        self.truth.exchanges["oneway"] += 1
        return Call(self._request(15, fields, flag=ONEWAY), b"", 0)

    def _query_offset(self) -> Call:
        request = self._request(14, self._queue_fields())
        if self.rng.random() < 0.1:
            remark = b"Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
            return self._call(request, self._respond(22, [], remark))
        return self._call(request, self._respond(0, [(b"offset", b"%d" % (self.position >> 10))]))

    def _consumer_list(self) -> Call:
        request = self._request(38, [(b"consumerGroup", self.group)])
        body = b'{"consumerIdList":["%b@4711","10.0.1.250@81"]}' % self.address
        return self._call(request, self._respond(0, [], b"", body))

    def _notification(self) -> Call:
        """NOTIFY_CONSUMER_IDS_CHANGED: a one-way request of the broker, with its own opaque."""
        self.server_opaque += 1
        opaque = self.server_opaque
        fields = [(b"consumerGroup", self.group)]
        frame = encode_command(self.server, 40, ONEWAY, opaque, fields)
        self._count(self.server, 40, opaque, ONEWAY, frame, b"")
        self.truth.exchanges["oneway"] += 1
        return Call(frame, b"", 0, from_server=True)


class NameServerClient(Role):
    """Route queries, some for topics that are not there, and the cluster's members."""

    pause_us = 60_000

    def burst(self, now: int) -> list[Call]:
        """Return one to three queries."""
        return [self._query() for _ in range(self.rng.randint(1, 3))]

    def _query(self) -> Call:
        choice = self.rng.random()
        if choice < 0.05:
            request = self._request(106, [])
            body = (
                b'{"brokerAddrTable":{"broker-a":{"brokerAddrs":{0:"10.0.2.1:10911"},'
                b'"brokerName":"broker-a","cluster":"DefaultCluster"}},'
                b'"clusterAddrTable":{"DefaultCluster":["broker-a"]}}'
            )
            return self._call(request, self._respond(0, [], b"", body))
        topic = self.rng.choice(TOPICS)
        if choice < 0.10:
            request = self._request(105, [(b"topic", b"%RETRY%" + topic)])
            remark = b"No topic route info in name server for the topic: %%RETRY%%%b" % topic
            return self._call(request, self._respond(17, [], remark))
        request = self._request(105, [(b"topic", topic)])
        return self._call(request, self._respond(0, [], b"", self._route()))

    def _route(self) -> bytes:
        brokers = b",".join(
            b'{"brokerAddrs":{0:"10.0.2.%d:10911",1:"10.0.2.%d:10911"},"brokerName":"broker-%c",'
            b'"cluster":"DefaultCluster","enableActingMaster":false}'
            % (number, number + 10, 96 + number)
            for number in range(1, 5)
        )
        queues = b",".join(
            b'{"brokerName":"broker-%c","perm":6,"readQueueNums":8,"topicSysFlag":0,'
            b'"writeQueueNums":8}' % (96 + number)
            for number in range(1, 5)
        )
        return b'{"brokerDatas":[%b],"filterServerTable":{},"queueDatas":[%b]}' % (brokers, queues)
