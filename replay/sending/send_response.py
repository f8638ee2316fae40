"""Send responses: how and where a message was stored, or the rejection.

Rules: the codes of `code_sets.STORED` all mean that the broker has the message. A header without
required fields is a broker's error, returned as a text; nothing raises.
RocketMQ: MQClientAPIImpl.processSendResponse, SendMessageResponseHeader.
"""

from __future__ import annotations

from typing import Final

import msgspec

from dissectors.foreign import integer_of
from dissectors.remoting.code_sets import STORED
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.send_fields import DEFAULT_REGION

from ..message import MessageQueue, SendStatus

STATUSES: Final[dict[int, SendStatus]] = {
    code: SendStatus.SEND_OK
    if code == ResponseCode.SUCCESS
    else SendStatus[ResponseCode(code).name]
    for code in STORED
}
"""Response code of a message that the broker has → how it was stored."""


class Stored(msgspec.Struct, frozen=True, gc=False):
    """The fields of a send response."""

    status: SendStatus
    """how the message was stored"""
    queue: MessageQueue
    """where it was stored"""
    queue_offset: int
    """offset in the queue; of a batch that of its first message"""
    offset_msg_id: str
    """broker's message id; several, joined by commas, for a batch"""
    transaction_id: str | None = None
    """id of the transaction of a half message"""
    recall_handle: str | None = None
    """handle that recalls a timer message"""
    region: str = DEFAULT_REGION
    """region of the broker, for traces"""
    trace_on: bool = True
    """whether the broker wants traces"""


def stored_of(response: RemotingCommand, queue: MessageQueue) -> Stored | str | None:
    """Parse the response to a send to `queue`.

    None if its code means a rejection; an error text if the code means stored but the header lacks
    required fields, so the response is unusable.
    """
    status = STATUSES.get(response.code)
    if status is None:
        return None
    get = response.ext_fields.get
    queue_id, offset = integer_of(get("queueId", "")), integer_of(get("queueOffset", ""))
    msg_id = get("msgId")
    if msg_id is None or queue_id is None or offset is None:
        missing = "msgId" if msg_id is None else "queueId" if queue_id is None else "queueOffset"
        return (
            f"the response says that the message is stored, but has no {missing} that can be read"
        )
    if queue_id != queue.queue_id:
        queue = MessageQueue(queue.topic, queue.broker_name, queue_id)
    return Stored(
        status,
        queue,
        offset,
        msg_id,
        get("transactionId"),
        get("recallHandle"),
        get("MSG_REGION") or DEFAULT_REGION,
        get("TRACE_ON") != "false",
    )
