"""The units of the packages, and who may import whom: section 4 of docs/architecture.md as data."""

from __future__ import annotations

REMOTING_FACTS = tuple(
    f"dissectors.remoting.{name}"
    for name in ("code_names", "code_sets", "codes", "command", "row_bodies", "sysflag", "versions")
)
"""modules of the protocol that most of its folders need"""
ENDPOINT = "dissectors.endpoint"
"""how addresses are written, for all packages"""
ACTIVE_VALUES = tuple(
    f"replay.{name}" for name in ("acl", "config", "errors", "hooks", "message", "namespace")
)
"""modules on top of `replay` that hold values: settings, messages, errors"""
ACTIVE_EDGES = ("replay.unique_id", "replay.validators", "replay.wire_capture")
SANDBOX_VALUES = tuple(
    f"replay.sandbox.{name}" for name in ("clients", "errors", "events", "groups", "long_polling")
) + tuple(
    f"replay.sandbox.{name}"
    for name in ("offsets", "options", "request", "room", "server", "state", "store", "topics")
)
REPORT_CONTRACT = (
    *("analytics.report", "analytics.schema", "analytics.derived", "analytics.sql"),
    *("analytics.kept", "analytics.spark"),
)
DIAGNOSIS = (*REPORT_CONTRACT, "analytics.diagnosis", "analytics.inputs.rows", "dissectors")
ON_FOLDS = (*REPORT_CONTRACT, "analytics.consuming", "analytics.inputs.rows")
FOLDING = ("analytics.reports.folding", "analytics.reports.keyed_folds")
VERSION = "rmqtool.version"
"""the version of the program"""
ERRORS = "rmqtool.errors"
"""what programs catch"""
PLUGINS = "rmqtool.plugins"
"""finds the plug-ins that decode bodies"""
VIEWS = ("rmqtool.ui", "rmqtool.decode", VERSION)

EVERYWHERE = ("dissectors.foreign",)
"""what every unit may import: the guard of what others wrote"""

