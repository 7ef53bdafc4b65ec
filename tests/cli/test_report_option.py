"""``--report``: the page of a what-if, a sweep, an explanation or the stages of a plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import HEALTHY, PLAN, kframe

COMMANDS = {
    "whatif": (["whatif", "fail", HEALTHY, "--brokers", "4"], "fail broker 4"),
    "sweep": (["whatif", "sweep", HEALTHY], "failures of 6 brokers"),
    "stage": (["plan", "stage", HEALTHY, PLAN, "--max-moves", "5"], f"stages of {PLAN.name}"),
    "explain": (["explain", HEALTHY, "clickstream.dlq.v1-0", "--fail", "4"], "clickstream.dlq.v1-0"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_page_loads_and_runs_nothing(name: str, tmp_path: Path) -> None:
    command, title = COMMANDS[name]
    pages = [tmp_path / "a.html", tmp_path / "b.html"]
    for page in pages:
        result = kframe(*command, "--report", page)
        assert result.exit_code == 0, result.output
    text = pages[0].read_text()
    assert text == pages[1].read_text()
    assert f"<title>{title}</title>" in text
    assert "default-src 'none'" in text
    assert not [word for word in ("<script", 'src="http', "href=", "<link", "url(") if word in text]


@pytest.mark.parametrize("name", COMMANDS)
def test_page_replaces_a_file_only_by_force(name: str, tmp_path: Path) -> None:
    command, title = COMMANDS[name]
    page = tmp_path / "page.html"
    page.write_text("mine")
    refused = kframe(*command, "--report", page)
    assert refused.exit_code != 0
    assert "--force" in refused.output
    assert page.read_text() == "mine"
    assert kframe(*command, "--report", page, "--force").exit_code == 0
    assert title in page.read_text()


def test_nothing_is_written_on_an_error(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = kframe("whatif", "fail", HEALTHY, "--brokers", "99", "--report", page)
    assert result.exit_code != 0
    assert not page.exists()
    missing = kframe(*COMMANDS["sweep"][0], "--report", tmp_path / "none" / "page.html")
    assert "no such directory" in missing.output
