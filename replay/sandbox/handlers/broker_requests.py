"""Requests about the broker itself: runtime information and settings.

RocketMQ: AdminBrokerProcessor.
"""

from __future__ import annotations

from typing import Final

from dissectors.endpoint import host_and_port_text
from dissectors.foreign import integer_of
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.fastjson.codec import encode_json
from dissectors.remoting.versions import V5_3_3

from ..request import BadRequest, ReceivedRequest, serves, settings_of, settings_text
from ..server import HandlerResponse
from ..state import StateHandlers

_PERMISSION: Final = "brokerPermission"
_SETTINGS_LIMIT: Final = 1000
_NOTHING: Final = (
    *("sendThreadPoolQueueHeadWaitTimeMills", "pullThreadPoolQueueHeadWaitTimeMills"),
    *("queryThreadPoolQueueHeadWaitTimeMills", "pageCacheLockTimeMills", "dispatchBehindBytes"),
    *("timerReadBehind", "timerOffsetBehind", "timerCongestNum", "sendThreadPoolQueueSize"),
    *("pullThreadPoolQueueSize", "queryThreadPoolQueueSize", "msgPutTotalYesterdayMorning"),
    *("msgPutTotalTodayMorning", "msgGetTotalYesterdayMorning", "msgGetTotalTodayMorning"),
    *("litePullThreadPoolQueueSize", "litePullThreadPoolQueueHeadWaitTimeMills"),
)
"""Figures of a real broker's queues and days, which the sandbox has none of."""
_USER_REQUESTS: Final = (
    *(RequestCode.AUTH_CREATE_USER, RequestCode.AUTH_UPDATE_USER, RequestCode.AUTH_DELETE_USER),
    *(RequestCode.AUTH_GET_USER, RequestCode.AUTH_LIST_USER),
)
_ACL_REQUESTS: Final = (
    *(RequestCode.AUTH_CREATE_ACL, RequestCode.AUTH_UPDATE_ACL, RequestCode.AUTH_DELETE_ACL),
    *(RequestCode.AUTH_GET_ACL, RequestCode.AUTH_LIST_ACL),
)


