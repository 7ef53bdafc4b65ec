"""docs/explanation/life-of-a-broker-failure.md lists exactly the functions that a broker failure passes through."""

from __future__ import annotations

import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
from kframe_kafka_wire.requests.transport import WireTransport
from kframe_kafka_wire.sandbox import fake_broker
from kframe_kafka_wire.sandbox.fake_broker import FakeBroker
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture

from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded import MemoryEnsemble
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.runtime.clock import SystemClock
from kframe.runtime.loop import ControllerLoop
from kframe.testing.clusters import PartitionSpec, cluster_of
from kframe.testing.store_fixture import StorageFixture
from kframe.testing.waiting import until
from verification.zookeeper.servers import ServerHandle
from verification.zookeeper.sessions import settings_for

ROOT: Final = Path(__file__).parents[4]
PAGE: Final = ROOT / "docs" / "explanation" / "life-of-a-broker-failure.md"
ROW: Final = re.compile(r"^\| (\d+) \| `([\w.]+)` \| `([\w./]+)` \| (.+\.) \|$", re.MULTILINE)
#: kazoo calls this method when a packet with a watch event arrives.
PACKET: Final = "_Connection._read_watch_event"
#: Functions at which the call stack is recorded. Sending to a broker is another such point.
RECORDED_AT: Final = {
    PACKET,
    "Worker.put",
    "EventQueue.put",
    "ask",
    "reread_registrations",
    "elect_builtin",
    "StateWriter.write",
    "RequestBatch.close",
    "Encoder.encode",
    "Channel.add",
}
STORE, TRANSPORT = "plugins/zookeeper/", "plugins/kafka_wire/kframe_kafka_wire/"
#: Code that replaces ZooKeeper (with the table of its functions) and the brokers, and the tests.
STAND_INS: Final = (
    "kframe/embedded/",
    "kframe/ports/",
    "plugins/kafka_wire/kframe_kafka_wire/sandbox/",
    "plugins/kafka_wire/tests/",
)
FAILING, SURVIVING = 1, (2, 3)


class CallStacks:
    """The public functions of this repository on the call stacks at the recorded points, as (file, name)."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()
        self._recording = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Profile this thread and those that start from here on, but record nothing before ``start``."""
        before = sys.getprofile()
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            self._recording = False
            threading.setprofile(None)
            sys.setprofile(before)

    def start(self) -> None:
        """Record from here on."""
        self._recording = True

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self._recording:
            return
        entered = event == "call" and frame.f_code.co_qualname in RECORDED_AT
        sends = event == "c_call" and isinstance(getattr(argument, "__self__", None), socket.socket)
        if entered:
            self.functions |= set(_public(frame))
        elif sends and argument.__name__ in ("send", "sendall", "sendmsg"):
            functions = set(_public(frame))
            if any(file.startswith(TRANSPORT) for file, _ in functions):
                self.functions |= functions


def _public(frame: FrameType | None) -> Iterator[tuple[str, str]]:
    while frame is not None:
        path, name = Path(frame.f_code.co_filename), frame.f_code.co_qualname
        if path.is_relative_to(ROOT) and "site-packages" not in path.parts:
            file = path.relative_to(ROOT).as_posix()
            private = name.rpartition(".")[2].startswith("_") or "<" in name
            if (name == PACKET or not private) and not file.startswith(STAND_INS):
                yield file, name
        frame = frame.f_back


def functions_of_a_failure(store_cluster: Callable[[ClusterState], StorageFixture]) -> set[tuple[str, str]]:
    """Fail one of three brokers under a running controller, and record until the others have received all requests."""
    stacks = CallStacks()
    fakes = {broker_id: FakeBroker() for broker_id in (FAILING, *SURVIVING)}
    partitions = [PartitionSpec((1, 2, 3)), PartitionSpec((2, 3, 1)), PartitionSpec((3, 1, 2))]
    registrations = [fake.registration(broker_id, broker_id) for broker_id, fake in fakes.items()]
    storage = store_cluster(cluster_of({"t": partitions}, registrations))
    transport = WireTransport(fake_broker.settings())
    config = ControllerConfig({"auto.leader.rebalance.enable": False})
    loop = ControllerLoop(ControllerCore(1000, config, Selection({})), storage.connect(), transport, SystemClock())

    def received() -> int:
        return sum(len(fakes[broker_id].requests) for broker_id in SURVIVING)

    def idle() -> bool:
        return all(channel.idle for channel in transport.channels.values())

    with stacks.installed():
        loop.open()
        loop.start()
        try:
            assert until(lambda: loop.status().active and idle())
            before = received()
            stacks.start()
            storage.unregister_brokers([FAILING])
            # LeaderAndIsr and UpdateMetadata of the elections and of the ISR removals.
            assert until(lambda: received() >= before + 4 * len(SURVIVING) and idle())
        finally:
            loop.stop()
            for fake in fakes.values():
                fake.close()
    return stacks.functions


def listed_functions() -> list[tuple[str, str]]:
    rows = ROW.findall(PAGE.read_text())
    assert [int(step) for step, *_ in rows] == list(range(1, len(rows) + 1))
    assert len(rows) <= 32
    return [(file, name) for _, name, file, _ in rows]


def test_page_lists_functions_of_a_broker_failure() -> None:
    listed = listed_functions()
    assert len(set(listed)) == len(listed)
    recorded = functions_of_a_failure(MemoryEnsemble.from_cluster)
    assert recorded - set(listed) == set(), "called, but not on the page"
    assert {function for function in listed if not function[0].startswith(STORE)} - recorded == set(), (
        "on the page, but not called"
    )


@pytest.mark.smoke
def test_page_lists_functions_from_watch_event_of_zookeeper(zookeeper: ServerHandle) -> None:
    with ExitStack() as stack:

        def store_cluster(cluster: ClusterState) -> ZooKeeperFixture:
            return stack.enter_context(closing(ZooKeeperFixture(settings_for(zookeeper.address), cluster)))

        assert functions_of_a_failure(store_cluster) == set(listed_functions())
