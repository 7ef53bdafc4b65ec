"""The controller's identity, and the security of listeners, by Kafka's keys."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from kframe_kafka_wire import plugin
from kframe_kafka_wire.listeners.identity import control_listener, inter_broker_listener, node_of, should_register
from kframe_kafka_wire.listeners.security import security_of
from kframe_kafka_wire.requests.transport import WireTransport, open_transport

import kframe
from kframe.errors import ConfigError
from kframe.model.brokers import Endpoint, Registration
from kframe.settings.jaas import parse_login_modules
from verification.zookeeper.certificates import Authority

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def config(text: str) -> dict[str, str]:
    """Keys and values, one pair a line."""
    pairs = (line.strip().partition("=") for line in text.strip().splitlines())
    return {key: value for key, _, value in pairs}


def test_plugin_offers_the_url() -> None:
    builder = kframe.ControllerBuilder(5, "memory:", "kafka:", settings={"listeners": "PLAINTEXT://h:1"})
    builder.registry = kframe.build_registry(extra=[plugin], allowed=())
    transport = builder.build().transport
    assert isinstance(transport, WireTransport)
    assert transport.node.registration.broker_id == 5
    with pytest.raises(ConfigError, match="transport URL"):
        open_transport("kafka://h:1", {})


@pytest.mark.parametrize(
    "text, endpoints, rack",
    [
        ("broker.id=7", [("PLAINTEXT", socket.getfqdn(), 9092, "PLAINTEXT")], None),
        (
            "node.id=7\nlisteners=PLAINTEXT://:0\nadvertised.listeners=PLAINTEXT://h:1\nbroker.rack=r",
            [("PLAINTEXT", "h", 1, "PLAINTEXT")],
            "r",
        ),
        (
            (
                "broker.id=7\nlisteners=in://[::1]:1, OUT://h-2.x:2\nlistener.security.protocol.map=IN:SSL,out:SASL_SSL\n"
                "inter.broker.listener.name=In"
            ),
            [("IN", "::1", 1, "SSL"), ("OUT", "h-2.x", 2, "SASL_SSL")],
            None,
        ),
        ("broker.id=7\nlisteners=SSL://h:1\nsecurity.inter.broker.protocol=SSL", [("SSL", "h", 1, "SSL")], None),
    ],
)
def test_node_of_settings(text: str, endpoints: list[tuple[str, str, int, str]], rack: str | None) -> None:
    advertised = tuple(Endpoint(*endpoint) for endpoint in endpoints)
    assert node_of(config(text)).registration == Registration(7, -1, advertised, rack)


@pytest.mark.parametrize(
    "text, where, value",
    [
        ("listeners=PLAINTEXT://h:1", "broker.id", "''"),
        ("broker.id=-1", "broker.id", "-1"),
        ("broker.id=1\nlisteners=PLAINTEXT//h:1", "listeners", "'PLAINTEXT//h:1'"),
        ("broker.id=1\nlisteners=PLAINTEXT://h:70000", "listeners", "'PLAINTEXT://h:70000'"),
        ("broker.id=1\nlisteners=PLAINTEXT://h:1,plaintext://h:2", "listeners", "PLAINTEXT twice"),
        ("broker.id=1\nlisteners=PLAINTEXT://0.0.0.0:1", "advertised.listeners", "'0.0.0.0'"),
        ("broker.id=1\nlisteners=SSL://h:1", "listeners", "SSL"),
        ("broker.id=1\nlisteners=PLAINTEXT://h:1\ncontrol.plane.listener.name=C", "listeners", "PLAINTEXT"),
        ("broker.id=1\nlisteners=IN://h:1", "listener.security.protocol.map", "PLAINTEXT, SSL"),
        (
            "broker.id=1\nlistener.security.protocol.map=PLAINTEXT:TLS",
            "listener.security.protocol.map",
            "PLAINTEXT:TLS",
        ),
        ("inter.broker.listener.name=A\nsecurity.inter.broker.protocol=SSL", "inter.broker.listener.name", "as well"),
    ],
)
def test_invalid_node_settings_are_reported(text: str, where: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        node_of(config(text))
    assert caught.value.where == f"config key {where}"
    assert value in caught.value.actual


def test_control_requests_use_the_control_listener() -> None:
    assert (inter_broker_listener({}), control_listener({})) == ("PLAINTEXT", "PLAINTEXT")
    named = {"inter.broker.listener.name": "in", "control.plane.listener.name": "c"}
    assert (inter_broker_listener(named), control_listener(named)) == ("IN", "C")


LOGIN = f'{PLAIN} required username="u" password="p\\"q" user_u="p\\"q";'
SASL = "listener.security.protocol.map=IN:SASL_PLAINTEXT\nsasl.mechanism.inter.broker.protocol="


@pytest.mark.parametrize(
    "text, username, password",
    [
        (f"{SASL}PLAIN\nlistener.name.in.plain.sasl.jaas.config={LOGIN}", "u", 'p"q'),
        (
            (
                f"{SASL}GSSAPI\nlistener.name.in.sasl.mechanism.inter.broker.protocol=PLAIN\n"
                f"listener.name.in.plain.sasl.jaas.config={LOGIN}"
            ),
            "u",
            'p"q',
        ),
        (f"{SASL}SCRAM-SHA-512\njava.security.auth.login.config=FILE", "s", "of in"),
        (f"{SASL.replace('IN:', 'OUT:')}PLAIN\njava.security.auth.login.config=FILE", "k", "of all"),
    ],
)
def test_sasl_credentials_of_the_controller(tmp_path: Path, text: str, username: str, password: str) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(
        f"// ours\nKafkaServer {{ {PLAIN} required username=k password='of all'; }};\n"
        f'in.KafkaServer {{ {PLAIN} required; /* }} */ {SCRAM} required username="s" password="of in"; }};'
    )
    listener = "OUT" if "OUT" in text else "IN"
    credentials = security_of(config(text.replace("FILE", str(file))), listener).credentials()
    assert credentials is not None
    assert (credentials.username, credentials.password) == (username, password)
    assert password not in repr(credentials)


@pytest.mark.parametrize(
    "text, where, value",
    [
        (f"{SASL}GSSAPI", "sasl.mechanism.inter.broker.protocol", "GSSAPI"),
        (f"{SASL}PLAIN", "plain.sasl.jaas.config", "nothing"),
        (f"{SASL}PLAIN\nlistener.name.in.plain.sasl.jaas.config={SCRAM} required;", "jaas.config", "ScramLoginModule"),
        (f"{SASL}PLAIN\nlistener.name.in.plain.sasl.jaas.config={LOGIN}{LOGIN}", "jaas.config", "2 login modules"),
        (
            f"{SASL}PLAIN\nlistener.name.in.plain.sasl.jaas.config={PLAIN} required username=u;",
            "login of",
            "no password",
        ),
        (f"{SASL}PLAIN\njava.security.auth.login.config=/nowhere", "JAAS file /nowhere", "FileNotFoundError"),
    ],
)
def test_invalid_login_settings_are_reported(text: str, where: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        security_of(config(text), "IN").credentials()
    assert where in caught.value.where
    assert value in caught.value.actual


@pytest.mark.parametrize(
    "text",
    [
        "M",
        "M needed;",
        "M required",
        "M required a;",
        "M required a=;",
        "M required a=b",
        'M required a="b;',
        "M required a==b;",
    ],
)
def test_malformed_jaas_is_reported(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_login_modules("here", text)
    assert "b" not in caught.value.actual.split()


@pytest.mark.parametrize("kind", ["PEM file", "PEM text", "encrypted PEM", "PKCS12"])
def test_stores_are_loaded(tmp_path: Path, kind: str) -> None:
    """Each gives an SSL context with the certificate that trusts the authority only."""
    authority = Authority(tmp_path)
    identity = authority.issue("us", "h")
    pem, trusted = identity.key_and_certificate.read_text(), authority.path.read_text()
    start = pem.index("-----BEGIN CERTIFICATE")
    values = {"ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM"}
    key, certificate = load_pem_private_key(pem.encode(), None), x509.load_pem_x509_certificate(pem[start:].encode())
    match kind:
        case "PEM file":
            values |= {"ssl.keystore.location": str(identity.key_and_certificate)}
            values |= {"ssl.truststore.location": str(authority.path)}
        case "PEM text":
            values |= {"ssl.keystore.key": pem[:start], "ssl.keystore.certificate.chain": pem[start:]}
            values |= {"ssl.truststore.certificates": trusted}
        case "encrypted PEM":
            from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat

            secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")).decode()
            values |= {"ssl.keystore.key": secret, "ssl.keystore.certificate.chain": pem[start:]}
            values |= {"ssl.key.password": "secret", "ssl.truststore.certificates": trusted}
        case _:
            (tmp_path / "keys.p12").write_bytes(
                serialize_key_and_certificates(b"us", key, certificate, None, BestAvailableEncryption(b"secret"))  # type: ignore[arg-type]
            )
            root = x509.load_pem_x509_certificate(trusted.encode())
            (tmp_path / "trust.p12").write_bytes(
                serialize_key_and_certificates(None, None, None, [root], BestAvailableEncryption(b"secret"))
            )
            for store, file in (("keystore", "keys.p12"), ("truststore", "trust.p12")):
                values |= {f"ssl.{store}.type": "PKCS12", f"ssl.{store}.location": str(tmp_path / file)}
                values |= {f"ssl.{store}.password": "secret"}
    tls = security_of({f"listener.name.ssl.{key}": value for key, value in values.items()}, "SSL").tls
    assert tls is not None
    client, server = tls.client(), tls.server()
    assert [cert["subject"] for cert in client.get_ca_certs()] == [((("commonName", "kframe-tests"),),)]
    assert (client.check_hostname, client.verify_mode) == (True, ssl.CERT_REQUIRED)
    assert server.verify_mode == ssl.CERT_NONE
    assert client.minimum_version == server.minimum_version == ssl.TLSVersion.TLSv1_2
    handshake(client, server)


def handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Complete a TLS handshake in memory."""
    pipes = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(pipes[0], pipes[1], server_hostname="h"),
        server.wrap_bio(pipes[1], pipes[0], server_side=True),
    ]
    while ends:
        for end in list(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                continue


@pytest.mark.parametrize(
    "text, where, value",
    [
        ("ssl.keystore.location=/x", "ssl.keystore.type", "JKS"),
        ("ssl.truststore.location=/x\nssl.truststore.type=jks", "ssl.truststore.type", "JKS"),
        ("ssl.truststore.location=/x\nssl.truststore.type=PEM", "ssl.truststore.location", "cannot be used"),
        ("ssl.truststore.location=/x\nssl.truststore.type=PKCS12", "ssl.truststore.location", "cannot be read"),
        ("ssl.keystore.location=/x\nssl.keystore.type=PEM", "ssl.keystore.location", "cannot be used"),
        ("ssl.truststore.certificates=x\nssl.truststore.type=PEM", "ssl.truststore.certificates", "cannot be used"),
        ("ssl.endpoint.identification.algorithm=LDAPS", "ssl.endpoint.identification.algorithm", "ldaps"),
        ("ssl.client.auth=perhaps", "ssl.client.auth", "perhaps"),
    ],
)
def test_invalid_store_settings_are_reported(text: str, where: str, value: str) -> None:
    def client() -> None:
        tls = security_of(config(text), "SSL").tls
        assert tls is not None
        tls.client()

    with pytest.raises(ConfigError) as caught:
        client()
    assert caught.value.where == f"config key {where}"
    assert value in caught.value.actual


def test_mechanisms_of_a_server() -> None:
    values = {"listener.security.protocol.map": "IN:SASL_PLAINTEXT", "sasl.enabled.mechanisms": "PLAIN, SCRAM-SHA-256"}
    assert security_of(values, "IN").mechanisms() == ("PLAIN", "SCRAM-SHA-256")
    assert security_of({}, "PLAINTEXT").mechanisms() == ()
    assert security_of({}, "PLAINTEXT").credentials() is None


@pytest.mark.parametrize(
    "config, expected",
    [
        ({}, False),
        ({"inter.broker.protocol.version": "3.0"}, False),
        ({"inter.broker.protocol.version": "2.8"}, True),
        ({"inter.broker.protocol.version": "2.8", "kframe.register": "false"}, False),
        ({"kframe.register": "true"}, True),
    ],
)
def test_registration_in_brokers_ids_by_protocol(config: dict[str, str], expected: bool) -> None:
    """Brokers before 3.0 look for the controller in ``/brokers/ids``."""
    assert should_register(config) is expected
