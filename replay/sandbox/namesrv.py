"""The NameServer of the sandbox: routes of its own brokers and of registered ones.

Own brokers need no registration: their tables are read on each request, so a topic has its route at
once.
RocketMQ: RouteInfoManager, ClientRequestProcessor, DefaultRequestProcessor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from dissectors.remoting.bodies.registry import decode_body, encode_body
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.fastjson.codec import encode_json
from dissectors.remoting.versions import V4_9_4

from .clients import NAME_LIMIT
from .configs import WRITE, TopicConfig, TopicTable, topic_of_value
from .events import EventKind, Events
from .injection.injector import Injector
from .options import SandboxOptions
from .request import BadRequest, ReceivedRequest, handlers_of, serves, settings_of, settings_text
from .room import BoundedTable, Room, room_of, weight_of
from .server import Connection, HandlerResponse, Hub
from .service import SandboxServer

NAME: Final = "namesrv"
_STANDARD_JSON_SINCE: Final = V4_9_4
_REGISTERED_LIMIT: Final = 1000
_VALUES_LIMIT: Final = 10_000
_LONGEST_VALUE: Final = 65_536
_ADDRESSES_LIMIT: Final = 100
_SETTINGS: Final = {
    "clusterTest": "false",
    "configStorePath": "",
    "kvConfigPath": "",
    "orderMessageEnable": "false",
    "productEnvName": "center",
    "rocketmqHome": "",
    "serverAsyncSemaphoreValue": "64",
    "serverCallbackExecutorThreads": "0",
    "serverChannelMaxIdleTimeSeconds": "120",
    "serverOnewaySemaphoreValue": "256",
    "serverPooledByteBufAllocatorEnable": "true",
    "serverSelectorThreads": "3",
    "serverSocketBacklog": "1024",
    "serverSocketRcvBufSize": "0",
    "serverSocketSndBufSize": "0",
    "serverWorkerThreads": "8",
    "useEpollNativeSelector": "false",
    "writeBufferHighWaterMark": "0",
    "writeBufferLowWaterMark": "0",
}
"""settings of a NameServer with their defaults; paths are empty, as there are none"""
_SETTINGS_OF_5: Final = {
    "clientRequestThreadPoolNums": "8",
    "clientRequestThreadPoolQueueCapacity": "50000",
    "configBlackList": "configBlackList;configStorePath;kvConfigPath",
    "defaultThreadPoolNums": "16",
    "defaultThreadPoolQueueCapacity": "10000",
    "deleteTopicWithBrokerRegistration": "false",
    "enableAllTopicList": "true",
    "enableControllerInNamesrv": "false",
    "enableShutdownGracefully": "false",
    "enableTopicList": "true",
    "needWaitForService": "false",
    "notifyMinBrokerIdChanged": "false",
    "returnOrderTopicConfigToBroker": "true",
    "scanNotActiveBrokerInterval": "5000",
    "serverNettyWorkerGroupEnable": "true",
    "shutdownWaitTimeSeconds": "30",
    "supportActingMaster": "false",
    "unRegisterBrokerQueueCapacity": "3000",
    "waitSecondsForService": "45",
}
_FIXED_SETTINGS: Final = frozenset({"configBlackList", "configStorePath", "kvConfigPath"})
"""settings that no request changes"""


@dataclass(slots=True)
class Registered:
    """A registered broker."""

    cluster: str
    name: str
    addresses: BoundedTable[int, str]
    """broker id → `ip:port`; 0 is the master"""
    topics: TopicTable
    listed: Callable[[], bool] = field(default=lambda: True)
    """whether routes name it, now"""
    perm: Callable[[], int] = field(default=lambda: 6)
    """what may be done with its topics, now"""
    connection: Connection | None = None
    """where it registered from; None for a broker of this process"""

    @property
    def size(self) -> int:
        """Memory in bytes, without its addresses and topics."""
        return weight_of(self.cluster, self.name)


class NameServer(SandboxServer):
    """Serves topic routes."""

    def __init__(
        self, options: SandboxOptions, hub: Hub, injector: Injector, now_ms: Callable[[], int]
    ) -> None:
        super().__init__(hub, injector, Events(options.on_event, now_ms, NAME))
        self._options = options
        self._room = room_of(options.store_limit)
        self._brokers = BoundedTable[str, Registered](self._room, lambda _, broker: broker.size)
        self._values = BoundedTable[tuple[str, str], str](
            self._room, lambda key, value: weight_of(*key, value)
        )
        self._wiped: set[str] = set()
        self._config = _SETTINGS | (_SETTINGS_OF_5 if options.is_5 else {})
        self.handlers = handlers_of(self)

    def add(self, broker: Registered) -> None:
        """Add a broker."""
        self._brokers.put(broker.name, broker)

    def closed(self, connection: Connection) -> None:
        """Handle a closed connection; unregister its broker, if it was one."""
        for broker in list(self._brokers.values()):
            if broker.connection is connection:
                self._forget(broker)
        super().closed(connection)

    def _forget(self, broker: Registered) -> None:
        self._brokers.drop(broker.name)
        self._wiped.discard(broker.name)
        broker.topics.empty()
        broker.addresses.empty()

    def note_success(self, request: ReceivedRequest, response: HandlerResponse) -> None:
        """Emit an event."""
        self._note(EventKind.REQUEST, request, response)

    def _response_to(self, error: Exception, request: ReceivedRequest) -> HandlerResponse:
        if isinstance(error, ValueError):  # a response over the frame limit
            return HandlerResponse(ResponseCode.SYSTEM_ERROR, remark=str(error))
        return super()._response_to(error, request)

    # -- routes ---------------------------------------------------------------------------------

    @serves(RequestCode.GET_ROUTEINFO_BY_TOPIC)
    def route(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 105: return brokers and queues of a topic."""
        topic = request.text("topic")
        brokers, queues = [], []
        for broker in self._listed():
            config = broker.topics.get(topic)
            if config is None:
                continue
            # 1 (inherit) is of the topic alone
            perm = config.perm & (broker.perm() | 1)
            if broker.name in self._wiped:
                perm &= ~WRITE
            brokers.append(self._broker_data(broker))
            queues.append(_queue_data(broker, replace(config, perm=perm)))
        if not queues:
            raise BadRequest(
                f"No topic route info in name server for the topic: {topic}{self._options.faq}",
                ResponseCode.TOPIC_NOT_EXIST,
            )
        value = {"brokerDatas": brokers, "filterServerTable": {}, "queueDatas": queues}
        standard = request.command.version >= _STANDARD_JSON_SINCE or request.flag(
            "acceptStandardJsonOnly"
        )
        return HandlerResponse(
            body=encode_body(
                RequestCode.GET_ROUTEINFO_BY_TOPIC, True, value, standard_json=standard
            ),
        )

    def readable_queues(self, topic: str) -> list[tuple[str, int]]:
        """Return (broker, readable queues) of a topic, by broker name."""
        configs = [(broker.name, broker.topics.get(topic)) for broker in self._listed()]
        return sorted((name, config.read_queues) for name, config in configs if config is not None)

    def _listed(self) -> list[Registered]:
        return [broker for broker in self._brokers.values() if broker.listed()]

    @serves(RequestCode.GET_BROKER_CLUSTER_INFO)
    def cluster(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 106: return every broker."""
        clusters: dict[str, list[str]] = {}
        for broker in self._listed():
            clusters.setdefault(broker.cluster, []).append(broker.name)
        value = {
            "brokerAddrTable": {
                broker.name: self._broker_data(broker) for broker in self._listed()
            },
            "clusterAddrTable": clusters,
        }
        return HandlerResponse(body=encode_body(RequestCode.GET_BROKER_CLUSTER_INFO, True, value))

    @serves(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    def all_topics(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 206: return the names of all topics."""
        return _topic_list(self._names(self._listed()))

    @serves(RequestCode.GET_TOPICS_BY_CLUSTER)
    def topics_of_cluster(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 224: return the names of the topics of a cluster."""
        cluster = request.text("cluster")
        return _topic_list(self._names(b for b in self._listed() if b.cluster == cluster))

    @serves(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)
    def system_topics(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 304: return cluster and broker names, which are topics as well."""
        names = {name for broker in self._listed() for name in (broker.cluster, broker.name)}
        first = next((broker.addresses[min(broker.addresses)] for broker in self._listed()), None)
        value = {"topicList": sorted(names)}
        return HandlerResponse(body=encode_json({**value, "brokerAddr": first} if first else value))

    def _broker_data(self, broker: Registered) -> dict[str, object]:
        return {
            "brokerAddrs": {str(key): value for key, value in sorted(broker.addresses.items())},
            "brokerName": broker.name,
            "cluster": broker.cluster,
            **({"enableActingMaster": False} if self._options.is_5 else {}),
        }

    @staticmethod
    def _names(brokers: Iterable[Registered]) -> set[str]:
        return {config.name for broker in brokers for config in broker.topics}

    # -- values, registration -------------------------------------------------------------------

    @serves(RequestCode.PUT_KV_CONFIG)
    def put_value(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 100: store a value of a name space."""
        key = (request.text("namespace"), request.text("key"))
        value = request.text("value")
        full = key not in self._values and len(self._values) >= _VALUES_LIMIT
        too_long = max(map(len, (*key, value))) > _LONGEST_VALUE
        if full or too_long or not self._values.put(key, value):
            raise BadRequest("there are too many values, or this one is too long")
        return HandlerResponse()

    @serves(RequestCode.GET_KV_CONFIG)
    def get_value(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 101: return a value of a name space."""
        value = self._values.get((request.text("namespace"), request.text("key")))
        if value is None:
            raise BadRequest(
                f"No config item, Namespace: {request.text('namespace')} "
                f"Key: {request.text('key')}",
                ResponseCode.QUERY_NOT_FOUND,
            )
        return HandlerResponse(0, {"value": value})

    @serves(RequestCode.DELETE_KV_CONFIG)
    def delete_value(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 102: remove a value of a name space."""
        self._values.drop((request.text("namespace"), request.text("key")))
        return HandlerResponse()

    @serves(RequestCode.GET_KVLIST_BY_NAMESPACE)
    def values(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 219: return all values of a name space."""
        namespace = request.text("namespace")
        table = {key: value for (name, key), value in self._values.items() if name == namespace}
        if not table:
            raise BadRequest(
                f"No config item, Namespace: {namespace}", ResponseCode.QUERY_NOT_FOUND
            )
        return HandlerResponse(body=encode_json({"table": table}))

    @serves(RequestCode.REGISTER_BROKER)
    def register(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 103: add a broker of another process, with its topics."""
        name, address = request.text("brokerName"), request.text("brokerAddr")
        registered = self._brokers.get(name)
        if registered is not None and registered.connection is None:
            raise BadRequest(f"the name {name} belongs to a broker of this sandbox")
        number = request.number("brokerId")
        if (registered is None and len(self._brokers) >= _REGISTERED_LIMIT) or (
            registered is not None
            and number not in registered.addresses
            and len(registered.addresses) >= _ADDRESSES_LIMIT
        ):
            raise BadRequest("there are too many brokers")
        if max(len(name), len(address), len(request.text("clusterName"))) > NAME_LIMIT:
            raise BadRequest("the name of the broker, its address, or its cluster is too long")
        configs = _registered_topics(request)
        if registered is not None:
            # first: the new topics may need the room of the old ones
            registered.topics.empty()
        topics = TopicTable(self._room)
        for config in configs:
            topics.put(config)
        if registered is None:
            registered = Registered(
                request.text("clusterName"), name, addresses_in(self._room), topics
            )
            if not self._brokers.put(name, registered):
                topics.empty()
                raise BadRequest("there are too many brokers")
            self.tell(EventKind.CLIENT, request.connection, f"broker {name} at {address}")
        registered.connection = request.connection
        registered.topics = topics
        if not registered.addresses.put(number, address):
            if not registered.addresses:
                self._forget(registered)
            raise BadRequest("there are too many brokers")
        return HandlerResponse(
            0, {"haServerAddr": "", "masterAddr": registered.addresses.get(0, address)}
        )

    @serves(RequestCode.UNREGISTER_BROKER)
    def unregister(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 104: remove a broker of another process."""
        registered = self._brokers.get(request.text("brokerName"))
        if registered is not None and registered.connection is not None:
            registered.addresses.drop(request.number("brokerId"))
            if not registered.addresses:
                self._forget(registered)
        return HandlerResponse()

    @serves(RequestCode.QUERY_DATA_VERSION)
    def data_version(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 322: report that topics must always be registered."""
        return HandlerResponse(0, {"changed": "true"})

    @serves(RequestCode.WIPE_WRITE_PERM_OF_BROKER)
    def wipe(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 205: remove the write permission of a broker."""
        self._wiped.add(self._known(request))
        return HandlerResponse(0, {"wipeTopicCount": "0"})

    @serves(RequestCode.ADD_WRITE_PERM_OF_BROKER)
    def unwipe(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 327: restore the write permission of a broker."""
        self._wiped.discard(self._known(request))
        return HandlerResponse(0, {"addTopicCount": "0"})

    def _known(self, request: ReceivedRequest) -> str:
        name = request.text("brokerName")
        if name not in self._brokers:
            raise BadRequest(f"no broker {name}")
        return name

    @serves(RequestCode.GET_NAMESRV_CONFIG)
    def config(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 319: return settings, one per line."""
        return HandlerResponse(body=settings_text(self._config))

    @serves(RequestCode.UPDATE_NAMESRV_CONFIG)
    def change(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 318: change existing settings, without any effect here."""
        settings = dict(settings_of(request.body))
        if not _FIXED_SETTINGS.isdisjoint(settings):
            where = "in black list." if self._options.is_5 else "path"
            raise BadRequest(f"Can not update config {where}", ResponseCode.NO_PERMISSION)
        self._config.update((name, settings[name]) for name in self._config.keys() & settings)
        return HandlerResponse()

    @serves(
        RequestCode.GET_UNIT_TOPIC_LIST,
        RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST,
        RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
    )
    def no_topics(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 311 to 313: return the topics of units, of which a sandbox has none."""
        return _topic_list(())

    @serves(RequestCode.DELETE_TOPIC_IN_NAMESRV, RequestCode.BROKER_HEARTBEAT)
    def done(self, request: ReceivedRequest) -> HandlerResponse:
        """Do nothing: own brokers are read on each request."""
        return HandlerResponse()


def addresses_in(room: Room) -> BoundedTable[int, str]:
    """Return an empty table of the addresses of a broker, by its ids."""
    return BoundedTable(room, lambda _, address: weight_of(address))


def _queue_data(broker: Registered, config: TopicConfig) -> dict[str, object]:
    return {
        "brokerName": broker.name,
        "perm": config.perm,
        "readQueueNums": config.read_queues,
        "topicSysFlag": config.sys_flag,
        "writeQueueNums": config.write_queues,
    }


def _topic_list(names: Iterable[str]) -> HandlerResponse:
    return HandlerResponse(body=encode_json({"topicList": sorted(names)}))


def _registered_topics(request: ReceivedRequest) -> list[TopicConfig]:
    body = decode_body(RequestCode.REGISTER_BROKER, False, 0, request.body, request.fields)
    wrapper = (
        body.value.get("topicConfigSerializeWrapper") if isinstance(body.value, dict) else None
    )
    table = wrapper.get("topicConfigTable") if isinstance(wrapper, dict) else None
    if not isinstance(table, dict):
        raise BadRequest("the body names no topics")
    configs = [topic_of_value(value) for value in table.values() if isinstance(value, dict)]
    return [config for config in configs if config is not None]
