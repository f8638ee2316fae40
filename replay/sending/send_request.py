"""The request of a send: the wire format of a message.

A message is prepared once (properties, compression, sysFlag) and gets one `SendRequest` per
attempt; a resend has another queue, time, and opaque, but the same UNIQ_KEY.
RocketMQ: DefaultMQProducerImpl.sendKernelImpl, MQClientAPIImpl.sendMessage, MessageDecoder,
SendMessageRequestHeaderV2.encode, RemotingCommand.encodeHeader, RocketMQSerializable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from dissectors.foreign import integer_of
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.command import ONEWAY_FLAG, ROCKETMQ, RemotingCommand
from dissectors.remoting.framing.frame import encode_frame
from dissectors.remoting.header_codec import BINARY_TYPE, JSON_TYPE, encode_header
from dissectors.remoting.messages.batch import BatchItem, encode_batch
from dissectors.remoting.messages.compression import compress
from dissectors.remoting.messages.properties import encode_properties
from dissectors.remoting.send_fields import send_fields_of
from dissectors.remoting.sysflag import COMPRESSION_TYPES, PREPARED, SysFlag
from dissectors.remoting.topic_names import RETRY_PREFIX
from dissectors.remoting.versions import V4_9_0, V4_9_4, V4_9_5, V5_0_0, V5_2_0

from ..config import ProducerConfig
from ..message import UNIQ_KEY, Message, MessageQueue
from ..namespace import wrap_namespace
from ..unique_id import UniqueIds

# This is the hot path: the constant parts for a queue are encoded once, in templates. Ext fields
# are made only for signing and hooks. Both ways produce identical frames.
_VARYING: Final = slice(5, 9)
"""sysFlag, bornTimestamp, flag and properties among `SendFields`, in either version"""
_encode_json: Final = msgspec.json.Encoder().encode


class JsonTemplate:
    """The common parts of the JSON headers of all requests to one queue."""

    __slots__ = ("_end", "_parts")

    def __init__(self, command: RemotingCommand) -> None:
        names = list(command.ext_fields)[_VARYING]
        members = [f'"{name}":{quoted(text)}' for name, text in command.ext_fields.items()]
        # split around _VARYING: its values are put between quotes, but properties have their own
        before = "".join(member + "," for member in members[:5])
        after = "".join("," + member for member in members[9:])
        self._parts = (
            f'{{"code":{command.code},"extFields":{{{before}"{names[0]}":"',
            f'","{names[1]}":"',
            f'","{names[2]}":"',
            f'","{names[3]}":',
            f'{after}}},"flag":{command.flag},"language":{quoted(command.language)},"opaque":',
        )
        self._end = f',"serializeTypeCurrentRPC":"JSON","version":{command.version}}}'

    def header(self, message: Prepared, born_ms: int, opaque: int) -> bytes:
        """Return the header of one request."""
        head, born, flag, properties, tail = self._parts
        return (
            f"{head}{message.sys_flag}{born}{born_ms}{flag}{message.flag}{properties}"
            f"{message.properties_json}{tail}{opaque}{self._end}"
        ).encode()


class BinaryTemplate:
    """The common parts of the binary headers of all requests to one queue."""

    __slots__ = ("_after", "_before", "_head", "_keys", "_length", "_tail")

    def __init__(self, command: RemotingCommand) -> None:
        entries = [_entry(name, text) for name, text in command.ext_fields.items()]
        fixed = encode_header(
            RemotingCommand(
                command.code,
                0,
                command.flag,
                command.language,
                command.version,
                serialize_type=ROCKETMQ,
            )
        )
        # code 2, language 1, version 2 bytes; then opaque 4; then flag 4, remark length 4 (0)
        self._before, self._after = fixed[:5], fixed[9:17]
        self._head, self._tail = b"".join(entries[:5]), b"".join(entries[9:])
        names = list(command.ext_fields)[_VARYING]
        self._keys = tuple(len(name).to_bytes(2, "big") + name.encode() for name in names)
        lengths = sum(len(key) + 4 for key in self._keys)
        self._length = len(self._head) + len(self._tail) + lengths

    def header(self, message: Prepared, born_ms: int, opaque: int) -> bytes:
        """Return the header of one request."""
        values = (
            b"%d" % message.sys_flag,
            b"%d" % born_ms,
            b"%d" % message.flag,
            message.properties.encode("utf-8", "surrogatepass"),
        )
        length = self._length
        number = (opaque & 0xFFFFFFFF).to_bytes(4, "big")
        parts = [
            self._before,
            number,
            self._after,
            # placeholder: the length of all ext fields is known at the end
            b"",
            self._head,
        ]
        for key, value in zip(self._keys, values, strict=True):
            parts += (key, len(value).to_bytes(4, "big"), value)
            length += len(value)
        parts[3] = length.to_bytes(4, "big")
        parts.append(self._tail)
        return b"".join(parts)


def _entry(name: str, text: str) -> bytes:
    key, value = name.encode(), text.encode("utf-8", "surrogatepass")
    return len(key).to_bytes(2, "big") + key + len(value).to_bytes(4, "big") + value


def quoted(text: str) -> str:
    """Return a text quoted as JSON."""
    return _encode_json(text).decode()


SEND_MESSAGE: Final = int(RequestCode.SEND_MESSAGE)
SEND_MESSAGE_V2: Final = int(RequestCode.SEND_MESSAGE_V2)
SEND_BATCH_MESSAGE: Final = int(RequestCode.SEND_BATCH_MESSAGE)
SEND_REPLY_MESSAGE: Final = int(RequestCode.SEND_REPLY_MESSAGE)
SEND_REPLY_MESSAGE_V2: Final = int(RequestCode.SEND_REPLY_MESSAGE_V2)

_MOST_TEMPLATES: Final = 4096

_TEXTS: Final = ("false", "true")


class Prepared(msgspec.Struct, frozen=True, gc=False):
    """A prepared message, shared by all attempts."""

    topic: str
    """topic as it travels, with its namespace"""
    unique_key: str
    """client's message id; of a batch those of its messages, joined by commas"""
    code: int
    sys_flag: int
    """compression and transaction bits"""
    flag: int
    """the application's flag"""
    properties: str
    properties_json: str
    """the same, quoted as JSON; empty where headers are binary"""
    body: bytes
    """body as it travels, compressed where it was large enough"""
    message_count: int = 1
    reconsume_times: int = 0
    """of a message to a retry topic: deliveries so far"""
    max_reconsume_times: int | None = None
    """of a message to a retry topic: deliveries allowed"""


