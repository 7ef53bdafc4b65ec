"""The arithmetic of ``python -m benchmarks.live``, and its picture."""

from __future__ import annotations

from benchmarks import live


def life(run: int, controller: str, failover: float, broker_failure: float) -> list[live.Record]:
    return [
        {"run": run, "bench": bench, "controller": controller, "partitions": 1_000, "brokers": 10, "seconds": seconds}
        for bench, seconds in (("failover", failover), ("broker-failure", broker_failure))
    ]


RAW = [
    {"run": run, "bench": "raw", "partitions": 1_000, "read_seconds": read, "write_seconds": 0.5}
    for run, read in ((0, 1.0), (1, 4.0))
]
MEASURED = [*life(0, "kafka-3.9.1", 40.0, 9.0), *life(1, "kafka-3.9.1", 60.0, 8.0), *life(0, "kframe", 2.0, 0.5),
            *life(1, "kframe", 4.0, 1.0), *RAW]  # fmt: skip


def test_kafkas_best_life_is_held_against_our_slowest() -> None:
    failover, broker_failure = live.rows(MEASURED)
    assert (failover["ratio"], broker_failure["ratio"]) == (10.0, 8.0)
    assert live.line(failover)[:6] == ("failover", "1,000", "4.00", "40.0", "10.0", "2.50")


def test_each_life_is_held_against_the_raw_requests_on_its_own_server() -> None:
    failover, broker_failure = live.rows(MEASURED)
    assert (failover["times_raw"], broker_failure["times_raw"]) == ([2.0, 1.0], [1.0, 2.0])
    assert live.line(failover)[6] == "1.50 (1.00 to 2.00)"
    assert live.spread([1.25]) == "1.25"


def test_the_raw_requests_that_warm_kafkas_server_up_are_no_figures_of_ours() -> None:
    raw, failover = RAW[0], life(0, "any", 2.0, 0.5)[0]
    assert list(live.counted([raw, failover], ours=False)) == [failover]
    assert list(live.counted([raw, failover], ours=True)) == [raw, failover]


def test_alone_there_is_no_ratio() -> None:
    (failover, _) = live.rows([*life(0, "kframe", 2.0, 0.5), *RAW])
    assert failover["ratio"] is None
    assert live.line(failover)[3:5] == ("-", "-")
    assert [one.name for one in live.ratios([failover])] == [
        f"live failover/1000/10 {end}" for end in ("beside raw", "seconds")
    ]


def test_ratios_are_kept_for_comparison() -> None:
    kept = {one.name: (one.value, one.less, one.absolute) for one in live.ratios(live.rows(MEASURED))}
    assert kept["live failover/1000/10 beside kafka"] == (10.0, False, False)
    assert kept["live failover/1000/10 beside raw"] == (1.5, True, False)
    assert kept["live broker-failure/1000/10 seconds"] == (1.0, True, True)
