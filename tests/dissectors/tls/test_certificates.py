"""What certificates say, those that no authority would issue included."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from dissectors.tls.certificates import certificates_of

NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "broker-a")])
START = datetime(2026, 11, 20, 10, tzinfo=UTC)


def certificate(serial: int) -> bytes:
    """A certificate in DER; the builder refuses serial numbers below 1, so they are put in."""
    key = ec.generate_private_key(ec.SECP256R1())
    built = (
        x509.CertificateBuilder(NAME, NAME, key.public_key(), 0x55)
        .not_valid_before(START)
        .not_valid_after(START + timedelta(days=1))
        .sign(key, SHA256())
    )
    data = built.public_bytes(Encoding.DER)
    assert data.count(b"\x02\x01\x55") == 1
    return data.replace(b"\x02\x01\x55", b"\x02\x01" + serial.to_bytes(1, "big", signed=True))


@pytest.mark.parametrize("serial", [5, 0, -1])
def test_any_serial_number(serial: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Python warnings about a certificate would end up on the terminal of the user."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = certificates_of([certificate(serial)])
    assert found.subject == "CN=broker-a"
    assert (found.not_before, found.not_after) == ("2026-11-20T10:00:00Z", "2026-11-21T10:00:00Z")
    assert capsys.readouterr().err == ""
