"""Test clients, each in its own chroot, and the connection states that they pass through."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState

from kframe_zookeeper.connect import make_client
from kframe_zookeeper.settings import ConnectSettings, settings_of_url

WAIT_S: Final = 120.0
_NUMBERS: Final = itertools.count()


def settings_for(address: str, session_timeout_ms: int = 6000) -> ConnectSettings:
    """Settings for a server and a chroot that no other test uses."""
    return settings_of_url(f"zookeeper://{address}/test-{next(_NUMBERS)}?session.timeout.ms={session_timeout_ms}")


class States:
    """Records the states of a client, so that tests can wait for the next."""

    def __init__(self, client: KazooClient) -> None:
        self._changed = threading.Condition()
        self._seen: list[str] = []
        client.add_listener(self._on_event)

    def _on_event(self, state: str) -> None:
        with self._changed:
            self._seen.append(state)
            self._changed.notify_all()

    def wait_for(self, state: str) -> None:
        """Return when ``state`` was reached since the last wait."""
        with self._changed:
            assert self._changed.wait_for(lambda: state in self._seen, WAIT_S), f"{state} not among {self._seen}"
            del self._seen[: self._seen.index(state) + 1]


@contextmanager
def started(settings: ConnectSettings) -> Iterator[tuple[KazooClient, States]]:
    """A connected client in its chroot."""
    client = make_client(settings)
    states = States(client)
    try:
        client.start(WAIT_S)
        states.wait_for(KazooState.CONNECTED)
        yield client, states
    finally:
        client.stop()
        client.close()
