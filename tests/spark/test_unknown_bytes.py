"""Bytes of requests with a broker of unknown endpoints: a what-if and the requests of a fleet are equal."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any, TypeAlias

from hypothesis import event, given
from hypothesis import strategies as st

from kframe.snapshot import Snapshot
from kframe.whatif import WhatIf
from kframe.whatif.results.brokers import API_COLUMNS
from tests.spark.outcomes import clusters, reference_rows_or_problem, result_of, scenarios, tables

#: Requests and bytes by broker id and API; bytes are None where unknown.
Traffic: TypeAlias = dict[tuple[int, str], tuple[int, int | None]]


def without_endpoints(snapshot: Snapshot, *brokers: int) -> Snapshot:
    facts = (replace(broker, endpoints=None) if broker.broker_id in brokers else broker for broker in snapshot.brokers)
    return replace(snapshot, brokers=tuple(facts))


def of_single_machine(snapshot: Snapshot, scenario_row: dict[str, Any]) -> Traffic:
    """Return requests and bytes of each broker and kind, as in ``kframe whatif``."""
    whatif = WhatIf(snapshot)
    act = {"fail": whatif.fail, "shutdown": whatif.shutdown}[scenario_row["verb"]]
    records = list(act(scenario_row["brokers"], together=scenario_row["together"]).brokers.records())
    return {
        (record.broker_id, api.value): (getattr(record, f"{column}_requests"), getattr(record, f"{column}_bytes"))
        for record in records
        for api, column in API_COLUMNS.items()
        if getattr(record, f"{column}_requests")
    }


def of_a_fleet(snapshot: Snapshot, scenario_row: dict[str, Any]) -> Traffic:
    """Return the sums over the rows of REQUESTS. A sum is null if any row is null.

    Where sizes are known, each request has a body, and the size field and header come to it.
    """
    result = result_of(tables(snapshot), scenario_row)
    assert not isinstance(result, str)
    sums: dict[tuple[int, str], list[tuple[int, int | None]]] = defaultdict(list)
    for row in result["requests"]:
        assert (row["bytes"] is None) is (row["encoded"] is None) is (row["unknown"] is not None)
        if row["encoded"] is not None:
            assert row["requests"] == len(row["encoded"])
            headers = row["bytes"] - sum(map(len, row["encoded"]))
            assert 12 * row["requests"] < headers < 40 * row["requests"]
        sums[row["broker_id"], row["api"]].append((row["requests"], row["bytes"]))
    return {
        key: (
            sum(requests for requests, _ in rows),
            None if any(size is None for _, size in rows) else sum(size or 0 for _, size in rows),
        )
        for key, rows in sums.items()
    }


@given(st.data())
def test_bytes_of_any_cluster_equal_single_machine(data: st.DataObject) -> None:
    snapshot = data.draw(clusters(min_count=1))
    scenario_row = data.draw(scenarios(snapshot))
    if scenario_row["verb"] == "elect" or isinstance(reference_rows_or_problem(snapshot, scenario_row), str):
        return
    unknown = data.draw(st.lists(st.sampled_from([broker.broker_id for broker in snapshot.brokers]), max_size=2))
    bare = without_endpoints(snapshot, *unknown)
    expected = of_single_machine(bare, scenario_row)
    event("some unknown" if any(size is None for _, size in expected.values()) else "all known")
    assert of_a_fleet(bare, scenario_row) == expected
