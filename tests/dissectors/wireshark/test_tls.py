"""RocketMQ within TLS: with the keys, the decrypted stream is dissected like any other."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from tests.traffic.captures import pcap_of
from tests.traffic.commands import send, sent
from tests.traffic.talk import End, Talk

from .tshark import commands_of, run_tshark, text_of

pytestmark = pytest.mark.tshark


class Party:
    """One end of a TLS connection without a socket."""

    def __init__(self, context: ssl.SSLContext, server: bool) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=server)
        self.done = False

    def shake(self) -> None:
        """Go on with the handshake as far as what came in allows."""
        try:
            self.tls.do_handshake()
            self.done = True
        except ssl.SSLWantReadError:
            pass


def certificate(folder: Path) -> Path:
    path = folder / "server.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=test",
            "-days",
            "2",
            "-keyout",
            "server.pem",
            "-out",
            "cert.pem",
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    path.write_bytes(path.read_bytes() + (folder / "cert.pem").read_bytes())
    return path


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("port", [10911, 33333])
def test_with_the_keys(dissector: Path, tmp_path: Path, version: ssl.TLSVersion, port: int) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.minimum_version = client.maximum_version = version
    client.keylog_filename = str(tmp_path / "keys.log")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate(tmp_path))
    talk = Talk(server=End("10.0.0.1", port)).open()
    parties = (Party(client, False), Party(server, True))

    def pass_on() -> None:
        for side, party in enumerate(parties):
            data = party.outgoing.read()
            if data:
                talk.say(side, data)
                parties[1 - side].incoming.write(data)

    while not (parties[0].done and parties[1].done):
        for party in parties:
            party.shake()
            pass_on()
    for number in range(5):
        parties[0].tls.write(send(number, bytes(5000)).frame)
        pass_on()
        parties[1].tls.write(sent(number).frame)
        pass_on()
    path = tmp_path / "tls.pcap"
    path.write_bytes(pcap_of(talk.segments))
    found = commands_of(dissector, path, "-o", f"tls.keylog_file:{tmp_path / 'keys.log'}")
    layers = [layer for number in sorted(found) for layer in found[number]]
    assert [text_of(one, "rocketmq.operation") for one in layers] == ["SEND_MESSAGE_V2"] * 10
    assert [text_of(one, "rocketmq.opaque") for one in layers[::2]] == list("01234")
    assert all(text_of(one, "rocketmq.request_in") for one in layers[1::2])
    assert "TLS" in run_tshark(dissector, path)  # without keys it stays what it is
    assert not commands_of(dissector, path)
