"""Sessions of test clients: open, observed by their connection states, and ended early; and fixtures of tests."""

from __future__ import annotations

import gzip
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from operator import methodcaller
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture, commit
from kframe_zookeeper.session.client import make_client
from kframe_zookeeper.session.settings import ConnectSettings, settings_of_url

from kframe.plugin.cluster import ClusterState
from kframe.testing.waiting import PATIENCE_S

#: Session timeout of observing clients, long enough for a busy machine.
SESSION_S: Final = 60.0
_NUMBERS: Final = itertools.count()
_SECRET: Final = 0xB3415C00
_MULTIPLIER, _MASK = 0x5DEECE66D, 2**48 - 1


def settings_for(address: str, session_timeout_ms: int = 6000) -> ConnectSettings:
    """Settings for a server and a chroot that no other test uses."""
    return settings_of_url(f"zookeeper://{address}/test-{next(_NUMBERS)}?session.timeout.ms={session_timeout_ms}")


class States:
    """Records the states of a client, so that tests can wait for the next."""

    def __init__(self, client: KazooClient) -> None:
        self._changed = threading.Condition()
        self._reached: list[str] = []
        client.add_listener(self._on_event)

    def _on_event(self, state: str) -> None:
        with self._changed:
            self._reached.append(state)
            self._changed.notify_all()

    def wait_for(self, state: str) -> None:
        """Return when ``state`` was reached since the last wait."""
        with self._changed:
            assert self._changed.wait_for(lambda: state in self._reached, PATIENCE_S), (
                f"{state} not among {self._reached}"
            )
            del self._reached[: self._reached.index(state) + 1]


@contextmanager
def started(settings: ConnectSettings) -> Iterator[KazooClient]:
    """A connected client in its chroot."""
    client = make_client(settings)
    try:
        client.start(PATIENCE_S)
        yield client
    finally:
        client.stop()
        client.close()


@contextmanager
def session(address: str, **options: Any) -> Iterator[KazooClient]:
    """A client of HOST:PORT/CHROOT, connected while the block runs."""
    client = KazooClient(address, **{"timeout": SESSION_S, **options})
    try:
        client.start(PATIENCE_S)
        yield client
    finally:
        client.stop()
        client.close()


def password_of(session_id: int) -> bytes:
    """The password of a session at a ZooKeeper 3.8 server (``ZooKeeperServer.generatePasswd``).

    It has 16 bytes of ``java.util.Random``, seeded by the session id.
    """
    return b"".join(_ints(session_id ^ _SECRET, 4))


def _ints(seed: int, count: int) -> Iterator[bytes]:
    state = (seed ^ _MULTIPLIER) & _MASK
    for _ in range(count):
        state = (state * _MULTIPLIER + 11) & _MASK
        yield (state >> 16).to_bytes(4, "little")


def end_session_of(client: KazooClient, address: str, path: str) -> None:
    """End the session that owns the node at ``path`` (below the chroot). A missing node is ignored.

    The owner must be dead, because a live client would continue in another session.
    """
    try:
        owner = client.retry(client.get, path)[1].owner_session_id
    except NoNodeError:
        return
    with session(address, client_id=(owner, password_of(owner))):
        pass


def load_dump(hosts: str, path: Path) -> None:
    """Create the nodes of a gzipped dump below the chroot of ``hosts``, each at its version, except ``/controller``.

    Ephemeral nodes become persistent. In the dump, parents precede their children.
    """
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        nodes = sorted((json.loads(line) for line in lines), key=lambda node: str(node["path"]))
    operations: list[methodcaller] = []
    for node in nodes:
        name, data = node["path"], (node["data"] or "").encode()
        if name in ("/", "/controller") or name.startswith("/zookeeper"):
            continue
        operations.append(methodcaller("create", name, data))
        operations += [methodcaller("set_data", name, data)] * node["version"]
    address, _, chroot = hosts.partition("/")
    with session(address) as client:
        client.ensure_path(f"/{chroot}")
    with session(hosts) as client:
        commit(client, operations)


Fixture = TypeVar("Fixture", bound=ZooKeeperFixture)
FixtureFactory: TypeAlias = Callable[..., ZooKeeperFixture]


@contextmanager
def fixture_factory(settings: ConnectSettings, kind: type[Fixture]) -> Iterator[Callable[..., Fixture]]:
    """A function from a cluster, and from settings that replace those given here, to a fixture.

    The fixtures are closed after the block.
    """
    with ExitStack() as stack:

        def make(cluster: ClusterState, **overrides: Any) -> Fixture:
            return stack.enter_context(closing(kind(replace(settings, **overrides), cluster)))

        yield make
