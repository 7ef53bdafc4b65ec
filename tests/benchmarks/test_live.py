"""The calculations of ``python -m benchmarks.live``, and its plot."""

from __future__ import annotations

from kframe_kafka_wire.connections.broker import BrokerConnection, Target
from kframe_kafka_wire.requests.probes import cluster_id_of, serves_a_controller

from benchmarks.live import __main__ as live
from benchmarks.live import cold_server, controllers
from benchmarks.live.broker import StandInBroker


def events(number: int, controller: str, failover: float, broker_failure: float, read: float) -> list[live.Record]:
    """The records of one run: the raw requests before it, and its events."""
    about = {"life": number, "controller": controller, "partitions": 1_000, "brokers": 10}
    raw = {"bench": "raw", "read_seconds": read, "write_seconds": 0.5}
    raw |= {"read_seconds_at_once": read / 2, "write_seconds_at_once": 0.25}
    events = (("failover", failover), ("broker-failure", broker_failure))
    compiler = {"compiler_seconds": 0.75 - number / 4}
    return [about | raw, *(about | compiler | {"bench": bench, "seconds": seconds} for bench, seconds in events)]


KFRAME = [
    *events(0, "kframe", 30.0, 7.0, 9.0),
    *events(1, "kframe", 9.0, 7.0, 9.0),
    *events(2, "kframe", 2.0, 0.5, 1.0),
    *events(3, "kframe", 4.0, 1.0, 4.0),
]
KAFKA = [
    event
    for number, failover in enumerate((60.0, 40.0, 50.0, 55.0))
    for event in events(number, controllers.KAFKA, failover, 8.0, 0.1)
]
MEASURED = [*KAFKA, *KFRAME]


def test_ratio_uses_kafkas_best_and_our_slowest_warm_run() -> None:
    failover, broker_failure = live.rows(MEASURED)
    assert (failover["ratio"], broker_failure["ratio"]) == (10.0, 8.0)
    assert live.line(failover)[:7] == ("failover", "1,000", "4.000", "30.000, 9.000", "40.0", "10.0", "2.500")


def test_each_run_is_compared_with_the_raw_requests_before_it() -> None:
    failover, broker_failure = live.rows(MEASURED)
    assert (failover["times_raw"], broker_failure["times_raw"]) == ([2.0, 1.0], [1.0, 2.0])
    assert live.line(failover)[7:] == ("1.50 (1.00 to 2.00)", "1.250", "3.00 (2.00 to 4.00)")
    assert live.spread([1.25]) == "1.25"


def test_cold_server_runs_are_compared_by_pair() -> None:
    measured = [
        {
            "bench": bench,
            "controller": side,
            "partitions": 1_000,
            "brokers": 10,
            "seconds": seconds * factor,
            "compiler_seconds": 0.5,
            **({"sending_seconds": 0.25} if (side, bench) == ("raw", "failover") else {}),
        }
        for factor, pair in ((1, {"kframe": 3.0, "raw": 2.0}), (2, {"raw": 2.0, "kframe": 1.0}))
        for side, seconds in pair.items()
        for bench in cold_server.EVENTS
    ]
    failover, _ = rows = cold_server.rows(measured)
    assert (failover["kframe"], failover["raw"], failover["times_raw"]) == ([3.0, 2.0], [2.0, 4.0], [1.5, 0.5])
    assert cold_server.line(failover) == (
        "failover",
        "1,000",
        "3.00, 2.00",
        "0.50, 0.50",
        "2.00, 4.00",
        "0.50, 0.50",
        "1.00 (0.50 to 1.50)",
        "0.25, 0.25",
    )
    assert [(ratio.name, ratio.value) for ratio in cold_server.ratios(rows)] == [
        ("cold server failover/1000/10 beside raw", 1.0),
        ("cold server broker-failure/1000/10 beside raw", 1.0),
    ]


def test_all_bytes_are_sent() -> None:
    brokers = [StandInBroker(broker_id) for broker_id in range(3)]
    try:
        cold_server.send_bytes(30_000_000, brokers)
        assert [broker.bytes_received for broker in brokers] == [10_000_000 + 2 * 12] * 3
    finally:
        for broker in brokers:
            broker.close()


def test_broker_responds_to_first_controller_requests() -> None:
    broker = StandInBroker(1)
    target = Target("127.0.0.1", broker.port, tls=None, credentials=None, client_id="controller")
    connection = BrokerConnection(target)
    try:
        assert serves_a_controller(target, timeout_ms=5_000)
        connection.open(5_000)
        assert cluster_id_of(connection, "controller", timeout_ms=5_000) is None
    finally:
        connection.close()
        broker.close()
