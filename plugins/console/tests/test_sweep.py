"""Sweeps and rolling restarts over HTTP: the documents of the commands, matrices, and links to what-ifs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
from click.testing import CliRunner
from kframe_console.command import example
from kframe_console.pages.sweep_heat import _rounds
from starlette.testclient import TestClient

from kframe.cli.plan_restarts import restarts
from kframe.cli.sweep import sweep
from kframe.plugin.snapshot import Snapshot
from kframe.plugin.whatif import WhatIf
from verification.console.client import ConsoleClient, console_of


def printed(command: Any, *arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(command, [str(example()), *arguments, "-o", "json"])
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.fixture(scope="module")
def kraft(kraft_snapshot: Snapshot) -> Iterator[ConsoleClient]:
    with console_of(kraft_snapshot) as console:
        yield console


@pytest.mark.parametrize(
    "query, arguments",
    [
        ("", []),
        ("by=under-min-isr", ["--sort-by", "under-min-isr"]),
        ("by=skew&elr=off", ["--sort-by", "skew", "--elr", "off"]),
        ("by=unclean&elr=on", ["--sort-by", "unclean", "--elr", "on"]),
    ],
)
def test_sweep_is_that_of_the_command(kraft: ConsoleClient, query: str, arguments: list[str]) -> None:
    assert kraft.json(f"/sweep?{query}") == printed(sweep, *arguments)


def test_failures_are_the_rows_of_the_command_and_lead_to_their_whatif(kraft: ConsoleClient) -> None:
    rows = kraft.json("/sweep/failures")["rows"]
    assert rows == printed(sweep)["rows"]
    assert "operation=fail&brokers={brokers}" in kraft.client.get("/sweep").text.replace("&amp;", "&")
    for row in rows:
        if row["kind"] == "pair":
            ids = ",".join(map(str, row["brokers"]))
            outcome = kraft.json("/whatif", operation="fail", brokers=ids)
            assert outcome["after"]["offline"] == row["offline"]
            assert outcome["impact"]["leaders_moved"] == row["leaders_moved"]


@pytest.mark.parametrize("by, count", [("offline", "offline"), ("under-min-isr", "under_min_isr")])
def test_matrix_of_racks_has_the_numbers_of_whatifs(
    kraft: ConsoleClient, kraft_snapshot: Snapshot, by: str, count: str
) -> None:
    content = kraft.json("/sweep/heat", units="racks", by=by)
    assert content["labels"] == ["rack-a", "rack-b", "rack-c"]
    for second, values in enumerate(content["values"]):
        for first, value in enumerate(values):
            racks = {content["labels"][first], content["labels"][second]}
            assert value == WhatIf(kraft_snapshot).fail(racks=sorted(racks)).after.counts()[count]


def test_matrix_of_brokers_is_in_the_order_of_racks(zookeeper_snapshot: Snapshot) -> None:
    with console_of(zookeeper_snapshot) as console:
        content = console.json("/sweep/heat")
        failures = console.json("/sweep/failures", count="1000")["rows"]
        console.refuses("/sweep", "elr: found", elr="on")
    racks = {broker.broker_id: broker.rack or "" for broker in zookeeper_snapshot.brokers}
    ids = [int(label) for label in content["labels"]]
    assert ids == sorted(ids, key=lambda broker: (racks[broker], broker))
    expected = {tuple(row["brokers"]): row["offline"] for row in failures if row["kind"] in ("broker", "pair")}
    for second, values in enumerate(content["values"]):
        for first, value in enumerate(values):
            assert value == expected[tuple(sorted({ids[first], ids[second]}))]


@pytest.mark.parametrize("count", range(12))
def test_each_two_units_meet_once_and_no_unit_twice_in_a_round(count: int) -> None:
    rounds = list(_rounds(count))
    assert sorted(tuple(sorted(pair)) for pairs in rounds for pair in pairs) == list(combinations(range(count), 2))
    for pairs in rounds:
        units = [unit for pair in pairs for unit in pair]
        assert len(units) == len(set(units))


@pytest.mark.parametrize(
    "query, arguments",
    [
        ("", []),
        ("brokers=1,2", ["--brokers", "1,2"]),
        ("allow_unavoidable=true&max_batch=1", ["--allow-unavoidable", "--max-batch", "1"]),
        ("whole_racks=true&allow_unavoidable=true", ["--whole-racks", "--allow-unavoidable"]),
    ],
)
def test_restarts_are_those_of_the_command(kraft: ConsoleClient, query: str, arguments: list[str]) -> None:
    assert kraft.json(f"/restarts?{query}") == printed(restarts, *arguments)


def test_batches_link_to_their_whatif(kraft: ConsoleClient) -> None:
    query = "allow_unavoidable=true&max_batch=1"
    batches = kraft.json(f"/restarts?{query}")["batches"]
    text = kraft.client.get(f"/restarts?{query}").text
    for batch in batches:
        ids = "%2C".join(map(str, batch["brokers"]))
        if ids:
            assert f'href="/whatif?operation=fail&amp;brokers={ids}"' in text


def test_bad_limits_are_refused(kraft: ConsoleClient) -> None:
    for query in ("max_batch=0", "brokers=99", "whole_racks=true&max_batch=2", "exactly=true"):
        assert kraft.client.get(f"/restarts?format=json&{query}").status_code == 400, query


def test_page_counts_the_failures_that_it_lists(client: TestClient) -> None:
    """Only KRaft clusters have failures of directories."""
    total = client.get("/sweep/failures?format=json&count=1").json()["total"]
    page = client.get("/sweep")
    while page.status_code == 202:
        page = client.get("/sweep")
    counted = re.search(r"<li>failures: [^<]*<strong>([\d,]+)</strong>", page.text)
    assert counted is not None
    assert int(counted[1].replace(",", "")) == total
