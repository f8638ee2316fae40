"""Certificates for one recording, thrown away with it."""

from __future__ import annotations

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Authority:
    """An authority of one recording, which signs certificates of servers."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.file = folder / f"{name}.pem"
        self._key = rsa.generate_private_key(65537, 2048)
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._signed(self._name, self._key, -10, 3650, authority=True)
        self.file.write_bytes(made.public_bytes(Encoding.PEM))

    def files(self, first_day: int, last_day: int) -> tuple[Path, Path]:
        """A certificate that is valid in these days from now, and its key."""
        key = rsa.generate_private_key(65537, 2048)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "namesrv.example")])
        made = self._signed(name, key, first_day, last_day)
        cert, secret = self.folder / "server.pem", self.folder / "server.key"
        cert.write_bytes(made.public_bytes(Encoding.PEM))
        secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return cert, secret

    def server(self, first_day: int, last_day: int) -> list[str]:
        """Properties of a server with a certificate that is valid in these days from now."""
        cert, secret = self.files(first_day, last_day)
        return [
            "tls.server.mode=permissive",
            "tls.test.mode.enable=false",
            f"tls.server.certPath={cert}",
            f"tls.server.keyPath={secret}",
        ]

    def _signed(
        self,
        subject: x509.Name,
        key: rsa.RSAPrivateKey,
        first_day: int,
        last_day: int,
        authority: bool = False,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
        names = [x509.DNSName("namesrv.example"), x509.DNSName("mq.example")]
        builder = x509.CertificateBuilder(
            self._name,
            subject,
            key.public_key(),
            x509.random_serial_number(),
            now + datetime.timedelta(first_day),
            now + datetime.timedelta(last_day),
        ).add_extension(x509.BasicConstraints(authority, None), critical=True)
        if not authority:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())
