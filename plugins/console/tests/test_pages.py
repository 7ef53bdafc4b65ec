"""Pages over HTTP: formats, the values of the engine, URL state, and refusals."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kframe_console.pages.page import ConsolePage, TablePage
from kframe_console.routes import PAGES
from kframe_console.tables.query import COUNT_DEFAULT
from kframe_console.web.assets import ASSETS
from starlette.testclient import TestClient

from kframe.plugin import InputError
from kframe.plugin.snapshot import Snapshot, broker_rows, summary_record
from kframe.plugin.whatif import WhatIf
from verification.console.client import console_of
from verification.support.properties import examples

TABLES = [page for page in PAGES if isinstance(page, TablePage) and page.name not in ("plan-moves", "groups")]


def plain(value: object) -> Any:
    """The value as a client gets it."""
    return msgspec.json.decode(msgspec.json.encode(value))


@pytest.mark.parametrize("page", TABLES, ids=lambda page: page.name)
def test_formats_of_a_table_have_the_same_rows(
    page: TablePage, client: TestClient, question: Callable[[ConsolePage], dict[str, str]]
) -> None:
    def get(format_name: str) -> Any:
        return client.get(page.path, params={"format": format_name, "count": "1000", **question(page)})

    content = get("json").json()
    assert content["schema"] == page.schema
    assert content["total"] == len(content["rows"]) > 0
    rows = [msgspec.convert(row, page.row) for row in content["rows"]]
    assert msgspec.to_builtins(rows) == content["rows"]
    parquet = pyarrow.parquet.read_table(io.BytesIO(get("parquet").content))
    assert parquet.to_pylist(maps_as_pydicts="strict") == content["rows"]
    lines = list(csv.DictReader(io.StringIO(get("csv").text)))
    first = next(iter(content["rows"][0]))
    assert [line[first] for line in lines] == [str(row[first]) for row in content["rows"]]
    assert list(lines[0]) == list(content["rows"][0])


def test_partitions_are_those_of_the_engine(client: TestClient, snapshot: Snapshot) -> None:
    rows = client.get("/partitions", params={"format": "json", "count": "1000"}).json()["rows"]
    leaders = snapshot.known_leaders().tolist()
    assert [row["leader"] for row in rows] == leaders[:1000]
    short = [len(row["isr"]) < len(row["replicas"]) - len(row["adding_replicas"] or ()) for row in rows]
    assert short == ["under_replicated" in row["health"] for row in rows]
    assert sum(short) == client.get("/partitions?format=json&health=under_replicated").json()["total"]


def test_page_keeps_its_state_in_the_url(client: TestClient) -> None:
    text = client.get("/partitions?leader=1&sort=-leader_epoch").text
    assert 'name="leader" value="1"' in text
    assert 'name="sort" value="-leader_epoch"' in text
    assert 'href="/partitions?format=csv&amp;sort=-leader_epoch&amp;leader=1"' in text


@pytest.mark.parametrize(
    "query, status, parameter, message",
    [
        ("format=xml", 400, "format", "found 'xml', expected one of html, json, csv, parquet"),
        ("format=json&leader=x", 400, "leader", "found 'x'"),
        ("format=json&leader=1&leader=2", 400, "leader", "found it twice, expected each parameter once"),
        ("format=json&at=3", 400, "at", "found '3', expected none"),
        ("format=json&x=1", 400, "x", "no such column"),
        ("format=json&topic=" + "x" * 5000, 400, "topic", "expected at most 4000 characters"),
        ("format=json&" + "&".join(f"a{n}=" for n in range(200)), 400, "a99", "a longer query"),
        ("format=json&topic=%ff%fe", 200, None, ""),
    ],
)
def test_bad_parameters_are_refused_by_name(
    client: TestClient, query: str, status: int, parameter: str | None, message: str
) -> None:
    response = client.get(f"/partitions?{query}", headers={"accept": "application/json"})
    content = response.json()
    assert (response.status_code, content.get("parameter")) == (status, parameter)
    assert message in content.get("error", "")


def test_refusals_in_a_browser_are_pages(client: TestClient) -> None:
    for path, status in {"/partitions?leader=<script>": 400, "/nowhere": 404, f"{ASSETS}/nothing.js": 404}.items():
        response = client.get(path, headers={"accept": "text/html"})
        assert response.status_code == status
        assert response.headers["content-type"].startswith("text/html")
        assert "<script>" not in response.text.replace('<script src="/static', "")
        assert "Traceback" not in response.text


def test_every_response_is_protected(client: TestClient) -> None:
    for path in ("/partitions", "/partitions?format=json", f"{ASSETS}/table.js", "/nowhere"):
        headers = client.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe-inline" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_browsers_keep_scripts_until_they_change(client: TestClient) -> None:
    page = client.get("/partitions")
    assert page.headers["cache-control"] == "no-store"
    scripts = re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text)
    assert f"{ASSETS}/table.js" in scripts
    for path in scripts:
        assert client.get(path).headers["cache-control"] == "private, max-age=31536000, immutable", path
    missing = client.get(f"{ASSETS}/nothing.js")
    assert (missing.status_code, missing.headers["cache-control"]) == (404, "no-store")


@pytest.mark.parametrize("path", ["/partitions", "/topics", "/brokers"])
@pytest.mark.parametrize("query", [{}, {"sort": "-replicas"}, {"replicas": ">77"}])
def test_page_of_a_table_has_its_first_rows(client: TestClient, path: str, query: dict[str, str]) -> None:
    page, window = client.get(path, params=query), client.get(path, params={**query, "format": "json"}).json()
    if page.status_code != 200:
        assert window["error"]
        return
    rows = re.search(r'<script type="application/json" id="first-rows">(.*?)</script>', page.text, re.DOTALL)
    assert rows is not None
    assert json.loads(rows[1]) | {"schema": window["schema"]} == window | {"count": COUNT_DEFAULT}


@pytest.mark.parametrize(
    "host, status",
    [("localhost:8642", 200), ("127.0.0.1", 200), ("[::1]:8642", 200), ("attacker.example", 421), ("", 421)],
)
def test_other_host_names_are_refused(client: TestClient, host: str, status: int) -> None:
    assert client.get("/partitions", headers={"host": host}).status_code == status


def test_overview_is_the_summary_of_the_engine(client: TestClient, snapshot: Snapshot) -> None:
    content = client.get("/?format=json").json()
    assert content["summary"] == msgspec.to_builtins(summary_record(snapshot))
    brokers = [broker for rack in content["racks"] for broker in rack["brokers"]]
    expected = sorted(broker_rows(snapshot), key=lambda broker: (broker.rack is None, broker.rack, broker.broker_id))
    assert brokers == msgspec.to_builtins(expected)
    for rack in content["racks"]:
        assert rack["leaders"] == sum(broker["leaders"] for broker in rack["brokers"])


def test_topic_counts_the_conditions_of_its_partitions(client: TestClient, snapshot: Snapshot) -> None:
    rows = client.get("/partitions", params={"format": "json", "count": "1000"}).json()["rows"]
    for topic in snapshot.topics.names:
        content = client.get(f"/topics/{topic}?format=json").json()
        of_topic = [row for row in rows if row["topic"] == topic]
        assert content["topic"]["partition_count"] == len(of_topic)
        for name, count in content["conditions"].items():
            assert count in (None, sum(name in row["health"] for row in of_topic)), (topic, name)


def test_explanation_of_a_topic_alone_is_that_of_the_whole_cluster(client: TestClient, snapshot: Snapshot) -> None:
    whole = WhatIf(snapshot)
    for row in range(0, len(snapshot), 7):
        topic, _, number = snapshot.topics.name_of_row(row).rpartition("-")
        content = client.get(f"/topics/{topic}/{number}?format=json").json()
        assert content["explanation"] == plain(whole.explain(topic, int(number)))
    failed = client.get(f"/topics/{topic}/{number}?format=json&fail=1-3").json()["explanation"]
    assert failed == plain(WhatIf(snapshot).explain(topic, int(number), (1, 2, 3)))


@pytest.mark.parametrize(
    "path, status, message",
    [
        ("/topics/none", 404, "topic: found 'none', expected the name of a topic of the cluster"),
        ("/topics/none/0", 404, "topic: found 'none'"),
        ("/topics/{topic}/x", 404, "partition: found 'x', expected a whole number"),
        ("/topics/{topic}/99999", 404, "partition: found 99999, expected a partition of topic"),
        ("/topics/{topic}/-1", 404, "partition: found '-1', expected"),
        ("/topics/{topic}/0?fail=x", 400, "fail: found 'x', expected broker ids such as 2,5 or 1-3,7"),
        ("/topics/{topic}/0?fail=3-1", 400, "fail: found '3-1', expected 1-3, the smaller id first"),
        ("/topics/{topic}/0?fail=0-2147483647", 400, "fail: found '0-2147483647', expected at most 100000 broker ids"),
        ("/topics/{topic}/0?fail=77", 400, "77"),
        ("/topics/{topic}/0?topic=other", 400, "topic: found it twice"),
        ("/?x=1", 400, "x: found an unknown parameter, expected no parameter"),
    ],
)
def test_what_there_is_not_is_refused(
    client: TestClient, snapshot: Snapshot, path: str, status: int, message: str
) -> None:
    path = path.format(topic=snapshot.topics.names[0])
    response = client.get(f"{path}{'&' if '?' in path else '?'}format=json")
    assert (response.status_code, response.json()["schema"]) == (status, "kframe.console-error/v1")
    assert message in response.json()["error"]


def test_pages_show_their_names_and_values(client: TestClient, snapshot: Snapshot) -> None:
    topic = snapshot.topics.names[0]
    expected = {
        "/": ["Brokers by rack", "under min isr"],
        "/brokers": ["<h1>Brokers</h1>"],
        "/topics": ["<h1>Topics</h1>"],
        f"/topics/{topic}": [topic, "data-query"],
        f"/topics/{topic}/0?fail=1": ["Why is this the leader?", "Present state", "Final state"],
    }
    for path, texts in expected.items():
        response = client.get(path)
        assert response.status_code == 200, response.text
        for text in texts:
            assert text in response.text


PARAMETERS = [
    "topic", "partition", "leader", "replicas", "isr", "health", "leader_epoch", "elr", "directories", "sort", "first",
    "count", "format", "at", "fail", "broker_id", "registered", "configs", "endpoints", "x",
]  # fmt: skip
TEXTS = st.text(max_size=20) | st.sampled_from(
    ("1 -1 1..3 > >=2 none some * [ a*b*c*d*e*f =orders 1,2,,3 json csv " + "9" * 25).split()
)


def test_no_query_is_an_error_in_kframe(snapshot: Snapshot) -> None:
    paths = [page.path for page in PAGES] + ["/openapi.json", "/reading"]

    with console_of(snapshot) as console:

        @examples(2)
        @given(st.sampled_from(paths), TEXTS, TEXTS, st.dictionaries(st.sampled_from(PARAMETERS), TEXTS, max_size=4))
        def check(path: str, topic: str, partition: str, query: dict[str, str]) -> None:
            names = itertools.cycle((quote(topic, safe=""), quote(partition, safe="")))
            response = console.client.get(re.sub(r"\{\w+\}", lambda _: next(names), path), params=query)
            assert response.status_code in (200, 202, 400, 404, 405), (path, query, response.text)
            assert "Traceback" not in response.text

        check()


def test_bytes_are_sums_of_the_sizes(snapshot: Snapshot) -> None:
    sizes = np.arange(len(snapshot), dtype=np.int64)
    expected = dict.fromkeys((broker.broker_id for broker in snapshot.brokers), 0)
    for row, size in enumerate(sizes.tolist()):
        for broker_id in snapshot.partitions.replicas[row].tolist():
            expected[broker_id] += size
    with console_of(snapshot, sizes=lambda _: sizes) as sized:
        rows = sized.json("/brokers", sort="-bytes")["rows"]
        content = sized.json("/")
        page = sized.client.get("/").text
    assert {row["broker_id"]: row["bytes"] for row in rows} == expected
    assert [row["bytes"] for row in rows] == sorted(expected.values(), reverse=True)
    present = [expected[broker.broker_id] for broker in snapshot.brokers if broker.registered is not False]
    skew = round(max(present) / (sum(present) / len(present)), 3)
    assert content["bytes"] == {"total": sum(expected.values()), "skew": skew, "problem": None}
    assert "byte skew" in page


def test_unknown_and_unusable_sizes_are_told_apart(client: TestClient, snapshot: Snapshot) -> None:
    assert client.get("/?format=json").json()["bytes"] is None
    assert "bytes" not in client.get("/brokers?format=json").json()["rows"][0]

    def unusable(_snapshot: Snapshot) -> None:
        raise InputError("sizes.csv", "no bytes of t-0", "each partition of the snapshot")

    with console_of(snapshot, sizes=unusable) as other:
        assert "found no bytes of t-0" in other.json("/")["bytes"]["problem"]
        assert "found no bytes of t-0" in other.client.get("/").text
        assert other.client.get("/brokers").status_code == 200
