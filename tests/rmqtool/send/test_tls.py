"""`--tls` of `send` and `replay`: whose certificate is accepted."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.replay.certificates import (
    make_authority,
    make_certificate,
    other_host,
    server_context,
    sign_certificate,
)
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


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority, a server's certificate, and two clients' ones."""
    folder = tmp_path_factory.mktemp("authority")
    make_authority(folder)
    sign_certificate(folder, "server", "IP:127.0.0.1")
    sign_certificate(folder, "client", "DNS:client.example")
    sign_certificate(folder, "locked", "DNS:client.example", "sesame")
    chain = (folder / "client.pem").read_text() + (folder / "client-key.pem").read_text()
    (folder / "both.pem").write_text(chain)
    return folder


def _mutual(authority: Path) -> ssl.SSLContext:
    """What a server encrypts with that wants a certificate of the same authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server-key.pem")
    context.load_verify_locations(authority / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.mark.parametrize("command", ["send", "replay"])
def test_mutual_tls(tmp_path: Path, authority: Path, command: str) -> None:
    trusted = str(authority / "ca.pem")
    client, key = ("--tls-cert", str(authority / "client.pem")), str(authority / "client-key.pem")
    with responding(tls=_mutual(authority)) as server:

        def run(*options: str) -> Result:
            return _run(command, server.address, trusted, tmp_path, "--tls", trusted, *options)

        for nothing in ((), ("--tls-cert", str(authority / "client.pem"), "--tls-key", trusted)):
            refused = run(*nothing)
            assert refused.status == 1 or "1 failed only in the replay" in refused.out, refused
            assert "Traceback" not in refused.err
        assert server.received == []
        for options in ((*client, "--tls-key", key), ("--tls-cert", str(authority / "both.pem"))):
            done = run(*options)
            assert done.status == 0, done.err
        assert server.received


def test_a_key_with_a_password(tmp_path: Path, authority: Path) -> None:
    files = ("--tls-cert", str(authority / "locked.pem"))
    files += ("--tls-key", str(authority / "locked-key.pem"))
    trusted = str(authority / "ca.pem")
    with responding(tls=_mutual(authority)) as server:
        arguments = ("send", "-n", server.address, "-t", "T", "--body", "x", "--tls", trusted)
        assert rmqtool(*arguments, *files, ROCKETMQ_TLS_KEY_PASSWORD="sesame").status == 0
        for password in ("", "wrong"):
            refused = rmqtool(*arguments, *files, ROCKETMQ_TLS_KEY_PASSWORD=password)
            assert refused.status == 1
            assert "password of the key" in refused.err
            assert "sesame" not in refused.err


def test_another_authority_is_refused(tmp_path: Path, authority: Path) -> None:
    stranger = make_certificate(tmp_path, "IP:127.0.0.1") / "cert.pem"
    with responding(tls=_mutual(authority)) as server:
        done = _run("send", server.address, str(stranger), tmp_path, "--tls", str(stranger))
        assert done.status == 1
        assert "its certificate is not trusted" in done.err
        assert server.received == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tls-cert", "{ca}"), "needs --tls"),
        (("--tls", "system", "--tls-key", "{ca}"), "needs --tls-cert"),
        (("--tls", "system", "--tls-cert", "none.pem"), "there is no file none.pem"),
        (("--tls", "system", "--tls-cert", "{ca}", "--tls-key", "x.pem"), "there is no file x.pem"),
    ],
)
def test_options_that_make_no_sense(
    authority: Path, options: tuple[str, ...], message: str
) -> None:
    given = [part.format(ca=authority / "ca.pem") for part in options]
    done = rmqtool("send", "-n", "127.0.0.1:1", "-t", "T", "--body", "x", *given)
    assert done.status == 2
    assert message in done.err


@pytest.mark.parametrize("command", ["send", "replay"])
def test_a_client_in_the_clear_is_told_of_tls(tmp_path: Path, command: str) -> None:
    with other_host(tmp_path) as (server, trusted):
        ended = _run(command, server.address, trusted, tmp_path)
    assert ended.status == 1
    assert "both sides use TLS" in ended.err
