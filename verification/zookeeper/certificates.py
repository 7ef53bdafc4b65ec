"""A certificate authority for one test run, as PEM files. Needs ``cryptography``."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_VALIDITY: Final = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Identity:
    """A TLS identity: a file with key and certificate, and the file of the trusted authority."""

    key_and_certificate: Path
    authority: Path


class Authority:
    """Signs certificates. Each authority trusts its own certificates only."""

    def __init__(self, folder: Path, name: str = "kframe-tests") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self._certificate = self._sign(
            self._name, self._key.public_key(), x509.BasicConstraints(ca=True, path_length=0)
        )
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *hosts: str) -> Identity:
        """An identity for ``name`` that is valid at ``hosts``: DNS names and IP addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(
            _named(name), key.public_key(), x509.SubjectAlternativeName([_host(host) for host in hosts or (name,)])
        )
        path = self._folder / f"{name}.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        return Identity(path, self.path)

    def _sign(
        self, name: x509.Name, key: ec.EllipticCurvePublicKey, *extensions: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder(issuer_name=self._name, subject_name=name, public_key=key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + _VALIDITY)
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
