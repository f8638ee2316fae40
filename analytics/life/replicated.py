"""When a message passed to slaves, as far as the replication streams in the input show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from dissectors.endpoint import split_endpoint
from dissectors.replication.passed import passed_at
from dissectors.replication.progress import Replication
from dissectors.rows.message_record import PREPARED, STORED, MessageRecord

from .lanes import REPLICATED

_HA_PORTS = (1, 3)
"""the HA port less the port of the send: beside the listen port, which may be the VIP channel's"""


def replicated_rows(
    rows: Sequence[MessageRecord], replications: Sequence[Replication]
) -> Iterator[MessageRecord]:
    """Give a row for each time that a stored record of the message passed to a slave."""
    for row in rows:
        if row.event not in (STORED, PREPARED) or row.commit_log_offset is None:
            continue
        for one in replications:
            if not _is_of(one.master, row.broker_address):
                continue
            when = passed_at(one.transferred, row.commit_log_offset)
            if when is None or (one.first_offset or 0) > row.commit_log_offset:
                continue
            told = passed_at(one.reported, row.commit_log_offset)
            yield msgspec.structs.replace(
                row,
                event=REPLICATED,
                conversation=one.conversation,
                packet=None,
                time=when,
                client_address=one.slave,
                client_id=None,
                latency_us=None if told is None or told < when else (told - when) // 1000,
                request_name=None,
                response_code=None,
                response_name=None,
                remark=None,
            )


def _is_of(master: str, broker: str) -> bool:
    """Return whether an HA connection is that of the broker with this address."""
    ha, listen = split_endpoint(master), split_endpoint(broker)
    if ha is None or listen is None or ha[0] != listen[0]:
        return False
    return ha[1] - listen[1] in _HA_PORTS
