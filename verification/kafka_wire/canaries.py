"""Distinct secrets for every setting and record with one, and a search for them in what a process shows."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat, pkcs12

from verification.kafka_wire.secured import PLAIN_MODULE, SCRAM_MODULE
from verification.zookeeper.certificates import Authority, Identity
from verification.zookeeper.servers import HOST

#: Secrets by the setting or record that has them.
CANARIES: Final = {
    name: f"canary-{number}-{name}"
    for number, name in enumerate(
        (
            "keystore",
            "key",
            "truststore",
            "plain-own",
            "plain-user",
            "scram-own",
            "zookeeper-login",
            "zookeeper-keystore",
            "zookeeper-truststore",
            "token-key",
            "wrong-password",
            "scram-salt",
            "scram-stored",
            "scram-server",
            "broker-setting",
            "salted-password",
        ),
        100,
    )
}
LISTENERS: Final = {"PLAIN": "SASL_SSL", "SCRAM": "SASL_PLAINTEXT", "INLINE": "SSL"}


class Stores:
    """The files of a controller whose every file and setting has a secret of its own."""

    def __init__(self, folder: Path) -> None:
        """Write them to ``folder``."""
        self.folder = folder
        self.authority = Authority(folder, "authority")
        self.zookeeper_server = self.authority.issue("zookeeper", HOST)
        self.broker = self.authority.issue("broker", HOST)
        certificate, key = _read(self.authority.issue("controller", HOST))
        authority = x509.load_pem_x509_certificate(self.authority.path.read_bytes())
        password = CANARIES["keystore"].encode()
        self.key_store, self.trust_store = folder / "keys.p12", folder / "trust.p12"
        self.key_store.write_bytes(
            pkcs12.serialize_key_and_certificates(b"us", key, certificate, None, BestAvailableEncryption(password))
        )
        trusted = BestAvailableEncryption(CANARIES["truststore"].encode())
        self.trust_store.write_bytes(pkcs12.serialize_key_and_certificates(None, None, None, [authority], trusted))
        self.inline_key = _encrypted(key, CANARIES["key"]).replace("\n", "\\n")
        self.certificate = certificate.public_bytes(Encoding.PEM).decode().replace("\n", "\\n")
        self.zookeeper_client = folder / "zookeeper-client.pem"
        self.zookeeper_client.write_text(
            _encrypted(key, CANARIES["zookeeper-keystore"]) + certificate.public_bytes(Encoding.PEM).decode()
        )
        self.jaas = folder / "jaas.conf"
        self.jaas.write_text(
            "Client { org.apache.zookeeper.server.auth.DigestLoginModule required"
            f' username="kafka" password="{CANARIES["zookeeper-login"]}"; }};'
        )

    @property
    def secrets(self) -> list[str]:
        """All secrets: CANARIES, and a line of each private key."""
        key_lines = [self.inline_key.split("\\n")[3], self.zookeeper_client.read_text().splitlines()[3]]
        return [*CANARIES.values(), *key_lines]

    def settings(self) -> dict[str, str]:
        """The settings of a controller with the listeners LISTENERS, in the format of a properties file.

        ``{address}``, ``{other_address}`` and ``{third_address}`` are its addresses.
        """
        return {
            "listeners": "PLAIN://{address},SCRAM://{other_address},INLINE://{third_address}",
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
            "inter.broker.listener.name": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.plain.plain.sasl.jaas.config": f'{PLAIN_MODULE} username="kframe" '
            f'password="{CANARIES["plain-own"]}"'
            f' user_alice="{CANARIES["plain-user"]}";',
            "listener.name.scram.scram-sha-256.sasl.jaas.config": f'{SCRAM_MODULE} username="kframe" '
            f'password="{CANARIES["scram-own"]}";',
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(self.trust_store),
            "ssl.truststore.password": CANARIES["truststore"],
            "listener.name.plain.ssl.keystore.type": "PKCS12",
            "listener.name.plain.ssl.keystore.location": str(self.key_store),
            "listener.name.plain.ssl.keystore.password": CANARIES["keystore"],
            "listener.name.inline.ssl.keystore.type": "PEM",
            "listener.name.inline.ssl.key.password": CANARIES["key"],
            "listener.name.inline.ssl.keystore.key": self.inline_key,
            "listener.name.inline.ssl.keystore.certificate.chain": self.certificate,
            "listener.name.inline.ssl.client.auth": "required",
            "delegation.token.secret.key": CANARIES["token-key"],
            "java.security.auth.login.config": str(self.jaas),
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.keystore.location": str(self.zookeeper_client),
            "zookeeper.ssl.keystore.password": CANARIES["zookeeper-keystore"],
            "zookeeper.ssl.truststore.location": str(self.authority.path),
            "zookeeper.ssl.truststore.password": CANARIES["zookeeper-truststore"],
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:alice",
            "connection.failed.authentication.delay.ms": "0",
        }


def scram_user() -> str:
    """The record of a SCRAM user, whose salt and keys are canaries."""
    parts = {
        name: CANARIES[f"scram-{word}"]
        for name, word in (("salt", "salt"), ("stored_key", "stored"), ("server_key", "server"))
    }
    credential = ",".join(f"{name}={base64.b64encode(text.encode()).decode()}" for name, text in parts.items())
    return json.dumps({"version": 1, "config": {"SCRAM-SHA-256": f"{credential},iterations=4096"}})


def leaked_secrets(outputs: Mapping[str, str], secrets: Iterable[str]) -> list[tuple[str, str]]:
    """Each (name, secret) where a text shows a secret, also in base64, as hexadecimal digits or escaped."""
    result = []
    for secret in secrets:
        data = secret.encode()
        forms = {secret, base64.b64encode(data).decode().rstrip("=")[:-1], data.hex(), repr(secret)[1:-1]}
        result += [(name, secret) for name, text in outputs.items() if any(form in text for form in forms)]
    return result


def _read(identity: Identity) -> tuple[x509.Certificate, EllipticCurvePrivateKey]:
    data = identity.key_and_certificate.read_bytes()
    key = serialization.load_pem_private_key(data, None)
    assert isinstance(key, EllipticCurvePrivateKey)
    return x509.load_pem_x509_certificate(data), key


def _encrypted(key: EllipticCurvePrivateKey, password: str) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode())).decode()
