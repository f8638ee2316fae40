"""Messages as JSON by way of structs: what those that are written from bytes must equal."""

from __future__ import annotations

import msgspec

from dissectors.remoting.bodies.body import Body
from dissectors.remoting.bodies.messages import shown_message
from dissectors.remoting.ids.parts import property_parts

NEAR_MS = 1_700_000_000_000
UNIQUE_KEY = "7F0000010B1C18B4AAC20000153E011E"


def shown(body: Body) -> bytes:
    """Return the messages of a body as JSON."""
    messages = []
    for message in body.messages:
        one = shown_message(message, 1 << 22, None, body.sound)
        parts = property_parts(message.properties, message.born_timestamp or NEAR_MS)
        if parts:
            one.parts = parts
        messages.append(one)
    return msgspec.json.encode(messages)
