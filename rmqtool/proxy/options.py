"""The options of `proxy`, each declared once, and the settings of the proxy that they make."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from dissectors import ports
from dissectors.endpoint import endpoint_text, split_endpoint
from dissectors.foreign import natural_of
from dissectors.where.fields import exchange_fields
from dissectors.where.filter import WhereError, compile_where
from replay.config import ProducerConfig
from replay.errors import ConfigError, NameServerError
from replay.proxy.faults import check_injections
from replay.proxy.options import ProxyOptions, check_options
from replay.safety import Guard
from replay.sandbox import SandboxError

from ..broker.options import DURATION, FAULT, FAULTS, SEED, faults_of, port_option
from ..send import targets
from ..ui import common_options as common
from ..ui.common_options import ObjectFormat
from ..ui.console import When
from ..ui.declared import declared, named_options, option, text_option
from ..ui.option_names import command_error
from ..ui.option_values import refuse_named, usage_error
from ..ui.output import refuse_same_file, refuse_text_as_page
from ..ui.status import CommandError, ExitStatus

_TARGET, _LISTEN, _RECORD, _OUTPUT = "Target", "Addresses", "Recording", "Output"
_MIRROR = "Mirror"
LISTEN_PASSWORD_VARIABLE = "ROCKETMQ_TLS_LISTEN_KEY_PASSWORD"
"""environment variable with the password of the key of --listen-key"""


def _endpoint_of(name: str, text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or (":" in host and not host.startswith("[")):  # an address without a port
        host, port = text, str(ports.NAMESRV)
    number = natural_of(port)
    if not host or number is None or number > 65535:
        raise usage_error(name, f"{text!r} is not ADDRESS:PORT; give 127.0.0.1:9876")
    return host.strip("[]"), number


@declared
class ProxyRequest:
    """The options of `proxy`."""

    namesrv: str | None = option(
        "Real NameServers (default: $NAMESRV_ADDR).", _TARGET, metavar="HOST:PORT[;...]"
    )
    yes: bool = targets.yes(_TARGET, "connecting")
    allow: list[str] | None = targets.allow(_TARGET, "Connect")
    tls: str | None = targets.TLS
    tls_name: str | None = targets.TLS_NAME
    tls_any_name: bool = targets.TLS_ANY_NAME
    tls_cert: str | None = targets.TLS_CERT
    tls_key: str | None = targets.TLS_KEY
    listen: tuple[str, int] = text_option(
        "Address for clients; port 0 picks a free port.",
        _LISTEN,
        f"127.0.0.1:{ports.NAMESRV}",
        metavar="ADDRESS[:PORT]",
        value=("127.0.0.1", ports.NAMESRV),
        read=_endpoint_of,
    )
    allow_remote: bool = option(
        "Accept clients from other machines. There is no authentication.", _LISTEN, False
    )
    grpc: str | None = option(
        "Also front this real proxy endpoint for gRPC clients.", _LISTEN, metavar="HOST:PORT"
    )
    grpc_port: int = port_option(
        "Port for gRPC clients; 0 picks a free port.", _LISTEN, ports.PROXY_GRPC
    )
    advertise: str | None = option(
        "Host in rewritten routes (default: the address the client used).", _LISTEN, metavar="HOST"
    )
    listen_cert: str | None = option(
        "Require TLS from clients, with this certificate.", _LISTEN, metavar="CERT.pem"
    )
    listen_key: str | None = option(
        f"Private key of --listen-cert (password: ${LISTEN_PASSWORD_VARIABLE}).",
        _LISTEN,
        metavar="KEY.pem",
    )
    write: str | None = option(
        "Record decrypted packets as pcapng, or - for stdout.", _RECORD, metavar="FILE|-"
    )
    output: str | None = option(
        "Also write decoded rows to this .jsonl, .csv, or .parquet file.", _RECORD, metavar="FILE"
    )
    force: bool = common.FORCE
    mirror: str | None = option(
        "Also replay captured sends to this second cluster, and compare the results.",
        _MIRROR,
        metavar="HOST:PORT",
    )
    mirror_where: str = option(
        "Mirror only sends that match EXPR, such as 'topic ~ \"^Order\"'.",
        _MIRROR,
        "",
        metavar="EXPR",
    )
    mirror_output: str | None = option(
        "Journal folder of the mirror (default: as in `replay`).", _MIRROR, metavar="FOLDER"
    )
    fault: list[str] = FAULT
    faults: list[Path] = FAULTS
    seed: int | None = SEED
    format: ObjectFormat = option("Output format; json is one array.", _OUTPUT, ObjectFormat.table)
    log: bool = option("Log every connection and injected fault.", _OUTPUT, False)
    seconds: float | None = DURATION
    colour: When = common.COLOR
    quiet: bool = common.QUIET
    named_options: Mapping[str, str] = named_options()


def options_of(given: ProxyRequest) -> tuple[ProxyOptions, Guard]:
    """Return the settings of the proxy, and what guards addresses; raise CommandError for what it
    cannot be set to.
    """
    targets.refuse_no_namesrv(given.namesrv)
    try:
        namesrv = ProducerConfig(group="proxy", namesrv=given.namesrv or "").namesrv_addresses()
    except (ConfigError, NameServerError) as error:
        raise command_error(error) from None
    for name, file in (("--listen-cert", given.listen_cert), ("--listen-key", given.listen_key)):
        if file is not None and not Path(file).is_file():
            raise usage_error(name, f"there is no file {file}")
    if given.grpc is None:
        refuse_named(given.named_options, ("grpc_port",), "needs --grpc HOST:PORT")
    if given.log and given.quiet:
        raise usage_error("--log and --quiet", "cannot be combined")
    _check_output(given)
    _check_mirror(given, namesrv)
    agreement = targets.agreement_of(given.yes, given.allow)
    agreement.add(namesrv)
    if given.grpc is not None:
        if split_endpoint(given.grpc) is None:
            raise usage_error("--grpc", f"{given.grpc!r} is not HOST:PORT")
        agreement.add([given.grpc])
    guard = Guard(agreement)
    injections, seed = faults_of(given.fault, given.faults, given.seed)
    try:
        check_injections(injections)
    except SandboxError as error:
        raise CommandError(f"--fault: {error.reason}", error.hint, ExitStatus.USAGE) from None
    host, port = given.listen
    if endpoint_text(host, port) in namesrv:
        raise usage_error("--listen", f"{endpoint_text(host, port)} is the NameServer itself")
    options = ProxyOptions(
        namesrv=tuple(namesrv),
        host=host,
        port=port,
        allow_remote=given.allow_remote,
        advertised=given.advertise or "",
        grpc=given.grpc or "",
        grpc_port=given.grpc_port,
        tls=targets.tls_of_options(given),
        listen_cert=given.listen_cert,
        listen_key=given.listen_key,
        key_password=os.environ.get(LISTEN_PASSWORD_VARIABLE),
        guard=guard.why_not,
        injections=injections,
        seed=seed,
    )
    try:
        check_options(options)
    except ConfigError as error:
        raise command_error(error) from None
    return options, guard


def _check_output(request: ProxyRequest) -> None:
    """Refuse a decoded log that its reader could not write, before anything listens."""
    output = request.output
    if output is None:
        return
    if output == "-" or output.endswith("/") or Path(output).is_dir():
        raise usage_error("--output", f"{output} is not a file; give FILE.jsonl, .csv or .parquet")
    refuse_text_as_page(output, "use .jsonl, .csv, or .parquet")
    refuse_same_file(request.write, output, "rows")
    if not Path(output).parent.is_dir():
        raise usage_error("--output", f"{Path(output).parent} is not a folder")


def _check_mirror(request: ProxyRequest, namesrv: Sequence[str]) -> None:
    """Refuse an invalid mirror before anything listens."""
    if request.mirror is None:
        if request.mirror_where or request.mirror_output:
            raise usage_error("--mirror-where and --mirror-output", "need --mirror HOST:PORT")
        return
    if split_endpoint(request.mirror) is None:
        raise usage_error("--mirror", f"{request.mirror!r} is not HOST:PORT")
    if request.mirror in namesrv:
        raise usage_error("--mirror", f"{request.mirror} is the real cluster")
    journal = Path(request.mirror_output or "")
    if request.mirror_output and journal.exists() and not _is_empty(journal):
        raise usage_error("--mirror-output", f"{journal} exists; name another folder")
    try:
        if request.mirror_where:
            compile_where(request.mirror_where, exchange_fields())
    except WhereError as error:
        raise usage_error("--mirror-where", str(error)) from None


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and next(folder.iterdir(), None) is None
