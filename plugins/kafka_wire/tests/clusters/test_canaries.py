"""No secret is shown: not in output, logs, pages, ``repr``, arguments or environment of a process, nor in errors.

Every setting and record with a secret has a distinct one, and failures are provoked.
"""

from __future__ import annotations

import base64
import gc
import json
import random
import signal
import ssl
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kframe_kafka_wire.records.credentials import scram_lookup
from kframe_kafka_wire.records.store import Records
from kframe_kafka_wire.requests.transport import WireTransport
from kframe_kafka_wire.sandbox.fake_broker import FakeBroker
from kframe_kafka_wire.server.server import WireServer
from kframe_zookeeper.session.client import make_client
from kframe_zookeeper.session.settings import settings_of_config

from kframe.settings.settings import Settings
from kframe.testing.waiting import until
from verification.kafka_wire.canaries import CANARIES, LISTENERS, Stores, leaked_secrets, scram_user
from verification.kafka_wire.client import Client
from verification.kafka_wire.instances import InstanceProcess
from verification.kafka_wire.served import FakeRecords, Served
from verification.zookeeper.certificates import Authority
from verification.zookeeper.commands import invoke
from verification.zookeeper.servers import HOST, ServerHandle, ServerOptions, free_ports


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    return Stores(tmp_path / "stores")


