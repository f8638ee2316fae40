"""tshark with the same secrets is the oracle: the decrypted bytes of each sample are equal."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from dissectors.tcp.formats import reader_of
from dissectors.tls.key_log import KeyLog
from dissectors.tls.session import TlsSession
from tests.dissectors.tcp.test_tshark import by_us
from tests.expected import SAMPLES
from tests.traffic.captures import pcap_of
from tests.traffic.encrypted_12 import OPENED, apart
from tests.traffic.talk import BROKER

SAMPLES_WITH_KEYS = sorted(SAMPLES.glob("tls*-keys*.pcapng"))

pytestmark = pytest.mark.tshark


def decrypted_by_tshark(path: Path, connections: int, *options: str) -> list[tuple[bytes, ...]]:
    """The plaintext of both ends of each connection; nothing of those that are not decrypted."""
    command = ["tshark", "-n", "-r", str(path), "-q", *options]
    for number in range(connections):
        command += ["-z", f"follow,tls,raw,{number}"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[int, tuple[bytes, ...]] = {}
    for text in re.split(r"\n?={67}\nFollow: tls,raw\n", out)[1:]:
        number = int(re.search(r"tcp\.stream eq (\d+)", text)[1])  # type: ignore[index]
        said = [b"", b""]
        for line in text.split("\n")[3:]:
            if line.startswith("="):
                break
            said[line.startswith("\t")] += bytes.fromhex(line.strip())
        found[number] = tuple(sorted(said))
    return [found.get(number, (b"", b"")) for number in range(connections)]


def secrets_in(path: Path) -> KeyLog:
    reader = reader_of(0, path.read_bytes())
    assert reader is not None
    reader.receive(b"")
    secrets = KeyLog()
    for text in reader.secrets:
        secrets.add(text)
    return secrets


def decrypted_by_us(path: Path, secrets: KeyLog) -> list[tuple[bytes, ...]]:
    found = []
    for streams in by_us(path).order:
        session = TlsSession(secrets)
        said = [b"", b""]
        for side in (0, 1):
            for one in session.receive(side, streams[side], 0, 0):
                said[one.side] += one.data
        found.append(tuple(sorted(said)))
    return found


@pytest.mark.parametrize("path", SAMPLES_WITH_KEYS, ids=lambda path: path.name)
def test_the_same_bytes_are_decrypted(path: Path) -> None:
    ours = decrypted_by_us(path, secrets_in(path))
    assert ours == decrypted_by_tshark(path, len(ours))
    assert any(any(said) for said in ours) or "expired" in path.name


@pytest.mark.parametrize("name", OPENED)
def test_what_is_opened_by_other_lines(name: str, tmp_path: Path) -> None:
    """Suites with CBC, sessions that go on, pre-master secrets: OpenSSL with itself."""
    opens = OPENED[name](lambda one: one.say(0, b"hello" * 700).say(1, b"olleh").say(0, b"world"))
    keys, path = tmp_path / "keys.log", tmp_path / "a.pcap"
    keys.write_bytes(opens.key_log)
    path.write_bytes(pcap_of(apart(opens.sessions)))
    ours = decrypted_by_us(path, KeyLog(str(keys)))
    options = ("-o", f"tls.keylog_file:{keys}", "-d", f"tcp.port=={BROKER.port},tls")
    assert ours == decrypted_by_tshark(path, len(ours), *options)
    assert ours[-1] == tuple(sorted((b"hello" * 700 + b"world", b"olleh")))
