"""The page for the reviewer of a plan: equal to the JSON report, escaped, of limited size."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
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
from tests.plans.generate.review_page import ReviewPage


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
    assert not {"script", "link", "img", "iframe"} & {element.tag for element in page.root.iter()}
    assert not any({"src", "href", "action", "onclick"} & element.attrib.keys() for element in page.root.iter())
    style = "".join(element.text or "" for element in page.root.iter("style"))
    assert style
    assert not re.search(r"url|@import|//", style)
    policies = [element.attrib["content"] for element in page.root.iter() if "content" in element.attrib]
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


def test_page_of_plan_without_copies_has_every_section(tmp_path: Path) -> None:
    page, _, _ = pages_of(tmp_path, "--leaders-only")
    assert {"identity", "request", "summary", "brokers", "racks", "findings", "decision"} <= page.texts.keys()


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