UNITS: dict[str, tuple[str, ...]] = {
    # dissectors: what knows nothing of the rest
    "dissectors": (),
    **{
        f"dissectors.{leaf}": ()
        for leaf in (
            *("budget", "endpoint", "expert", "facts", "foreign", "histogram", "json_bytes"),
            *(
                "open_files",
                "patterns",
                "plain_json",
                "ports",
                "printable",
                "quantities",
                "table_text",
                "temporary",
                "times",
            ),
        )
    },
    "dissectors.owned_folder": ("dissectors.temporary",),
    # the protocol and the captures do not know each other
    "dissectors.tcp": ("dissectors.budget", "dissectors.expert"),
    "dissectors.tls": ("dissectors.expert",),
    "dissectors.remoting": ("dissectors.remoting",),
    "dissectors.remoting.bodies": (
        "dissectors.remoting",
        "dissectors.table_text",
        "dissectors.budget",
        "dissectors.expert",
        "dissectors.json_bytes",
        "dissectors.plain_json",
    ),
    "dissectors.remoting.header_tables": ("dissectors.table_text",),
    "dissectors.remoting.operation_tables": ("dissectors.table_text",),
    "dissectors.remoting.fastjson": (),
    "dissectors.remoting.ids": (ENDPOINT, "dissectors.remoting.topic_names"),
    "dissectors.remoting.messages": (
        *REMOTING_FACTS,
        "dissectors.table_text",
        "dissectors.remoting.ids",
        "dissectors.budget",
        ENDPOINT,
    ),
    "dissectors.remoting.row_facts": (
        *(f"dissectors.remoting.{name}" for name in ("codes", "code_sets", "send_fields")),
        *(f"dissectors.remoting.{name}" for name in ("broker_addresses", "sysflag")),
        *(f"dissectors.remoting.{name}" for name in ("bodies", "heartbeat")),
        "dissectors.remoting.fastjson",
        "dissectors.remoting.messages",
        "dissectors.facts",
    ),
    "dissectors.remoting.framing": (
        *REMOTING_FACTS,
        "dissectors.remoting.header_codec",
        "dissectors.expert",
    ),
    # HTTP/2 and the calls in it
    "dissectors.http2": (),
    "dissectors.grpc": (
        *("dissectors.http2", "dissectors.table_text"),
        *(f"dissectors.remoting.{name}" for name in ("command", "headers", "row_facts")),
        "dissectors.budget",
    ),
    "dissectors.replication": ("dissectors.expert", "dissectors.histogram"),
    # rows: what is written and filtered, without a capture
    "dissectors.rows": (
        *("dissectors.facts", "dissectors.json_bytes", "dissectors.printable", "dissectors.times"),
        "dissectors.plain_json",
        *(ENDPOINT, "dissectors.histogram"),
        *(
            f"dissectors.remoting.{name}"
            for name in ("broker_addresses", "code_names", "code_sets")
        ),
        *("dissectors.remoting.topic_names", "dissectors.foreign"),
    ),
    "dissectors.where": (
        "dissectors.grpc",
        "dissectors.rows",
        "dissectors.remoting",
        ENDPOINT,
        "dissectors.expert",
        "dissectors.patterns",
        "dissectors.quantities",
        "dissectors.times",
    ),
    # the way of a datum
    "dissectors.conversations": (
        "dissectors.json_bytes",
        "dissectors.plain_json",
        "dissectors.tcp",
        "dissectors.tls",
        "dissectors.remoting",
        "dissectors.replication",
        "dissectors.http2",
        "dissectors.grpc",
        "dissectors.rows",
        ENDPOINT,
        "dissectors.budget",
        "dissectors.expert",
    ),
    "dissectors.message_rows": (
        "dissectors.budget",
        "dissectors.conversations",
        "dissectors.grpc",
        "dissectors.remoting",
        "dissectors.rows",
        "dissectors.expert",
        "dissectors.json_bytes",
        "dissectors.plain_json",
    ),
    "dissectors.decode": (
        "dissectors.budget",
        "dissectors.conversations",
        "dissectors.grpc",
        "dissectors.message_rows",
        "dissectors.tcp",
        "dissectors.tls",
        "dissectors.remoting",
        "dissectors.replication",
        "dissectors.rows",
        "dissectors.where",
        ENDPOINT,
        "dissectors.expert",
        "dissectors.json_bytes",
        "dissectors.owned_folder",
        "dissectors.times",
    ),
    "dissectors.shares": (
        "dissectors.conversations",
        "dissectors.decode",
        "dissectors.tcp",
        "dissectors.expert",
    ),
    "dissectors.processes": (
        "dissectors.budget",
        "dissectors.conversations",
        "dissectors.decode",
        "dissectors.message_rows",
        "dissectors.tcp",
        "dissectors.rows",
        "dissectors.where",
        "dissectors.expert",
        "dissectors.times",
    ),
    # edges: live capture, crafting, other tools
    "dissectors.live": ("dissectors.live",),
    "dissectors.with_scapy": (
        *("dissectors.remoting", "dissectors.tcp", "dissectors.live", "dissectors.expert"),
        "dissectors.ports",
    ),
    "dissectors.wireshark": (
        *("dissectors.remoting", "dissectors.rows", "dissectors.expert", "dissectors.ports"),
    ),
    # replay: values, then connections, the cluster, sending
    **dict.fromkeys(ACTIVE_VALUES, (*ACTIVE_VALUES, "dissectors.remoting")),
    "replay.config": (
        *ACTIVE_VALUES,
        *ACTIVE_EDGES,
        "replay.fault",
        "dissectors.budget",
        "dissectors.remoting",
        ENDPOINT,
    ),
    "replay.safety": ("dissectors.printable", ENDPOINT),
    "replay.unique_id": (),
    "replay.forks": (),
    "replay.validators": ("replay.message", "dissectors.remoting"),
    "replay.wire_capture": ("replay.forks", "dissectors.tcp", ENDPOINT, "dissectors.temporary"),
    "replay.fault": ("dissectors.remoting.versions",),
    "replay.wire": (*ACTIVE_VALUES, "replay.wire_capture", "dissectors"),
    "replay.transport": (*ACTIVE_VALUES, "replay.forks", "replay.wire", ENDPOINT),
    "replay.cluster": (
        *ACTIVE_VALUES,
        "replay.fault",
        "replay.wire",
        "dissectors.remoting",
        ENDPOINT,
    ),
    "replay.sending": (
        *ACTIVE_VALUES,
        *ACTIVE_EDGES,
        "replay.fault",
        "replay.wire",
        "replay.cluster",
        "dissectors.remoting",
        "dissectors.rows",
    ),
    "replay.send_queue": (*ACTIVE_VALUES, "replay.wire"),
    **{
        f"replay.{facade}": (
            *ACTIVE_VALUES,
            "replay.forks",
            "replay.send_queue",
            "replay.fault",
            "replay.wire",
            "replay.cluster",
            "replay.sending",
            "replay.transport",
        )
        for facade in ("producer", "async_producer")
    },
    "replay.send_many": (
        *ACTIVE_VALUES,
        *("replay.async_producer", "replay.plan.pace", "dissectors.open_files", "dissectors.times"),
    ),
    "replay.consent": (*ACTIVE_VALUES, "replay.async_producer", "replay.safety"),
    "replay": ("replay",),
    # replay: what was captured, what is sent again, how that goes
    "replay.captured": ("replay.message", "replay.safety", "dissectors"),
    "replay.plan": ("replay.captured", "replay.message", "dissectors"),
    "replay.run": (
        *ACTIVE_VALUES,
        *ACTIVE_EDGES,
        "replay.async_producer",
        "replay.send_queue",
        "replay.captured",
        "replay.cluster",
        "replay.plan",
        "replay.safety",
        "replay.sandbox",
        "replay.sending",
        "replay.transport",
        "replay.wire",
        "dissectors",
    ),
    # the sandbox: no part of the producer but the layout of its ids
    "replay.sandbox": ("replay.sandbox", "dissectors"),
    "replay.sandbox.store": (
        "dissectors.temporary",
        "replay.sandbox.errors",
        "replay.sandbox.groups",
        "replay.sandbox.room",
        "replay.sandbox.topics",
        "dissectors.remoting",
    ),
    "replay.sandbox.injection": (
        *(f"replay.sandbox.{name}" for name in ("errors", "events", "request", "room", "server")),
        "dissectors.remoting",
        "dissectors.quantities",
    ),
    "replay.sandbox.handlers": (
        *SANDBOX_VALUES,
        "replay.unique_id",
        "dissectors.remoting",
        ENDPOINT,
    ),
    "replay.sandbox.pop": (
        *SANDBOX_VALUES,
        "replay.sandbox.handlers",
        "dissectors.remoting",
        ENDPOINT,
    ),
    # analytics
    "analytics": (),
    "analytics.errors": (),
    "analytics.kept": ("analytics.schema", "analytics.sql"),
    "analytics.schema": ("dissectors.decode", "dissectors.rows"),
    "analytics.sql": ("analytics.errors", "analytics.schema", "dissectors.histogram"),
    "analytics.spark": ("analytics.errors", "analytics.schema", "analytics.sql", ENDPOINT),
    "analytics.spark.frames": ("analytics.kept", "analytics.report", "analytics.spark"),
    "analytics.derived": (
        *("analytics.schema", "analytics.sql"),
        *("dissectors.remoting.topic_names", "dissectors.rows"),
    ),
    "analytics.report": ("analytics.kept", "analytics.schema", "analytics.sql"),
    "analytics.result": (
        *("analytics.report", "analytics.kept", "analytics.schema", "analytics.sql"),
    ),
    "analytics.tables": ("analytics.result",),
    "analytics.csv_tables": ("analytics.result", "dissectors.rows", "dissectors.times"),
    "analytics.compare": ("analytics.report", "analytics.result"),
    "analytics.inputs": (*REPORT_CONTRACT, "analytics.errors", "analytics.kept", "dissectors"),
    "analytics.sends": (
        *REPORT_CONTRACT,
        ENDPOINT,
        "dissectors.grpc",
        "dissectors.remoting",
        "dissectors.rows",
    ),
    "analytics.isolation": (
        "analytics.report",
        "analytics.schema",
        "analytics.sends",
        "dissectors.remoting",
        "replay.fault",
    ),
    "analytics.diagnosis": (
        "analytics.sends.attempts",
        "analytics.sends.births",
        "analytics.sends.chains",
        "analytics.sends.timeouts",
        "analytics.isolation.producer_attempts",
        "analytics.isolation.strategy_replay",
        "analytics.isolation.strategy_verdict",
        "replay.fault",
        "dissectors",
    ),
    "analytics.consuming": (
        "analytics.report",
        "analytics.diagnosis",
        *("analytics.life.again", "analytics.life.hops"),
        "analytics.inputs.rows",
        "dissectors",
    ),
    FOLDING[0]: (*REPORT_CONTRACT, "analytics.consuming", "dissectors.rows"),
    FOLDING[1]: (*ON_FOLDS, FOLDING[0], "analytics.reports.folding_on_spark"),
    "analytics.reports.folding_on_spark": (*ON_FOLDS, FOLDING[0]),
    "analytics.reports.delivery": (*ON_FOLDS, *FOLDING, "dissectors.remoting"),
    "analytics.reports.consumers": (*ON_FOLDS, *FOLDING),
    "analytics.reports.diagnosis": (
        *(*DIAGNOSIS, *FOLDING, "analytics.reports.diagnosis_tables"),
        "analytics.reports.diagnosis_folding",
    ),
    "analytics.reports.diagnosis_tables": DIAGNOSIS,
    "analytics.reports.diagnosis_folding": (
        *(*DIAGNOSIS, FOLDING[0], "analytics.reports.diagnosis_tables"),
        *("analytics.consuming", "analytics.sends"),
    ),
    "analytics.reports": (
        *REPORT_CONTRACT,
        "analytics.sends",
        "analytics.isolation",
        "dissectors.remoting",
        "dissectors.rows",
    ),
    "analytics.page": (
        "analytics.report",
        "analytics.result",
        "analytics.compare",
        "dissectors.printable",
    ),
    "analytics.life": ("dissectors",),
    "analytics.page.ladder": ("analytics.life", "analytics.page", "dissectors"),
    "analytics.job": ("analytics", "dissectors.tcp.decompression", "dissectors.times"),
    # the command line: a folder for each command, what they share in `ui`
    "rmqtool": (
        *(VERSION, ERRORS, "rmqtool.api", "analytics.diagnosis", "analytics.life"),
        "dissectors.rows",
    ),
    VERSION: (),
    ERRORS: (),
    PLUGINS: (ERRORS, "dissectors.remoting.bodies.custom"),
    "rmqtool.api.tables": (ERRORS, "dissectors"),
    "rmqtool.api": (
        *(ERRORS, VERSION, PLUGINS, "rmqtool.api.tables", "rmqtool.summary", "rmqtool.ui"),
        "dissectors",
        *(f"analytics.{name}" for name in ("diagnosis", "inputs", "life")),
    ),
    "rmqtool.__main__": ("rmqtool.cli", "rmqtool.owners"),
    "rmqtool.owners": (VERSION,),
    "rmqtool.commands": (),
    "rmqtool.cli": ("rmqtool", "dissectors.temporary"),
    "rmqtool.ui": (
        *(VERSION, ERRORS, PLUGINS),
        *("dissectors.printable", "dissectors.temporary", "dissectors.times"),
        *("dissectors.decode.secrets", "dissectors.tcp.decompression"),
        "dissectors.remoting.bodies.custom",
        *("dissectors.owned_folder", "dissectors.quantities", "dissectors.where.fields"),
    ),
    "rmqtool.summary": ("rmqtool.ui", "analytics.diagnosis", "dissectors"),
    "rmqtool.trace": (
        *VIEWS,
        "rmqtool.api",
        "analytics.life",
        "analytics.inputs",
        "analytics.page.ladder",
        "dissectors",
    ),
    "rmqtool.decode": (
        "rmqtool.api",
        "rmqtool.summary",
        "rmqtool.ui",
        VERSION,
        "analytics.diagnosis",
        "dissectors",
    ),
    "rmqtool.diagnose": (
        *VIEWS,
        "rmqtool.api",
        "rmqtool.live",
        "rmqtool.summary",
        "analytics.diagnosis",
        "analytics.inputs",
        "dissectors",
    ),
    "rmqtool.browse": (
        *VIEWS,
        "rmqtool.api",
        "rmqtool.diagnose.text",
        "rmqtool.live",
        "rmqtool.summary",
        "rmqtool.trace.ladder_lines",
        *(f"analytics.{name}" for name in ("diagnosis", "inputs", "life")),
        *(f"replay.{name}" for name in ("config", "errors", "safety")),
        "dissectors",
    ),
    "rmqtool.live": (*VIEWS, "rmqtool.api", "dissectors"),
    "rmqtool.hex": (*VIEWS, "dissectors"),
    "rmqtool.help": ("rmqtool.ui", "dissectors.rows", "dissectors.where"),
    "rmqtool.codes": ("rmqtool.ui", "dissectors.remoting"),
    "rmqtool.wireshark": ("rmqtool.ui", VERSION, "dissectors"),
    "rmqtool.broker": ("rmqtool.ui", "replay.sandbox", "dissectors"),
    "rmqtool.send": (*VIEWS, "replay", "dissectors"),
    "rmqtool.replay": (*VIEWS, "rmqtool.live", "rmqtool.send", "replay", "dissectors"),
    "rmqtool.report": ("rmqtool.ui", VERSION, "analytics", "dissectors"),
}
"""unit → units that it may import; a module belongs to the unit with the longest name"""
