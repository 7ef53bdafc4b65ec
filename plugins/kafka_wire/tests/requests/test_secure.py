"""TLS and SASL to fake brokers and to real Kafka brokers."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kframe_kafka_wire.connections.broker import BrokerConnection, Target
from kframe_kafka_wire.listeners.security import Credentials, security_of
from kframe_kafka_wire.protocol.errors import WireError
from kframe_kafka_wire.records.store import sanitized
from kframe_kafka_wire.requests.transport import WireTransport
from kframe_kafka_wire.sandbox.fake_broker import CONTROLLER_ID, FakeBroker, settings

from kframe.model.brokers import Endpoint
from kframe.testing.clusters import cluster_of, healthy, registration, requests_of
from kframe.testing.waiting import until
from verification.kafka_wire.broker_metadata import await_metadata, create
from verification.kafka_wire.instances import InstanceProcess
from verification.kafka_wire.real_cluster import KframeCluster
from verification.kafka_wire.secured import tls_settings
from verification.kafka_wire.served import user_record
from verification.zookeeper.certificates import Authority, Identity
from verification.zookeeper.kafka import Cluster
from verification.zookeeper.servers import HOST, ServerHandle
from verification.zookeeper.sessions import session

USER, PASSWORD = "kframe,=user", 'a "secret"\\ of ours'


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


def server(identity: Identity) -> Callable[[Any], Any]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.key_and_certificate)
    return lambda connection: context.wrap_socket(connection, server_side=True)


def secured(authority: Authority, **options: str) -> dict[str, str]:
    return settings(
        listeners=f"PLAINTEXT://{HOST}:9,CONTROLLER://{HOST}:10",
        control_plane_listener_name="CONTROLLER",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
        **tls_settings(authority.path),
        **options,
    )


def send_metadata(transport: WireTransport, broker: FakeBroker, protocol: str = "SSL") -> None:
    """Send UpdateMetadata to a broker on its listener CONTROLLER."""
    known = replace(
        registration(1),
        endpoints=(
            Endpoint("PLAINTEXT", HOST, 1),
            Endpoint("CONTROLLER", HOST, broker.port, protocol),
        ),
    )
    cluster = cluster_of({"t": [healthy(1)]}, registered=[known])
    transport.open(lambda _event: None, lambda: True)
    transport.connect(cluster, (0,))
    transport.send(cluster, requests_of(cluster, metadata=([1], ["t-0"])))


@pytest.mark.parametrize(
    "hosts, algorithm, trusted, message",
    [
        ((HOST,), "https", True, None),
        (("elsewhere",), "", True, None),
        (("elsewhere",), "https", True, "IP address mismatch"),
        ((HOST,), "https", False, "found a certificate that is refused"),
        ((HOST,), "", False, "found a certificate that is refused"),
    ],
    ids=["trusted", "unchecked name", "another name", "untrusted", "untrusted, unchecked name"],
)
def test_broker_certificates_are_verified(
    fakes: Callable[..., FakeBroker],
    transports: Callable[..., WireTransport],
    authority: Authority,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    hosts: tuple[str, ...],
    algorithm: str,
    trusted: bool,
    message: str | None,
) -> None:
    caplog.set_level("INFO")
    signer = authority if trusted else Authority(tmp_path, "untrusted")
    broker = fakes(server(signer.issue("broker", *hosts)))
    transport = transports(secured(authority, ssl_endpoint_identification_algorithm=algorithm))
    send_metadata(transport, broker)
    assert until(lambda: bool(broker.requests) if message is None else message in caplog.text)
    assert (message is None) == bool(broker.requests)


def test_plaintext_to_tls_port_is_reported(
    fakes: Callable[..., FakeBroker],
    transports: Callable[..., WireTransport],
    authority: Authority,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The first bytes of its alert look like a size of 352,518,912 bytes (KIP-498)."""
    caplog.set_level("INFO")
    broker = fakes(server(authority.issue("plain", HOST)))
    config = secured(authority) | {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"}
    send_metadata(transports(config), broker)
    assert until(lambda: "the broker speaks TLS on this port" in caplog.text or "reset" in caplog.text)
    assert broker.requests == []


def test_tls_to_plaintext_port_is_reported(
    fakes: Callable[..., FakeBroker],
    transports: Callable[..., WireTransport],
    authority: Authority,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    broker = fakes()
    send_metadata(transports(secured(authority, controller_socket_timeout_ms="100")), broker)
    assert until(lambda: "timed out" in caplog.text)
    assert broker.requests == []


# -- brokers of Kafka


@pytest.mark.parametrize(
    "protocol, mechanism",
    [
        ("SASL_PLAINTEXT", "PLAIN"),
        ("SASL_SSL", "SCRAM-SHA-256"),
        ("SASL_PLAINTEXT", "SCRAM-SHA-512"),
    ],
)
def test_control_plane_listener_of_kafka(
    zookeeper: ServerHandle, tmp_path: Path, authority: Authority, protocol: str, mechanism: str
) -> None:
    identity = authority.issue("kafka", HOST)
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    escaped = re.sub(r'(["\\])', r"\\\1", PASSWORD)
    login = f'org.apache.kafka.common.security.{module} required username="{USER}" password="{escaped}"'
    ours = {f"listener.name.controller.{mechanism.lower()}.sasl.jaas.config": f"{login};"}
    theirs = dict.fromkeys(ours, f'{login} "user_{USER}"="{escaped}";')
    shared = {
        "listeners": f"PLAINTEXT://{HOST}:{{port}},CONTROLLER://{HOST}:{{other_port}}",
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:{protocol}",
        "control.plane.listener.name": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        **tls_settings(authority.path, identity.key_and_certificate),
        "ssl.client.auth": "required",
        "sasl.mechanism.inter.broker.protocol": mechanism,
        "sasl.enabled.mechanisms": mechanism,
    }
    listeners = {"listeners": "PLAINTEXT://{address},CONTROLLER://{other_address}"}
    settings = [
        {key: value.replace("\\", "\\\\") for key, value in {**shared, **own}.items()}
        for own in (theirs, {**ours, **listeners})
    ]
    chroot = f"/{protocol}-{mechanism}"
    address = f"{zookeeper.address}{chroot}"
    if mechanism.startswith("SCRAM"):
        with session(zookeeper.address) as root:
            user = f"{chroot}/config/users/{sanitized(USER)}"
            root.create(user, user_record(mechanism, PASSWORD).encode(), makepath=True)
    kafka = Cluster(tmp_path, address, (1,), settings[0])
    kframe = InstanceProcess(address, tmp_path / "kframe", CONTROLLER_ID, "--create-chroot", settings=settings[1])
    with KframeCluster(tmp_path, kafka, kframe) as cluster:
        create(cluster.client, "t", [[1]])
        assert await_metadata(kafka, {"t-0": (1, [1], [1])}, (1,))
        security = security_of({**shared, **ours}, "CONTROLLER")
        assert security.credentials() == Credentials(mechanism, USER, PASSWORD)
        wrong = Credentials(mechanism, USER, "another")
        connection = BrokerConnection(Target(HOST, kafka.brokers[1].other_port, security.tls, wrong, "test"))
        with pytest.raises(WireError, match=f"refuses the login by {mechanism}"):
            connection.open(10_000)
        connection.close()
