"""The page for the reviewer of a plan: equal to the JSON report, escaped, of limited size."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kframe import read_snapshot
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.generate import PlanRequest, plan
from kframe.plans.generate.bounds import PROOFS
from kframe.plans.generate.page import render_page
from kframe.plans.generate.report import report_document
from kframe.plans.generate.review import PlanReview
from kframe.snapshot import generate
from tests.cli.running import HEALTHY, kframe, size_rows
from tests.plans.generate.clusters import snapshot_of
from tests.plans.generate.strict_html import StrictParser


class ReviewPage(HTMLParser):
    """The texts of a page by the id of the element, the rows of its tables, and its tags with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.rows: dict[str, list[list[str]]] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._name = ""
        self._cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        self._name = attributes.get("id") or ("moves-table" if attributes.get("class") == "moves" else self._name)
        if tag == "tr":
            self.rows.setdefault(self._name, []).append([])
        self._cell = tag in ("td", "th")
        if self._cell:
            self.rows[self._name][-1].append("")

    def handle_data(self, data: str) -> None:
        self.texts[self._name] = self.texts.get(self._name, "") + data
        if self._cell:
            self.rows[self._name][-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._cell = False

    def records(self, name: str) -> list[dict[str, str]]:
        """The rows of a table by the names of its columns."""
        heading, *rows = self.rows[name]
        return [dict(zip(heading, row, strict=True)) for row in rows if row != heading]


def number(text: str) -> int:
    """An integer of the page."""
    return int(text.replace(",", ""))


def sizes_file(folder: Path) -> Path:
    """Sizes of all partitions of the healthy cluster."""
    path = folder / "sizes.json"
    path.write_text(json.dumps(size_rows(lambda row: 1000 + row)))
    return path


def pages_of(folder: Path, *goals: object) -> tuple[ReviewPage, dict[str, Any], dict[str, Any]]:
    """The page of a generated plan, its JSON report, and the report of plan check."""
    plan_file, page = folder / "plan.json", folder / "page.html"
    generated = kframe("plan", "generate", HEALTHY, *goals, "--out", plan_file, "--report", page, "-o", "json")
    assert generated.exit_code == 0, generated.output
    checked = kframe("plan", "check", HEALTHY, plan_file, "-o", "json")
    return ReviewPage(page.read_text()), json.loads(generated.stdout), json.loads(checked.stdout)


def test_page_equals_json_report(tmp_path: Path) -> None:
    page, document, checked = pages_of(tmp_path, "--remove-brokers", "3", "--weights", sizes_file(tmp_path))
    assert page.texts["summary"] == document["summary"]
    assert page.texts["proof"] == document["proof"]
    for row, broker in zip(page.records("brokers"), document["brokers"], strict=True):
        for name in (
            "replicas_before",
            "replicas_after",
            "leaders_before",
            "leaders_after",
            "bytes_before",
            "bytes_after",
            "broker_id",
        ):
            assert number(row[name.replace("_", " ")]) == broker[name]
        assert number(row["replicas copied"]) == broker["received"]
    moves = dict(page.rows["moves"])
    assert number(moves["cost in bytes"]) == document["moves"]["cost"]
    assert number(moves["lower bound in bytes"]) == document["moves"]["bound"]
    assert len(page.records("moves-table")) == document["partitions"]["changed"]
    assert sum(number(row["bytes"]) for row in page.records("moves-table")) == document["moves"]["cost"]
    assert [row["check"] for row in page.records("findings")] == list(
        dict.fromkeys(row["check"] for row in checked["findings"])
    )
    assert page.rows["request"][0] == ["remove brokers", "3"]


def test_page_identifies_plan_file_and_snapshot(tmp_path: Path) -> None:
    page, _, _ = pages_of(tmp_path, "--rebalance")
    identity = dict(page.rows["identity"])
    assert identity["plan file SHA-256"] == hashlib.sha256((tmp_path / "plan.json").read_bytes()).hexdigest()
    assert identity["snapshot digest"] == read_snapshot(HEALTHY).digest()


def test_page_of_plan_check_equals_page_of_plan_generate(tmp_path: Path) -> None:
    sizes = sizes_file(tmp_path)
    generated, _, _ = pages_of(tmp_path, "--rebalance", "--weights", sizes)
    path = tmp_path / "checked.html"
    arguments = (HEALTHY, tmp_path / "plan.json", "--weights", sizes, "--report", path)
    assert kframe("plan", "check", *arguments).exit_code == 0
    checked = ReviewPage(path.read_text())
    for name in ("identity", "brokers", "racks", "topics", "largest", "findings", "moves-table"):
        assert checked.rows[name] == generated.rows[name]


def test_rack_rows_are_sums_of_broker_rows(tmp_path: Path) -> None:
    page, _, _ = pages_of(tmp_path, "--evacuate-rack", "rack-2")
    brokers, racks = page.records("brokers"), page.records("racks")
    for row in racks:
        for name in ("replicas before", "replicas copied", "replicas deleted", "replicas after", "leaders after"):
            inside = [number(broker[name]) for broker in brokers if broker["rack"] == row["rack"]]
            assert number(row[name]) == sum(inside)


def test_page_has_no_scripts_or_external_resources(tmp_path: Path) -> None:
    page, _, _ = pages_of(tmp_path, "--rebalance")
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in page.tags}
    assert not any({"src", "href", "action", "onclick"} & attributes.keys() for _, attributes in page.tags)
    policies = [attributes["content"] for tag, attributes in page.tags if "content" in attributes]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_names_are_escaped() -> None:
    hostile = '<img src=x onerror="a()">&'
    snapshot = snapshot_of({hostile: [[1], [1]]}, {1: hostile, 2: hostile})
    proposal = plan(snapshot, rebalance=True, topics=("*",))
    page = render_page(PlanReview.of_proposal(proposal, resolve_plan(proposal.plan, snapshot)), b"{}")
    assert "<img" not in page
    parsed = ReviewPage(page)
    assert [row["topic"] for row in parsed.records("moves-table")] == [hostile]
    assert {row["rack"] for row in parsed.records("brokers")} == {hostile}
    assert "img" not in {tag for tag, _ in parsed.tags}
    StrictParser(page)


