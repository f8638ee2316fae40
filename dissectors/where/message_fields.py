"""Filter fields of messages: the columns of `MessageRecord`, and aliases.

Rules: a name that exchange filters also have means the same for messages.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ..rows.message_record import EVENTS, MESSAGE_COLUMNS
from ..rows.outcome import is_failure
from .fields import ALIASES, Alias, FieldSet, exchange_fields, named_end, with_aliases


def _present(*names: object) -> object:
    return [name for name in names if name is not None]


def _ids(unique_key: object, offset_msg_id: object, keys: object) -> object:
    each = keys.split() if isinstance(keys, str) else ()
    return [name for name in (unique_key, offset_msg_id, *each) if name is not None]


_EXCHANGE_ALIASES: Final = {alias.name: alias for alias in ALIASES}
_SAME: Final = ("latency", "request", "operation", "response", "answer", "code", "queue", "note")
MESSAGE_ALIASES: Final = (
    *(_EXCHANGE_ALIASES[name] for name in _SAME),
    Alias("id", "unique key, offset message id, and each of the keys",
          ("unique_key", "offset_msg_id", "keys"), _ids, "list"),
    Alias("group", "producer group and consumer group",
          ("producer_group", "consumer_group"), _present, "list"),
    Alias("broker", "name of the broker, and its address with and without port",
          ("broker_name", "server_address"), named_end, "list"),
    _EXCHANGE_ALIASES["client"],
    _EXCHANGE_ALIASES["ip"],
    Alias("failed", "whether the response is an error", ("response_name",), is_failure, "bool"),
)  # fmt: skip
"""All aliases, in the order of tables."""


def message_fields() -> FieldSet:
    """Return the filter fields of messages."""
    fields = with_aliases(MESSAGE_COLUMNS, MESSAGE_ALIASES)
    fields["event"] = replace(fields["event"], known=lambda: EVENTS)
    elsewhere = dict.fromkeys(exchange_fields().names, "only exchanges have it")
    return FieldSet(fields.values(), None, elsewhere)
