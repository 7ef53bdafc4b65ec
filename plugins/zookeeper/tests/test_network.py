"""The network of the fault tests: what its links do, and TCP connections through it."""

from __future__ import annotations

import itertools
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from verification.zookeeper.machine import Machine
from verification.zookeeper.network import BLOCKED, HEALTHY, Impairment, Links, VirtualNetwork, missing

A, B = b"\x0a\x4d\x00\x01", b"\x0a\x4d\x00\x02"
#: Seconds after which a connection through a blocked link is given up.
GIVE_UP_S = 0.5


@pytest.mark.parametrize(
    "impairment, sent_s, due",
    [
        pytest.param(HEALTHY, [5.0, 6.0], [5.0, 6.0], id="healthy"),
        pytest.param(BLOCKED, [5.0, 6.0], [None, None], id="blocked"),
        pytest.param(Impairment(delay_s=0.5), [5.0, 6.0], [5.5, 6.5], id="delayed"),
        pytest.param(Impairment(flap_s=2.0), [1.0, 2.9, 3.0, 4.9, 5.0], [None, None, 3.0, 4.9, None], id="flapping"),
    ],
)
def test_packets_of_an_impaired_pair(impairment: Impairment, sent_s: list[float], due: list[float | None]) -> None:
    links = Links()
    links.impair([(A, B)], impairment, 1.0)
    assert [links.due(A, B, now_s) for now_s in sent_s] == due
    assert [links.due(B, A, now_s) for now_s in sent_s] == sent_s, "the other direction is impaired"
    links.heal()
    assert links.due(A, B, 9.0) == 9.0
    assert links.dropped[A, B] == due.count(None)


def test_losses_depend_on_the_seed() -> None:
    def drops(seed: int) -> list[bool]:
        links = Links(seed)
        links.impair([(A, B)], Impairment(loss=0.3), 0.0)
        return [links.due(A, B, 0.0) is None for _ in range(1_000)]

    assert drops(1) == drops(1) != drops(2)
    assert 250 < sum(drops(1)) < 350


@pytest.fixture(scope="module")
def permitted() -> None:
    if reason := missing():
        pytest.skip(reason)


@pytest.fixture
def network(permitted: None) -> Iterator[VirtualNetwork]:
    network = VirtualNetwork(["a", "b"])
    try:
        yield network
    finally:
        network.close()


@pytest.fixture
def port(network: VirtualNetwork) -> Iterator[int]:
    """A port of machine b at which each connection gets its bytes back."""
    with network.machines["b"].entered():
        server = socket.create_server((network.machines["b"].address, 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                while data := connection.recv(65_536):
                    connection.sendall(data)

    thread = threading.Thread(target=serve)
    thread.start()
    yield server.getsockname()[1]
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


def echo(machine: Machine, address: str, port: int, data: bytes, timeout_s: float | None = GIVE_UP_S) -> bytes:
    """What comes back through a connection from ``machine``. Raises TimeoutError if nothing does."""
    with machine.entered(), socket.create_connection((address, port), timeout_s) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


@pytest.mark.parametrize("impairment", [HEALTHY, Impairment(loss=0.3), Impairment(delay_s=0.05)], ids=str)
def test_tcp_passes_unblocked_link(network: VirtualNetwork, port: int, impairment: Impairment) -> None:
    for source, target in itertools.permutations("ab"):
        network.impair(source, target, impairment)
    data = os.urandom(20_000)
    assert echo(network.machines["a"], network.machines["b"].address, port, data, None) == data
    assert (network.dropped("a", "b") > 0) is (impairment.loss > 0)


@pytest.mark.parametrize("blocked", [["ab"], ["ba"], ["ab", "ba"]], ids="-".join)
def test_tcp_continues_after_link_is_unblocked(network: VirtualNetwork, port: int, blocked: list[str]) -> None:
    for pair in blocked:
        network.impair(pair[0], pair[1], BLOCKED)
    a, address = network.machines["a"], network.machines["b"].address
    with pytest.raises(TimeoutError):
        echo(a, address, port, b"lost")
    assert network.dropped(blocked[0][0], blocked[0][1]) > 0
    assert all(network.dropped(pair[0], pair[1]) == 0 for pair in {"ab", "ba"} - set(blocked))
    network.heal()
    assert echo(a, address, port, b"found", None) == b"found"


def test_closed_network_leaves_no_resources(permitted: None) -> None:
    descriptors = set(os.listdir("/proc/self/fd"))
    VirtualNetwork(["c", "d"]).close()
    assert set(os.listdir("/proc/self/fd")) == descriptors
    assert "test0" not in Path("/proc/net/dev").read_text()