def with_addresses(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings whose listeners have free ports."""
    ports = iter(free_ports(3))
    listeners = ",".join(f"{name}://{HOST}:{next(ports)}" for name in LISTENERS)
    return {key: value.replace("\\n", "\n") for key, value in {**settings, "listeners": listeners}.items()}


def reprs(before: Sequence[object]) -> dict[str, str]:
    """``repr`` of each object of kframe in this process, by class, except objects ``before``, of other tests."""
    known, shown = {id(each) for each in before}, defaultdict[str, list[str]](list)
    for each in gc.get_objects():
        module = str(type(each).__module__)
        if module.startswith("kframe") and ".testing" not in module and id(each) not in known:
            with suppress(Exception):  # Mutilated objects, such as those under construction.
                shown[type(each).__qualname__].append(repr(each))
    return {name: "\n".join(texts) for name, texts in shown.items()}


def test_repr_contains_no_secret(stores: Stores) -> None:
    before = gc.get_objects()
    config = with_addresses(stores.settings())
    properties = stores.folder / "server.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in stores.settings().items()))
    records: Records = FakeRecords({"/config/users/carol": scram_user()})
    gathered = Settings.gather({}, {"KFRAME_SSL_KEY_PASSWORD": CANARIES["key"]}, properties)
    objects = [
        gathered,
        gathered.controller_config(),
        WireTransport({**config, "broker.id": "1000"}),
        settings_of_config({**config, "zookeeper.connect": f"{HOST}:1"}),
        scram_lookup(records)("SCRAM-SHA-256", "carol"),
    ]
    with Served({}, [], config, records) as served, logged_in(served.server, stores) as client:
        client.send(b"\0\0\x10\0")  # The server waits for a frame.
        shown = reprs(before)
    assert {
        "Settings",
        "Setting",
        "ConnectSettings",
        "SaslLogin",
        "WireServer",
        "WireTransport",
        "Tls",
        "Credentials",
        "KeyStore",
        "TrustStore",
        "ScramCredential",
        "ServerContext",
        "ListenerContext",
        "Tokens",
    } <= shown.keys()
    assert sorted({name for name, _ in leaked_secrets(shown, stores.secrets)}) == []
    assert len(objects) == 5


def test_search_detects_encoded_secrets() -> None:
    secret = "it's a \\ secret"
    forms = (secret, repr(secret), base64.b64encode(secret.encode()).decode(), secret.encode().hex())
    assert all(leaked_secrets({"log": f"before {form} after"}, [secret]) == [("log", secret)] for form in forms)
    assert leaked_secrets({"log": "another secret"}, [secret]) == []


def context(stores: Stores) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=stores.authority.path)


def logged_in(server: WireServer, stores: Stores) -> Client:
    return log_in(Client(server.addresses["PLAIN"], context(stores)))


def log_in(client: Client) -> Client:
    assert client.log_in("alice", CANARIES["plain-user"]) == 0
    return client


# -- a process


class CanaryRun:
    """A controller with a secret in every setting, its own ZooKeeper, and a broker whose login fails."""

    def __init__(self, stores: Stores, folder: Path) -> None:
        self.stores = stores
        options = ServerOptions(identity=stores.zookeeper_server, users={"kafka": CANARIES["zookeeper-login"]})
        self.server = ServerHandle(folder / "zookeeper", options)
        self.server.start()
        broker_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        broker_tls.load_cert_chain(stores.broker.key_and_certificate)
        self.broker = FakeBroker(lambda connection: broker_tls.wrap_socket(connection, server_side=True))
        (port,) = free_ports(1)
        self.inline = f"{HOST}:{port}"
        settings = stores.settings()
        settings["listeners"] = settings["listeners"].replace("{third_address}", self.inline)
        self.kframe = InstanceProcess(
            f"{self.server.secure_address}/kafka",
            folder / "kframe",
            1000,
            "--create-chroot",
            "--log-level",
            "DEBUG",
            "-v",
            settings=settings,
        )
        self.kframe.await_ready(active=True)

    def close(self) -> None:
        self.kframe.kill()
        self.broker.close()
        self.server.kill()

    def zookeeper(self) -> KazooClient:
        config = {**with_addresses(self.stores.settings()), "zookeeper.connect": f"{self.server.secure_address}/kafka"}
        return make_client(settings_of_config(config))

    def clients(self) -> Iterator[Client]:
        """A connection to each listener."""
        yield Client(self.kframe.address, context(self.stores))
        yield Client(self.kframe.other_address)
        secured = context(self.stores)
        secured.load_cert_chain(self.stores.broker.key_and_certificate)
        yield Client(self.inline, secured)

    def shown(self) -> dict[str, str]:
        """Everything that the process shows, by name."""
        proc = Path(f"/proc/{self.kframe.pid}")
        files = [path for path in self.kframe.folder.rglob("*") if path.is_file() and path.name != "server.properties"]
        status = invoke("controller", "status", "--config", self.kframe.folder / "server.properties", "-o", "json")
        return {
            **{path: self.kframe.page(path)[1] for path in ("/metrics", "/status", "/healthz", "/readyz")},
            **{name: (proc / name).read_text(errors="replace") for name in ("cmdline", "environ", "comm")},
            **{str(path): path.read_text(errors="replace") for path in files},
            "controller status": status.stdout + status.stderr,
            "threads": self.thread_names(),
        }

    def thread_names(self) -> str:
        names = ""
        for task in Path(f"/proc/{self.kframe.pid}/task").iterdir():
            with suppress(OSError):  # The thread has ended meanwhile.
                names += (task / "comm").read_text()
        return names


@pytest.fixture
def run(needs_java: None, stores: Stores, tmp_path: Path) -> Iterator[CanaryRun]:
    run = CanaryRun(stores, tmp_path / "run")
    yield run
    run.close()


def provoke_failed_logins(run: CanaryRun) -> None:
    """Wrong passwords, malformed tokens, and certificates of an unknown issuer."""
    wrong, right = CANARIES["wrong-password"].encode(), CANARIES["plain-user"].encode()
    tokens = (b"\0alice\0" + wrong, b"\0" + wrong + b"\0x", b"\xff" + right, b"eve\0alice\0" + right, right, b"\0" * 9)
    for token in tokens:
        with Client(run.kframe.address, context(run.stores)) as client:
            client.ask(17, 1, mechanism="PLAIN")
            assert client.ask(36, 2, auth_bytes=token)["error_code"] == 58
    for message in (b"n,,n=carol,r=nonce", b"n,,n=" + wrong, right):
        with Client(run.kframe.other_address) as client:
            client.ask(17, 1, mechanism="SCRAM-SHA-256")
            client.ask(36, 2, auth_bytes=message)
            with suppress(ConnectionError):
                client.ask(36, 2, auth_bytes=b"c=biws,r=nonce,p=" + base64.b64encode(wrong))
    untrusted = context(run.stores)
    untrusted.load_cert_chain(Authority(run.stores.folder / "other").issue("x").key_and_certificate)
    with suppress(OSError), Client(run.inline, untrusted) as client:
        client.ask(18, 0)


def provoke_malformed_frames(run: CanaryRun) -> None:
    """Random bytes, and requests that are cut off after a secret."""
    draw = random.Random(1)
    for _ in range(10):
        for client in run.clients():
            with client, suppress(OSError):
                client.send(draw.randbytes(200) + CANARIES["wrong-password"].encode())
                client.socket.settimeout(0.2)
                client.receive()


def provoke_administration(run: CanaryRun) -> list[str]:
    """Requests that have secrets, and their responses. Returns the secrets that the server has made."""
    with log_in(Client(run.kframe.address, context(run.stores))) as client:
        token = client.ask(38, 3, renewers=[], max_lifetime=86_400_000)
        upsertion = {
            "name": "dave",
            "mechanism": 1,
            "iterations": 4096,
            "salt": CANARIES["scram-salt"].encode(),
            "salted_password": CANARIES["salted-password"].encode(),
        }
        client.ask(51, 0, deletions=[], upsertions=[upsertion])
        change = {"name": "ssl.keystore.password", "config_operation": 0, "value": CANARIES["broker-setting"]}
        for name in ("", "1", "1000"):
            resource = {"resource_type": 4, "resource_name": name, "configs": [change]}
            client.ask(44, 1, resources=[resource], validate_only=False)
            described = client.ask(32, 4, resources=[{**resource, "configuration_keys": None}])
            assert leaked_secrets({"DescribeConfigs": repr(described)}, run.stores.secrets) == []
    assert token["error_code"] == 0
    return [base64.b64encode(token["hmac"]).decode(), token["hmac"].hex()]


def test_process_output_contains_no_secret(run: CanaryRun) -> None:
    zookeeper = run.zookeeper()
    zookeeper.start(30)
    zookeeper.create("/config/users/carol", scram_user().encode(), makepath=True)
    registration = {
        "version": 5,
        "endpoints": [f"PLAIN://{HOST}:{run.broker.port}"],
        "features": {},
        "host": None,
        "port": -1,
        "listener_security_protocol_map": {"PLAIN": "SASL_SSL"},
        "jmx_port": -1,
        "timestamp": "1",
    }
    zookeeper.create("/brokers/ids/1", json.dumps(registration).encode(), ephemeral=True)
    assert until(lambda: run.broker.connections > 0)  # It closes the connection on SaslHandshake.
    provoke_failed_logins(run)
    provoke_malformed_frames(run)
    new_secrets = provoke_administration(run)
    secrets = [*run.stores.secrets, *new_secrets]
    shown = run.shown()
    assert "dropped (login_failed)" in run.kframe.log
    assert "dropped (frame_refused)" in run.kframe.log
    assert leaked_secrets(shown, secrets) == []
    zookeeper.stop()
    zookeeper.close()
    run.server.kill()
    assert run.kframe.stop(number=signal.SIGABRT) == -signal.SIGABRT
    assert leaked_secrets({"after the crash": run.kframe.log}, secrets) == []


#: Settings that fail at the start, next to secrets.
BROKEN: dict[str, dict[str, str]] = {
    "wrong password of a keystore": {"listener.name.plain.ssl.keystore.password": CANARIES["wrong-password"]},
    "wrong password of a truststore": {"ssl.truststore.password": CANARIES["wrong-password"]},
    "wrong password of ZooKeeper's key": {"zookeeper.ssl.keystore.password": CANARIES["wrong-password"]},
    "malformed login": {"listener.name.plain.plain.sasl.jaas.config": f'x required password="{CANARIES["plain-own"]}'},
    "malformed key": {"listener.name.inline.ssl.keystore.key": CANARIES["key"]},
}
#: Keys that are unknown, beside any of BROKEN.
MISSPELT = {"ssl.keystore.pasword": CANARIES["keystore"], "delegation.token.secret": CANARIES["token-key"]}


@pytest.mark.parametrize("name", BROKEN)
def test_output_of_failed_start_contains_no_secret(name: str, stores: Stores, tmp_path: Path) -> None:
    settings = {**stores.settings(), "zookeeper.connect": f"{HOST}:1", "broker.id": "1000", **MISSPELT, **BROKEN[name]}
    settings["zookeeper.connection.timeout.ms"] = "100"
    ports = iter(free_ports(3))
    settings["listeners"] = ",".join(f"{listener}://{HOST}:{next(ports)}" for listener in LISTENERS)
    path = tmp_path / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    done = invoke("controller", "run", "-v", "--log-level", "DEBUG", "--config", path)
    assert done.returncode != 0
    assert leaked_secrets({"stdout": done.stdout, "stderr": done.stderr}, stores.secrets) == []
