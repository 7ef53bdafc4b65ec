"""The rate of connections without a login is limited by address."""

from __future__ import annotations

import pytest
from kframe_kafka_wire.server.connection_rate import BURST_S, RATE_KEY, ConnectionRate

from verification.kafka_wire.secured import login_listener
from verification.kafka_wire.served import Served, broker

#: At two a second. (second, address, attempts, logins after them, accepted)
STEPS: dict[str, list[tuple[float, str, int, int, int]]] = {
    "a burst of ten seconds": [(0, "a", 25, 0, 20), (0, "a", 1, 0, 0)],
    "each address has its own": [(0, "a", 25, 0, 20), (0, "b", 25, 0, 20)],
    "tokens come back with time": [(0, "a", 20, 0, 20), (0.4, "a", 1, 0, 0), (0.5, "a", 2, 0, 1), (2, "a", 9, 0, 3)],
    "no more than the burst": [(0, "a", 1, 0, 1), (9_000, "a", 25, 0, 20)],
    "logins do not count": [(0, "a", 20, 20, 20), (0, "a", 20, 19, 20), (0, "a", 20, 0, 19)],
    "a login gives back no more than the burst": [(0, "a", 5, 90, 5), (0, "a", 25, 0, 20)],
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_tokens_are_counted_by_address(steps: list[tuple[float, str, int, int, int]]) -> None:
    now_s = 0.0
    rate = ConnectionRate(2, lambda: now_s)
    for second, address, attempts, logins, accepted in steps:
        now_s = second
        assert sum(rate.take(address) for _ in range(attempts)) == accepted
        for _ in range(logins):
            rate.give_back(address)


def test_zero_rate_disables_the_limit() -> None:
    rate = ConnectionRate(0, lambda: 0.0)
    assert all(rate.take("a") for _ in range(10_000))
    assert len(rate) == 0


def test_addresses_with_full_buckets_are_removed() -> None:
    now_s = 0.0
    rate = ConnectionRate(1, lambda: now_s)
    for number in range(20_000):
        now_s = float(number)
        assert rate.take(str(number))
    assert len(rate) <= 1_000


def log_in(served: Served, version: int, password: str) -> bool:
    """Whether the server responds to a login, with any result."""
    token = f"\0alice\0{password}".encode()
    with served.client("LOGIN") as client:
        try:
            if version:
                client.log_in("alice", password)
            else:
                client.ask(17, 0, mechanism="PLAIN")
                client.send(len(token).to_bytes(4, "big") + token)
                client.receive()
        except ConnectionError:
            return False
        return True


def test_only_connections_without_login_are_limited() -> None:
    burst = BURST_S * 1
    with Served({}, [broker(1, "LOGIN")], {**login_listener(alice="secret"), RATE_KEY: "1"}) as served:
        assert all(log_in(served, version, "secret") for version in (0, 1) for _ in range(burst))
        respond = [log_in(served, 1, "wrong") for _ in range(20 * burst)]
        assert all(respond[:burst])
        assert not all(respond)
        assert served.server.metrics()['kframe_connections_dropped_total{reason="too_many"}'] == respond.count(False)