class SendRequest:
    """The request of one attempt: a prepared message, a queue, a time."""

    __slots__ = (
        "_encoder",
        "_fields",
        "born_ms",
        "broker_name",
        "oneway",
        "prepared",
        "queue",
    )

    def __init__(
        self,
        encoder: SendEncoder,
        prepared: Prepared,
        queue: MessageQueue,
        born_ms: int,
        oneway: bool,
        broker_name: str,
    ) -> None:
        self._encoder = encoder
        self._fields: dict[str, str] | None = None
        self.prepared = prepared
        self.queue = queue
        """where it is to be stored"""
        self.born_ms = born_ms
        """born time of the attempt, ms since the epoch"""
        self.oneway = oneway
        """whether the request is oneway"""
        self.broker_name = broker_name
        """broker name in the header"""

    @property
    def code(self) -> int:
        """Request code."""
        return self.prepared.code

    @property
    def body(self) -> bytes:
        """Encoded body."""
        return self.prepared.body

    def fields(self) -> dict[str, str]:
        """Return the ext fields; changes (by hooks or a signature) affect the request."""
        if self._fields is None:
            self._fields = self._encoder.fields_of(self)
        return self._fields

    def command(self, opaque: int) -> RemotingCommand:
        """Return the request as a command without its body, which is `body`."""
        config = self._encoder.config
        flag = ONEWAY_FLAG if self.oneway else 0
        return RemotingCommand(
            self.prepared.code,
            opaque,
            flag,
            config.language,
            config.client_version,
            None,
            self.fields(),
            config.serialize_type,
        )

    def encode(self, opaque: int) -> bytes:
        """Return the request as a frame. Raises ValueError if it is over the frame limit."""
        if self._fields is None:
            return self._encoder.encode(self, opaque)
        return self._encoder.encode_fields(self, opaque)


