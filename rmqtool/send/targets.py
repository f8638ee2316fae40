"""The target of `send` and `replay`: its options, their values, and the question before messages
go anywhere else.

Rules: without a terminal nobody can agree, and the error has a hint. The event loop waits for the
answer, so nothing else stops meanwhile and Ctrl-C is a no.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from dissectors.printable import printable
from replay.acl import Credentials, CredentialsError, credentials_of, read_credentials
from replay.config import NAMESRV_VARIABLE, ProducerConfig, TlsSettings
from replay.consent import TypedLine
from replay.errors import ConfigError, NameServerError
from replay.plan.pace import PaceError, duration_of, rate_of
from replay.run.compare import ConditionError
from replay.safety import WAY_OUT, Agreement, Guard, TargetRefused

from ..ui.declared import option, text_option
from ..ui.option_names import command_error
from ..ui.option_values import about, usage_error
from ..ui.screen.panels import asked, typed
from ..ui.status import CommandError, ExitStatus

TITLE: Final = "Confirmation needed"
"""title above a question"""
KEY_PASSWORD_VARIABLE: Final = "ROCKETMQ_TLS_KEY_PASSWORD"
"""environment variable with the password of the key of --tls-key"""
_MS: Final = 1_000_000
_Value = TypeVar("_Value")


def value_of(name: str, read: Callable[[str], _Value], text: str) -> _Value:
    """Return the parsed value of an option; raise CommandError if it is invalid."""
    try:
        return read(text)
    except (PaceError, ConditionError) as problem:
        raise usage_error(name, str(problem)) from None


def read_by(read: Callable[[str], _Value]) -> Callable[[str, str | None], _Value | None]:
    """Return a reader for an option that may be missing."""
    return lambda name, text: None if text is None else value_of(name, read, text)


# -- pace and timeout ---------------------------------------------------------------------------


def rate(panel: str) -> Any:
    """Return the option `--rate`, in a help panel."""
    text = "Messages per second; 100..5000/5m ramps up over 5 minutes."
    return text_option(text, panel, metavar="500/s|100..5000/5m", read=read_by(rate_of))


def timeout(text: str, panel: str = "Sending") -> Any:
    """Return the option `--timeout`, whose value is in milliseconds."""
    return text_option(
        text,
        panel,
        "3s",
        names="--timeout",
        metavar="TIME",
        value=3000,
        read=milliseconds,
    )


def milliseconds(name: str, text: str) -> int:
    """Return the milliseconds of an option: ``3s``, ``500ms``."""
    milliseconds = value_of(name, duration_of, text) // _MS
    if milliseconds < 1:
        raise usage_error(name, f"must be 1ms or longer, not {text!r}")
    return milliseconds


NAMESRV: Any = option(
    "NameServer addresses (default: $NAMESRV_ADDR).", "Target", metavar="HOST:PORT[;...]"
)
ACL: Any = option(
    "Sign requests with keys from FILE or from the environment (env).",
    "Target",
    metavar="FILE|env",
)
RETRIES: Any = option("Maximum retries after the first attempt.", "Sending", 2, min=0, metavar="N")


# -- settings of a client -----------------------------------------------------------------------


def refuse_no_namesrv(namesrv: str | None) -> None:
    """Raise CommandError if neither `namesrv` nor the environment names a NameServer."""
    if not (namesrv or os.environ.get(NAMESRV_VARIABLE)):
        hint = f"give -n HOST:PORT[;HOST:PORT], or set {NAMESRV_VARIABLE}"
        raise CommandError("no NameServer given", hint, ExitStatus.USAGE)


def client_config(given: ClientOptions, namesrv: str | None, **settings: Any) -> ProducerConfig:
    """Return the settings of a client, with further ones by name; raise CommandError if invalid.

    Files with keys and certificates are read or looked up, so that nothing else is opened before.
    """
    try:
        config = ProducerConfig(
            namesrv=namesrv or "",
            credentials=credentials_of_option(given.acl),
            tls=tls_of_options(given),
            **settings,
        )
        refuse_no_namesrv(config.namesrv)
        config.namesrv_addresses()  # refuses invalid addresses
    except (ConfigError, NameServerError) as error:
        raise command_error(error) from None
    return config


# -- credentials --------------------------------------------------------------------------------


def credentials_of_option(text: str | None) -> Credentials | None:
    """Return the credentials of --acl; raise CommandError if there are none."""
    if text is None:
        return None
    try:
        if text != "env":
            with about("--acl"):
                return read_credentials(text)
        credentials = credentials_of(os.environ)
    except CredentialsError as error:
        raise CommandError(f"--acl: {error.reason}", error.hint, ExitStatus.USAGE) from None
    if credentials is None:
        hint = "ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY are not set; or name a file"
        raise CommandError("--acl env: no credentials", hint, ExitStatus.USAGE)
    return credentials


# -- TLS ----------------------------------------------------------------------------------------


class TlsOptions(Protocol):
    """The options of a command that encrypts."""

    @property
    def tls(self) -> str | None: ...
    @property
    def tls_name(self) -> str | None: ...
    @property
    def tls_any_name(self) -> bool: ...
    @property
    def tls_cert(self) -> str | None: ...
    @property
    def tls_key(self) -> str | None: ...


class ClientOptions(TlsOptions, Protocol):
    """The options of a command that connects as a client."""

    @property
    def acl(self) -> str | None: ...


TLS: Any = option(
    "Use TLS and verify server certificates with this CA.",
    "Target",
    metavar="CA.pem|system|insecure",
)
TLS_NAME: Any = option(
    "Expect this name in server certificates (default: the address).", "Target", metavar="NAME"
)
TLS_ANY_NAME: Any = option("Accept any name in a trusted server certificate.", "Target", False)
TLS_CERT: Any = option("Client certificate; may contain its key.", "Target", metavar="CERT.pem")
TLS_KEY: Any = option(
    "Private key of --tls-cert (password: $ROCKETMQ_TLS_KEY_PASSWORD).",
    "Target",
    metavar="KEY.pem",
)


def tls_of_options(given: TlsOptions) -> TlsSettings | None:
    """Return the TLS settings; the key's password is an environment variable.

    Raise CommandError for a missing file or contradicting options.
    """
    text, name, any_name = given.tls, given.tls_name, given.tls_any_name
    asked_for = "--tls-any-name" if any_name else "--tls-name"
    if name is not None and any_name:
        raise usage_error("--tls-name and --tls-any-name", "cannot be combined")
    if (name is not None or any_name) and text in (None, "insecure"):
        raise usage_error(asked_for, "needs --tls CA.pem or --tls system, which check certificates")
    if given.tls_cert is not None and text is None:
        raise usage_error("--tls-cert", "needs --tls CA.pem, system or insecure")
    if given.tls_key is not None and given.tls_cert is None:
        raise usage_error("--tls-key", "needs --tls-cert CERT.pem")
    if text is None:
        return None
    if name is not None and not _is_server_name(name):
        raise usage_error("--tls-name", f"{name!r} is not a valid host name or IP address")
    if text not in ("system", "insecure") and not Path(text).is_file():
        raise usage_error("--tls", f"there is no file {text}; give a CA file, system, or insecure")
    for name_of_file, file in (("--tls-cert", given.tls_cert), ("--tls-key", given.tls_key)):
        if file is not None and not Path(file).is_file():
            raise usage_error(name_of_file, f"there is no file {file}")
    return TlsSettings(
        ca_file=None if text in ("system", "insecure") else text,
        verify=text != "insecure",
        check_hostname=not any_name,
        server_name=name,
        cert_file=given.tls_cert,
        key_file=given.tls_key,
        key_password=os.environ.get(KEY_PASSWORD_VARIABLE),
    )


def _is_server_name(name: str) -> bool:
    try:
        return bool(name.encode("idna")) and not name.startswith(".") and "\0" not in name
    except UnicodeError:
        return False


# -- consent ------------------------------------------------------------------------------------


def yes(panel: str, doing: str = "sending") -> Any:
    """Return the option `--yes`; `doing`: the action to confirm."""
    return option(f"Don't ask before {doing} to non-loopback addresses.", panel, False)


def allow(panel: str, do: str = "Send") -> Any:
    """Return the option `--allow`; `do`: the allowed action."""
    return option(
        f"{do} to this network or host without asking; repeatable.",
        panel,
        metavar="NETWORK|HOST",
    )


def agreement_of(yes: bool, allow: Iterable[str] | None) -> Agreement:
    """Return the agreement of --yes and --allow; CommandError for an invalid network or host."""
    try:
        return Agreement(yes, allow or ())
    except ValueError as error:
        raise usage_error("--allow", str(error)) from None


def can_ask() -> bool:
    """Return whether a user can answer."""
    # The question is on standard error, as standard output may be a pipe.
    return sys.stdin.isatty() and sys.stderr.isatty()


def _not_agreed(addresses: Sequence[str], topic: str) -> str:
    """Return the sentence to confirm; raise TargetRefused if nobody can be asked."""
    shown = ", ".join(map(printable, addresses))
    source = f"the route of {printable(topic)}" if topic else "a route"
    what = f"{source} names {shown}, which is neither loopback nor allowed"
    if not can_ask():
        raise TargetRefused(f"{what}; {WAY_OUT}")
    return f"{what[0].upper()}{what[1:]}"


def agree_to_read(guard: Guard, addresses: Iterable[str], topic: str) -> None:
    """Ask before connecting to brokers of a route; raise TargetRefused for a no."""
    new = sorted({address for address in addresses if not guard.agreement.covers(address)})
    if not new:
        return
    text = _not_agreed(new, topic)
    if typed(TITLE, [text], "Connect to them? Type yes", sys.stdin, sys.stderr).strip() != "yes":
        raise TargetRefused("no broker was contacted: not confirmed")
    guard.agreement.add(new)


class Question:
    """Asks the user while messages are sent."""

    def __init__(self, clear: Callable[[], None]) -> None:
        """`clear` removes the progress line."""
        self._clear = clear
        self._typed = TypedLine()

    async def __call__(self, addresses: Sequence[str], topic: str) -> bool:
        """Return whether the user agrees; raise TargetRefused if nobody can be asked."""
        text = _not_agreed(addresses, topic)
        self._clear()
        asked(TITLE, [text], "Send there? Type yes", sys.stderr)
        return (await self._typed.read(sys.stdin)).strip().lower() == "yes"

    def end(self) -> None:
        """Cancel the question, which counts as a no. Safe to call in a signal handler."""
        self._typed.end()
