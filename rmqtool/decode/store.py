"""`rmqtool decode store`: its options and its help; messages are listed as those of captures."""

from __future__ import annotations

from dataclasses import replace

from ..ui import common_options as options
from ..ui.common_options import Order
from ..ui.declared import argument, command_with, declared, derived, option
from ..ui.errors import print_note
from ..ui.option_values import usage_error
from ..ui.status import ExitStatus
from .options import DecodeRequest, View, columns_of_view, sort_of


def _sort_of_store(name: str, wanted: Order | None, view: View, follow: bool) -> Order | None:
    """Return the order of the rows; raise CommandError for one by latency."""
    if wanted is Order.latency:
        raise usage_error(name, "is time or completion: a store has no latencies")
    return sort_of(name, wanted, view, follow)


@declared
class StoreRequest(DecodeRequest):
    """A `decode store` command: list the messages in a copy of a broker's store."""

    folder: str = argument(
        "DIR", "Copy of a broker's store folder, or of its commitlog folder.", "", required=True
    )
    where: str = options.where(example="event == on_disk")
    sort: Order | None = option(
        "Sort by store time, or keep the order of the store (completion).",
        "Filters",
        read=_sort_of_store,
        needs=("view", "follow"),
    )
    output: str = option("Output file.", "Output", "-", metavar="FILE|-")
    columns: tuple[str, ...] = columns_of_view(options.columns("time,event,topic"))
    view: View = derived(lambda: View.list_messages, value=View.list_messages)


_NOT_STORED = (
    *("sources", "commands", "verbose", "summary", "follow_conversation", "messages"),
    *("list_messages", "check", "fail_on", "decode_as", "tls_keylog", "max_ratio"),
    *("no_message_rows", "partition", "follow", "jobs", "max_output"),
)
"""options of `decode pcap` that `decode store` does not have"""


def _run(request: StoreRequest) -> ExitStatus:
    """List the messages in a copy of a broker's store.

    Also lists commits and rollbacks of half messages, and group offsets.
    The store is read offline and never written. Stop the broker, or copy its
    folder: a file that is being written may end inside a message.

    Examples:
      rmqtool decode store store/
      rmqtool decode store store/ -Y 'topic = Orders and keys = order-4711'
      rmqtool decode store store/ -Y 'event = rolled_back or covers = before'
      rmqtool decode store store/ --since 10:00 --body-limit 1KiB -T jsonl
      rmqtool decode store store/ -T parquet -o messages.parquet

    More: rmqtool help store.
    """
    from dissectors.broker_store.store_decode import StoreDecode
    from dissectors.broker_store.store_folder import store_in

    from .message_lines import stored_messages
    from .run import decode_options, run_decode

    store = StoreDecode(store_in(request.folder), decode_options(request))
    request = replace(request, sources=store.sources)
    status = run_decode(request, store, stored_messages(request, store))
    for line in () if request.quiet else store.store.notes:
        print_note(line)
    return status


decode_store = command_with(StoreRequest, _run, _NOT_STORED)