class BrokerHandlers(StateHandlers):
    """Serves requests about one broker."""

    @serves(RequestCode.GET_BROKER_RUNTIME_INFO)
    def runtime(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 28: return runtime figures, as shown by `mqadmin brokerStatus`."""
        state = self._state
        now = state.now_ms()
        seconds = max(1, (now - state.started_ms) // 1000)
        put, got = state.messages_in / seconds, state.messages_out / seconds
        first = state.store.first_ms
        table = {
            **dict.fromkeys(_NOTHING, "0"),
            "bootTimestamp": str(state.started_ms),
            "brokerActive": "true",
            "brokerVersion": str(state.hub.version),
            "brokerVersionDesc": "V" + state.options.server_version.replace(".", "_"),
            "commitLogDirCapacity": "Total : 0.0 B, Free : 0.0 B.",
            "commitLogDiskRatio": f"{state.store.filled:.4f}",
            "commitLogMaxOffset": str(state.store.end_offset),
            "commitLogMinOffset": str(state.store.begin_offset),
            "consumeQueueDiskRatio": "0.0",
            "earliestMessageTimeStamp": str(first if first is not None else -1),
            "getFoundTps": _rates_text(got),
            "getTotalTps": _rates_text(got),
            "getTransferredTps": _rates_text(got),
            "getTransferedTps": _rates_text(got),
            "putTps": _rates_text(put),
            "putMessageTimesTotal": str(state.messages_in),
            "runtime": f"[ 0 days, 0 hours, {seconds // 60} minutes, {seconds % 60} seconds ]",
            "startAcceptSendRequestTimeStamp": "0",
            "timerEnqueueTps": "0.0",
            "timerDequeueTps": "0.0",
        }
        return HandlerResponse(body=encode_json({"table": dict(sorted(table.items()))}))

    @serves(RequestCode.GET_BROKER_CONFIG)
    def config(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 26: return settings, one per line."""
        options = self._state.options
        settings = {
            "autoCreateTopicEnable": str(options.auto_create).lower(),
            "brokerClusterName": options.cluster,
            "brokerId": "0",
            "brokerName": self._state.name,
            _PERMISSION: "6",
            "defaultTopicQueueNums": str(options.auto_create_queues),
            "listenPort": host_and_port_text(self._state.address)[1],
            "maxMessageSize": str(options.max_message_size),
            "messageDelayLevel": options.delay_levels,
            "transactionCheckInterval": str(options.transaction_interval_ms),
            "transactionCheckMax": str(options.transaction_checks),
            "transactionTimeOut": str(options.transaction_timeout_ms),
            **self._state.config,
        }
        fields = {"version": encode_json(self._state.data_version(0)).decode()}
        return HandlerResponse(0, fields, settings_text(settings))

    @serves(RequestCode.UPDATE_BROKER_CONFIG)
    def change(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 25: change settings, of which only brokerPermission has an effect."""
        config = self._state.config
        for name, value in settings_of(request.body):
            if name not in config and len(config) >= _SETTINGS_LIMIT:
                continue
            if name == _PERMISSION and integer_of(value) is None:
                continue  # as in a real broker, an invalid number changes nothing
            config[name] = value
        return HandlerResponse()

    @serves(RequestCode.GET_BROKER_MEMBER_GROUP)
    def members(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 901: return the brokers of a name."""
        if request.text("brokerName") != self._state.name:
            raise BadRequest("no such broker group")
        group = {
            "brokerAddrs": {"0": self._state.address},
            "brokerName": self._state.name,
            "cluster": self._state.options.cluster,
        }
        return HandlerResponse(body=encode_json({"brokerMemberGroup": group}))

    @serves(RequestCode.VIEW_BROKER_STATS_DATA)
    def stats(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 315: return no figures by time, as the sandbox keeps none."""
        name, key = request.text("statsName"), request.text("statsKey")
        raise BadRequest(f"The stats <{name}> <{key}> not exist")

    @serves(RequestCode.GET_ALL_DELAY_OFFSET)
    def delay_offsets(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 45: return the offsets of delay levels, of which the sandbox keeps none."""
        version = {"dataVersion": self._state.data_version(0)} if self._state.options.is_5 else {}
        return HandlerResponse(body=encode_json({**version, "offsetTable": {}}))

    @serves(RequestCode.GET_BROKER_HA_STATUS)
    def ha_status(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 907: describe a master without slaves, as every broker of a sandbox is."""
        client = dict.fromkeys(
            ("lastReadTimestamp", "lastWriteTimestamp", "masterFlushOffset", "maxOffset"), 0
        )
        value = {
            "haClientRuntimeInfo": {**client, "transferredByteInSecond": 0},
            "haConnectionInfo": [],
            "inSyncSlaveNums": 0,
            "master": True,
            "masterCommitLogMaxOffset": self._state.store.end_offset,
        }
        return HandlerResponse(body=encode_json(value))

    @serves(RequestCode.GET_BROKER_EPOCH_CACHE)
    def epochs(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 1007: reject it, as a broker without a controller does."""
        raise BadRequest("this request only for controllerMode ")

    @serves(RequestCode.GET_COLD_DATA_FLOW_CTR_INFO)
    def cold_data(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 2003: return the thresholds of a broker that limits no cold reads."""
        value = {
            "runtimeTable": {},
            "configTable": {},
            "cgColdReadThreshold": 3 * 1024 * 1024,
            "globalColdReadThreshold": 100 * 1024 * 1024,
            "globalAcc": 0,
        }
        return HandlerResponse(body=encode_json(value))

    @serves(*_USER_REQUESTS)
    def users(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 3001 to 3005: reject them, as a broker without authentication does."""
        raise BadRequest("An system error occurred, please try again later.")

    @serves(*_ACL_REQUESTS)
    def acls(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 3006 to 3010: reject them, as a broker without authorization does."""
        what = "authorization" if self._state.options.version > V5_3_3 else "authentication"
        raise BadRequest(
            f"java.lang.IllegalStateException: The {what}MetadataProvider is not configured."
        )

    @serves(
        RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
        RequestCode.CLEAN_UNUSED_TOPIC,
        RequestCode.DELETE_EXPIRED_COMMITLOG,
        RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
        RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
    )
    def done(self, request: ReceivedRequest) -> HandlerResponse:
        """Do nothing."""
        return HandlerResponse()


def _rates_text(rate: float) -> str:
    """Return the rate as the values over 10, 60, and 600 seconds."""
    return f"{rate:.2f} {rate:.2f} {rate:.2f}"
