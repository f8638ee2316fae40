"""Certificates that are made for one test, and servers that show them."""

from __future__ import annotations

import contextlib
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .responder import Responder, responding


def make_certificate(folder: Path, names: str) -> Path:
    """Make cert.pem and key.pem, self-signed for `names` such as ``DNS:a.example,IP:127.0.0.1``."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    subject = ["-subj", "/CN=broker", "-addext", f"subjectAltName={names}"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    subprocess.run([*command, *subject, *files], check=True, capture_output=True)
    return folder


def server_context(folder: Path) -> ssl.SSLContext:
    """What a server with that certificate encrypts with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


def make_authority(folder: Path) -> Path:
    """Make an authority of one's own: ca.pem, ca-key.pem."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    _openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=own CA"),
        *("-keyout", folder / "ca-key.pem", "-out", folder / "ca.pem"),
    )
    return folder / "ca.pem"


def sign_certificate(folder: Path, name: str, alternatives: str, password: str = "") -> None:
    """Make NAME.pem and NAME-key.pem, signed by the authority of the folder."""
    request, extensions = folder / f"{name}.csr", folder / f"{name}.ext"
    extensions.write_text(f"subjectAltName={alternatives}\n")
    hidden = ("-passout", f"pass:{password}") if password else ("-nodes",)
    _openssl(
        *("req", "-newkey", "rsa:2048", *hidden, "-subj", f"/CN={name}"),
        *("-keyout", folder / f"{name}-key.pem", "-out", request),
    )
    _openssl(
        *("x509", "-req", "-days", "2", "-in", request, "-extfile", extensions),
        *("-CA", folder / "ca.pem", "-CAkey", folder / "ca-key.pem", "-CAcreateserial"),
        *("-out", folder / f"{name}.pem"),
    )


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


@contextlib.contextmanager
def other_host(folder: Path) -> Iterator[tuple[Responder, str]]:
    """A server at 127.0.0.1 whose certificate is for broker.example; the certificate's file."""
    make_certificate(folder, "DNS:broker.example")
    with responding(tls=server_context(folder)) as one:
        yield one, str(folder / "cert.pem")