_Key = tuple[MessageQueue, str, str, int, bool]


class SendEncoder:
    """Encodes the requests of one producer."""

    def __init__(self, config: ProducerConfig, ids: UniqueIds) -> None:
        self.config = config
        """says how requests are written"""
        self.type = BINARY_TYPE if config.serialize_type == ROCKETMQ else JSON_TYPE
        """serialization type of the headers"""
        self._group = wrap_namespace(config.namespace, config.group)
        # whether properties end with a separator, too
        self._final_separator = not V4_9_0 < config.client_version < V5_2_0
        self._ids = ids
        self._templates: dict[_Key, JsonTemplate | BinaryTemplate] = {}

    def prepare(self, message: Message, now_ms: int, *, half: bool = False) -> Prepared:
        """Prepare a message for the wire; set its UNIQ_KEY if it has none.

        `half`: the message opens a transaction. Raises ValueError if a property has a separator.
        """
        config = self.config
        unique_key = message.properties.get(UNIQ_KEY)
        if unique_key is None:
            unique_key = message.properties[UNIQ_KEY] = self._ids.next(now_ms)
        properties = _properties_of(message)
        if half:
            # as Java: a half message is not delayed
            properties.pop("DELAY", None)
            properties["TRAN_MSG"] = "true"
            properties["PGROUP"] = self._group
        body = message.body
        sys_flag = PREPARED if half or properties.get("TRAN_MSG") == "true" else 0
        if len(body) >= config.compress_over:
            # as Java: also if that makes it larger
            body = compress(body, config.compress_type, config.compress_level)
            sys_flag |= SysFlag.COMPRESSED.value
            if config.client_version >= V4_9_4:  # older clients do not name the type
                sys_flag |= COMPRESSION_TYPES[config.compress_type]
        code = SEND_MESSAGE_V2 if config.smart_msg else SEND_MESSAGE
        if properties.get("MSG_TYPE") == "reply":
            code = SEND_REPLY_MESSAGE_V2 if config.smart_msg else SEND_REPLY_MESSAGE
        return self._prepared(message, properties, unique_key, code, sys_flag, body)

    def prepare_batch(self, messages: Sequence[Message], now_ms: int) -> Prepared:
        """Prepare messages as one batch, each with its UNIQ_KEY; ValueError if that fails."""
        items: list[BatchItem] = []
        for message in messages:
            if UNIQ_KEY not in message.properties:
                message.properties[UNIQ_KEY] = self._ids.next(now_ms)
            properties = _properties_of(message)
            text = encode_properties(properties, final_separator=self._final_separator)
            raw = text.encode("utf-8", "surrogatepass")
            item = BatchItem(message.body, properties, message.flag, raw_properties=raw)
            items.append(item)
        # as Java's MessageBatch: topic and WAIT are of the batch, the rest is in its items
        outer = Message(messages[0].topic, b"", wait_store_ok=messages[0].wait_store_ok)
        if self.config.client_version >= V5_0_0:  # the batch has an id of its own
            outer.properties[UNIQ_KEY] = self._ids.next(now_ms)
        keys = ",".join([message.properties[UNIQ_KEY] for message in messages])
        properties = _properties_of(outer)
        body = encode_batch(items)
        prepared = self._prepared(outer, properties, keys, SEND_BATCH_MESSAGE, 0, body)
        return msgspec.structs.replace(prepared, message_count=len(items))

    def _prepared(
        self,
        message: Message,
        properties: dict[str, str],
        unique_key: str,
        code: int,
        sys_flag: int,
        body: bytes,
    ) -> Prepared:
        topic, namespace = message.topic, self.config.namespace
        if namespace:
            topic = wrap_namespace(namespace, topic)
            properties["INSTANCE_ID"] = namespace
        # Java moves these two from properties to header fields, for retry topics only
        times, most = 0, None
        if topic.startswith(RETRY_PREFIX):
            times = integer_of(properties.pop("RECONSUME_TIME", "0")) or 0
            most = integer_of(properties.pop("MAX_RECONSUME_TIMES", ""))
        text = encode_properties(properties, final_separator=self._final_separator)
        json = "" if self.type == BINARY_TYPE else quoted(text)
        flag = message.flag
        return Prepared(topic, unique_key, code, sys_flag, flag, text, json, body, 1, times, most)

    def request(
        self,
        prepared: Prepared,
        queue: MessageQueue,
        born_ms: int,
        *,
        oneway: bool = False,
        broker_name: str = "",
    ) -> SendRequest:
        """Return the request of one attempt to send to `queue`, made at `born_ms`.

        `broker_name` is the broker's name if it differs from the queue's, as with static topics.
        """
        return SendRequest(self, prepared, queue, born_ms, oneway, broker_name or queue.broker_name)

    def encode(self, request: SendRequest, opaque: int) -> bytes:
        """Return the frame of a request with unchanged ext fields; ValueError over the limit."""
        prepared = request.prepared
        # templates have 0 and no maximum in these fields
        if prepared.reconsume_times or prepared.max_reconsume_times is not None:
            return self.encode_fields(request, opaque)
        key = (request.queue, request.broker_name, prepared.topic, prepared.code, request.oneway)
        template = self._templates.get(key)
        if template is None:
            template = self._template_of(request, key)
        header = template.header(prepared, request.born_ms, opaque)
        return encode_frame(self.type, header, prepared.body)

    def encode_fields(self, request: SendRequest, opaque: int) -> bytes:
        """Return the frame of a request, encoded from its ext fields."""
        header = encode_header(request.command(opaque))
        return encode_frame(self.type, header, request.prepared.body)

    def fields_of(self, request: SendRequest) -> dict[str, str]:
        """Return the ext fields of a request, as Java's header class writes them."""
        config, prepared = self.config, request.prepared
        most = prepared.max_reconsume_times
        values = (  # in the order of SendFields, on which the templates also rely
            self._group,
            prepared.topic,
            config.create_topic_key,
            str(config.default_topic_queue_nums),
            str(request.queue.queue_id),
            str(prepared.sys_flag),
            str(request.born_ms),
            str(prepared.flag),
            prepared.properties,
            str(prepared.reconsume_times),
            _TEXTS[config.unit_mode],
            None if most is None else str(most),
            _TEXTS[prepared.code == SEND_BATCH_MESSAGE],
            request.broker_name if config.client_version >= V4_9_5 else None,
        )
        pairs = zip(send_fields_of(prepared.code), values, strict=True)
        return {name: value for name, value in pairs if value is not None}

    def _template_of(self, request: SendRequest, key: _Key) -> JsonTemplate | BinaryTemplate:
        """Create the template of a new key; the cache is small, as there are few queues."""
        if len(self._templates) >= _MOST_TEMPLATES:
            self._templates.clear()
        fields = self.fields_of(request)
        flag = ONEWAY_FLAG if request.oneway else 0
        command = RemotingCommand(
            request.code, 0, flag, self.config.language, self.config.client_version, None, fields
        )
        binary = self.type == BINARY_TYPE
        template = BinaryTemplate(command) if binary else JsonTemplate(command)
        self._templates[key] = template
        return template


def _properties_of(message: Message) -> dict[str, str]:
    """Return all properties of a message, in encoding order."""
    properties = dict(message.properties)
    if message.tags:
        properties["TAGS"] = message.tags
    if message.keys:
        properties["KEYS"] = message.keys
    if message.wait_store_ok is not None:
        properties["WAIT"] = _TEXTS[message.wait_store_ok]
    return properties
