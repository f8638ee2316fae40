"""TLS of connections to brokers and NameServers.

Rules: TLS 1.2 or newer; certificates and host names are verified unless the user disables it. No
password is shown.
RocketMQ: TlsHelper, TlsSystemConfig.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable
from typing import Final

from ..config import TlsSettings
from ..errors import ConfigError

_WRONG_NAME: Final = (62, 64)
"""X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH"""


def tls_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the TLS context of a client. Raises ConfigError for unusable files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Java does not check the name: any certificate of a trusted authority would pass.
    context.check_hostname = settings.verify and settings.check_hostname
    context.verify_mode = ssl.CERT_REQUIRED if settings.verify else ssl.CERT_NONE
    setting = "ca_file"
    try:
        if settings.ca_file is not None:
            context.load_verify_locations(settings.ca_file)
        elif settings.verify:
            context.load_default_certs()
        if settings.cert_file is not None:
            # never None: OpenSSL would ask for the password of the key at the terminal
            setting, password = "cert_file", settings.key_password or ""
            context.load_cert_chain(settings.cert_file, settings.key_file, lambda: password)
        setting, key_log = "", os.environ.get("SSLKEYLOGFILE")
        if key_log:  # as ssl.create_default_context does
            context.keylog_filename = key_log
    except (OSError, ValueError) as error:
        files = (settings.ca_file, settings.cert_file, settings.key_file)
        raise _unusable(files, error, setting) from None
    return context


def server_context(
    cert_file: str, key_file: str | None = None, key_password: str | None = None
) -> ssl.SSLContext:
    """Return the TLS context of a server. Raises ConfigError for unusable files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert_file, key_file, lambda: key_password or "")
    except (OSError, ValueError) as error:
        raise _unusable((cert_file, key_file), error, "listen_cert") from None
    return context


def _unusable(files: Iterable[str | None], error: Exception, setting: str) -> ConfigError:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "unusable"
    hint = "PEM files are expected, and the password of the key"
    return ConfigError(
        f"TLS files {', '.join(filter(None, files))}: {reason}", hint, setting=setting
    )


def server_name_of(settings: TlsSettings, host: str) -> str:
    """Return the name that a host's certificate must match."""
    # the scope of a link-local address (%eth0) is not in a certificate
    return settings.server_name or host.partition("%")[0]


def tls_problem(error: ssl.SSLError) -> tuple[str, str]:
    """Return the problem of a failed handshake, and a hint."""
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _WRONG_NAME:
        hint = "say which name it has (server_name), or do not check the name"
        return f"its certificate is for another name ({error.verify_message})", hint
    if isinstance(error, ssl.SSLCertVerificationError):
        hint = "name the certificate of its authority (ca_file), or do not verify"
        return f"its certificate is not trusted ({error.verify_message})", hint
    reason = (error.reason or "TLS failed").lower().replace("_", " ")
    return f"no TLS ({reason})", "check that TLS is on at this port and accepts our certificate"
