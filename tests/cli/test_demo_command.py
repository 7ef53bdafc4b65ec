"""``kframe demo`` on a small cluster."""

from __future__ import annotations

import html
import re
from pathlib import Path

from click.testing import Result

from kframe.snapshot import Snapshot, write_snapshot
from kframe.testing.clusters import cluster_of, healthy
from tests.cli.running import kframe
from tests.whatif.samples import small


def run(*arguments: object) -> Result:
    return kframe("demo", *arguments)


def test_demo_of_the_bundled_examples() -> None:
    """A failure and a reassignment of the bundled cluster, the failure in the bundled log, and a generated cluster."""
    result = run("--partitions", "2000", "--brokers", "10")
    assert result.exit_code == 0, result.output
    assert "healthy.zookeeper.jsonl.gz" in result.stdout
    assert "2,000 partitions on 10 brokers" in result.stdout
    assert result.stdout.count("of that, encoding the requests") == 2
    assert "offline" in result.stdout
    assert "Why? " in result.stdout
    section = result.stdout.partition("the metadata log of a KRaft cluster\n")[2].partition("\n4. ")[0]
    assert section.count("$ kframe log ") == 6
    assert "broker 3  fenced" in section
    assert re.search(r"offline +53\n", section)
    assert "leader -1, isr [], elr [2,3], last known elr [3]" in section
    assert "the ISR is empty: first eligible member of the ELR in the order of replicas" in section
    assert "6 commands" in section
    assert "96 partitions move from 1,2,3 to 4,5,6" in result.stdout
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in result.stdout.splitlines()]
    assert ["present state", "3,1,2", "–", "–", "3,1,2", "3"] in cells
    assert ["6 leads", "6,4,5,3,1,2", "6,4,5", "3,1,2", "3,1,2,6,4,5", "6"] in cells
    assert ["reassignment done", "6,4,5", "–", "–", "6,4,5", "6"] in cells
    assert "all of them: 96 moved, 263 replicas copied, 263 deleted" in result.stdout


def test_demo_accepts_user_snapshot(tmp_path: Path) -> None:
    write_snapshot(small(), tmp_path / "small")
    result = run(tmp_path / "small", "--partitions", "100", "--brokers", "5")
    assert result.exit_code == 0, result.output
    assert "fail broker 1" in result.stdout
    assert "1 partition moves from 1 to 2" in result.stdout, "t-3; the ones before it are on all brokers"


def test_demo_moves_no_partition_without_free_brokers(tmp_path: Path) -> None:
    write_snapshot(Snapshot.from_cluster(cluster_of({"t": [healthy(1, 2)]}, (1, 2))), tmp_path / "full")
    result = run(tmp_path / "full", "--partitions", "100", "--brokers", "5")
    assert result.exit_code == 0, result.output
    assert "has as many other brokers as replicas" in result.stdout


def test_demo_writes_a_page_of_all_that_it_prints(tmp_path: Path) -> None:
    page = tmp_path / "demo.html"
    options = ("--partitions", "100", "--brokers", "5", "--report", page)
    result = run(*options)
    assert result.exit_code == 0, result.output
    text = html.unescape(page.read_text())
    titles = re.findall(r"<h2>(\d)\. (.+)</h2>", text)
    assert [number for number, _ in titles] == ["1", "2", "3", "4"]
    assert "$ kframe log why" in text
    printed = [line.strip() for line in result.stdout.splitlines() if "broker 3  fenced" in line or "Why? " in line]
    assert len(printed) > 2
    assert [line for line in printed if line not in text] == []
    assert "<script" not in text
    refused = run(*options)
    assert refused.exit_code != 0
    assert "--force" in refused.output
