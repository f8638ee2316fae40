"""A plug-in: rmqtool decode pcap CAPTURE -V --plugin examples/order_bodies.py

It takes bodies of the form ``key=value;key=value`` apart, whatever their topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dissectors.remoting.bodies.custom import MessageBody


def decode_body(message: MessageBody) -> dict[str, str] | None:
    """Return the fields of a body; None for a body of another form."""
    pairs = [part.partition("=") for part in message.body.decode("utf-8", "replace").split(";")]
    if not all(separator for _, separator, _ in pairs):
        return None
    return {name: value for name, _, value in pairs}
