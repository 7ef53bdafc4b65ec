"""A controller with TLS and SASL listeners on loopback, and the settings of its clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kframe_kafka_wire.access.authorizer import ACL_AUTHORIZER

from kframe.plugin.cluster import Endpoint, Registration
from kframe.testing.clusters import PartitionSpec
from verification.kafka_wire.served import FakeRecords, Served, user_record
from verification.zookeeper.certificates import Authority
from verification.zookeeper.servers import free_ports

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PROTOCOLS: Final = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
#: Super users. Other users may do nothing.
SUPER_USERS: Final = "User:CN=client;User:alice;User:carol;User:dave"


def certificates(folder: Path) -> Path:
    """Write the files of an authority, a server, a client and an untrusted client to a folder."""
    authority = Authority(folder, "authority")
    authority.issue("server", "127.0.0.1")
    authority.issue("client")
    Authority(folder, "other").issue("untrusted")
    return folder


def secured(folder: Path, topics: Mapping[str, Sequence[PartitionSpec]], brokers: Sequence[int] = (1,)) -> Served:
    """A controller, not started yet, with a listener for each of PROTOCOLS. Brokers are registered on them, too.

    Users: alice (PLAIN, "secret"), carol and dave (SCRAM-SHA-256 and 512, "pencil"), and eve (PLAIN, "x") without
    rights.
    """
    ports = dict(zip(PROTOCOLS, free_ports(len(PROTOCOLS)), strict=True))
    config = {
        "listeners": ",".join(f"{listener}://127.0.0.1:{port}" for listener, port in ports.items()),
        "inter.broker.listener.name": "SASL_SSL",
        **tls(folder, "server"),
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN_MODULE} user_alice="secret" user_eve="x";',
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN_MODULE} user_alice="secret";',
        "authorizer.class.name": ACL_AUTHORIZER,
        "super.users": SUPER_USERS,
    }
    users = {
        "/config/users/carol": user_record("SCRAM-SHA-256", "pencil"),
        "/config/users/dave": user_record("SCRAM-SHA-512", "pencil"),
    }
    endpoints = tuple(Endpoint(protocol, "127.0.0.1", port, protocol) for protocol, port in ports.items())
    return Served(
        topics,
        [Registration(broker_id, 100 * broker_id, endpoints) for broker_id in brokers],
        config,
        FakeRecords(users),
    )


def login(mechanism: str, user: str, password: str) -> dict[str, str]:
    """The SASL settings of a client."""
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} username="{user}" password="{password}";',
    }


def tls_settings(authority: Path, key: Path | None = None) -> dict[str, str]:
    """The truststore of a node or client as PEM file, and its certificate if ``key`` is given."""
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority)}
    keystore = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(key)}
    return trust | (keystore if key else {})


def tls(folder: Path, key: str = "", authority: str = "authority") -> dict[str, str]:
    """The same of a client whose files ``certificates`` has written to a folder."""
    return tls_settings(folder / f"{authority}.pem", folder / f"{key}.pem" if key else None)


def login_listener(**passwords: str) -> dict[str, str]:
    """The settings of a controller with one listener, LOGIN, and the passwords of users by PLAIN."""
    users = " ".join(f'user_{user}="{password}"' for user, password in passwords.items())
    return {
        "listeners": "LOGIN://127.0.0.1:0",
        "listener.security.protocol.map": "LOGIN:SASL_PLAINTEXT",
        "inter.broker.listener.name": "LOGIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": f"{PLAIN_MODULE} {users};",
        "connection.failed.authentication.delay.ms": "0",
    }


class ClientLogin(NamedTuple):
    """A client of the controller ``secured``."""

    listener: str
    sasl: Mapping[str, str]
    key: str = ""
    """The name of its certificate. Empty for none."""
    authority: str = "authority"
    """The name of the authority that it trusts."""

    def settings(self, folder: Path) -> dict[str, str]:
        """Its settings by the keys of Kafka's clients. ``folder`` has the certificates."""
        secure = tls(folder, self.key, self.authority) if self.listener.endswith("SSL") else {}
        return {"security.protocol": self.listener, **secure, **self.sasl}


#: Clients that may do everything.
AUTHORIZED_CLIENTS: Final = {
    "a certificate": ClientLogin("SSL", {}, "client"),
    "PLAIN": ClientLogin("SASL_PLAINTEXT", login("PLAIN", "alice", "secret")),
    "SCRAM-SHA-256": ClientLogin("SASL_PLAINTEXT", login("SCRAM-SHA-256", "carol", "pencil")),
    "SCRAM-SHA-512 over TLS": ClientLogin("SASL_SSL", login("SCRAM-SHA-512", "dave", "pencil")),
    "PLAIN over TLS": ClientLogin("SASL_SSL", login("PLAIN", "alice", "secret")),
}
#: Clients that do not trust the controller, whose login fails, or that may do nothing.
REFUSED_CLIENTS: Final = {
    "another authority": ClientLogin("SASL_SSL", login("PLAIN", "alice", "secret"), authority="other"),
    "no certificate": ClientLogin("SSL", {}),
    "an untrusted certificate": ClientLogin("SSL", {}, "untrusted"),
    "a wrong password": ClientLogin("SASL_PLAINTEXT", login("PLAIN", "alice", "x")),
    "a wrong proof": ClientLogin("SASL_SSL", login("SCRAM-SHA-512", "dave", "x")),
    "no rights": ClientLogin("SASL_PLAINTEXT", login("PLAIN", "eve", "x")),
}
