"""`--tls` of `send` and `replay`: whose certificate is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.replay.certificates import make_certificate, other_host, server_context
from tests.replay.responder import responding
from tests.rmqtool.command import ROOT, Result, rmqtool

SAMPLE = ROOT / "samples" / "send-sync-5x.pcap"


def _run(command: str, address: str, trusted: str, folder: Path, *options: str) -> Result:
    """Send or replay a message; `trusted` is what the system trusts."""
    if command == "send":
        arguments = ["send", "-t", "T", "--body", "x"]
    else:
        journal = str(folder / f"run-{len(list(folder.iterdir()))}")
        arguments = ["replay", str(SAMPLE), "--top-speed", "--limit", "1", "-o", journal]
    return rmqtool(*arguments, "-n", address, *options, SSL_CERT_FILE=trusted)


@pytest.mark.parametrize("command", ["send", "replay"])
@pytest.mark.parametrize("system", [True, False])
def test_the_name_is_checked(tmp_path: Path, command: str, system: bool) -> None:
    with other_host(tmp_path) as (server, trusted):
        tls = ("--tls", "system" if system else trusted)
        refused = _run(command, server.address, trusted, tmp_path, *tls)
        assert refused.status == 1
        assert "certificate is for another name" in refused.err
        assert "--tls-name" in refused.err
        wrong = _run(command, server.address, trusted, tmp_path, *tls, "--tls-name", "a.example")
        assert wrong.status == 1
        assert server.received == []
        named = _run(
            command, server.address, trusted, tmp_path, *tls, "--tls-name", "broker.example"
        )
        assert named.status == 0, named.err
        came = len(server.received)
        assert came > 0
        anyone = _run(command, server.address, trusted, tmp_path, *tls, "--tls-any-name")
        assert anyone.status == 0, anyone.err
        assert len(server.received) == 2 * came


@pytest.mark.parametrize("command", ["send", "replay"])
def test_the_address_is_a_name(tmp_path: Path, command: str) -> None:
    make_certificate(tmp_path, "IP:127.0.0.1")
    with responding(tls=server_context(tmp_path)) as server:
        trusted = str(tmp_path / "cert.pem")
        done = _run(command, server.address, trusted, tmp_path, "--tls", "system")
        assert done.status == 0, done.err