@pytest.mark.parametrize(
    "goals",
    [("--remove-brokers", "3"), ("--rebalance",), ("--leaders-only",), ("--evacuate-rack", "rack-2")],
    ids=lambda goals: goals[0],
)
@pytest.mark.parametrize("sized", [False, True])
def test_page_is_valid_html(tmp_path: Path, goals: tuple[str, ...], sized: bool) -> None:
    weights = ("--weights", sizes_file(tmp_path)) if sized else ()
    pages_of(tmp_path, *goals, *weights)
    page = StrictParser((tmp_path / "page.html").read_text())
    assert {"identity", "request", "summary", "brokers", "racks", "findings", "decision"} <= page.ids


@pytest.mark.parametrize(
    "page",
    [
        "<p>",
        "</p>",
        "<p></span></p>",
        "a & b",
        "&nbsp;",
        "a < b",
        "<b>x</b>",
        '<p id="a"></p><p id="a"></p>',
        "<p id=a></p>",
        '<p class="a" class="b"></p>',
        "<!-- -->",
        "<table><tr></tr></table>",
        "<p/>",
        "<table><tbody><tr><td></td></tr><tr><td></td><td></td></tr></tbody></table>",
    ],
)
def test_malformed_html_is_detected(page: str) -> None:
    frame = "<!doctype html>\n<html><body><section>{}</section></body></html>"
    StrictParser(frame.format("<p>a &amp; b</p>"))
    with pytest.raises(AssertionError):
        StrictParser(frame.format(page))


@pytest.mark.extended
def test_page_of_many_moves_states_omitted_rows() -> None:
    snapshot = generate(brokers=60, partitions=60_000, seed=1)
    weights = np.arange(len(snapshot), dtype=np.int64)
    proposal = plan(snapshot, PlanRequest(remove_brokers=tuple(range(30)), weights=weights))
    page = render_page(PlanReview.of_proposal(proposal, resolve_plan(proposal.plan, snapshot)), b"{}")
    assert len(page.encode()) < 5_000_000
    parsed = ReviewPage(page)
    listed = len(parsed.records("moves-table"))
    assert f"{listed:,} of {len(proposal.plan):,} are listed" in page
    assert len(parsed.records("largest")) == 20
    StrictParser(page)


@pytest.mark.extended
def test_page_of_million_partitions_renders_only_listed_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are rendered, and no further ones: the partitions of the plan do not determine the work for them."""
    rendered, partitions = 0, PlanReview.partitions

    def counted(review: PlanReview) -> Iterator[dict[str, Any]]:
        nonlocal rendered
        for row in partitions(review):
            rendered += 1
            yield row

    monkeypatch.setattr(PlanReview, "partitions", counted)
    snapshot = generate(brokers=100, partitions=1_000_000, racks=5, seed=1)
    proposal = plan(snapshot, remove_brokers=tuple(range(10)))
    assert len(proposal.plan) > 200_000
    page = render_page(PlanReview.of_proposal(proposal, resolve_plan(proposal.plan, snapshot)), b"{}")
    assert len(page.encode()) < 5_000_000
    assert f"{rendered:,} of {len(proposal.plan):,} are listed" in page
    assert rendered < 30_000


def test_proof_names_greatest_bound() -> None:
    snapshot = read_snapshot(HEALTHY)
    requests = PlanRequest(remove_brokers=(3,)), PlanRequest(rebalance=True), PlanRequest(leaders_only=True)
    removal, balance, order = (report_document(plan(snapshot, request)).proof for request in requests)
    assert removal == PROOFS["required"]
    assert balance in {PROOFS[name] for name in ("deficit", "excess", "flow")}
    assert "nothing is copied" in order
