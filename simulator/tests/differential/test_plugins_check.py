"""``kframe plugins check`` with the simulator installed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kframe.cli.plugins import group


def run(*arguments: object) -> Result:
    return CliRunner().invoke(group, [str(argument) for argument in arguments])


def rows(result: Result) -> Any:
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.stdout)["rows"]


SELECTOR = """
from kframe.plugin import ElectionKind, SelectorSpec, Tier, hookimpl

@hookimpl
def kframe_leader_selectors():
    lowest = lambda election: min((broker for broker in election.eligible if broker in election.isr), default=None)
    return [SelectorSpec("lowest", Tier.SCALAR, lambda: lowest, (ElectionKind.OFFLINE,), "The lowest id.")]
"""


def test_plugins_check_simulates_clusters_with_selector(tmp_path: Path) -> None:
    (tmp_path / "lowest.py").write_text(SELECTOR)
    result = rows(run("check", "lowest", "--plugins-dir", tmp_path, "-o", "json"))
    assert (result[-1]["check"], result[-1]["passed"]) == ("simulated-clusters", True)


FORGETFUL = """
from kframe.embedded import MemoryEnsemble, MemoryStore
from kframe.plugin import StoreSpec, hookimpl
from kframe.model.cluster import ClusterState
from kframe.ports.store_requests import WriteConfigs

class Forgetful(MemoryStore):
    def perform(self, request):
        return None if isinstance(request, WriteConfigs) else super().perform(request)

ENSEMBLE = MemoryEnsemble.from_cluster(ClusterState())

@hookimpl
def kframe_stores():
    make = lambda url: Forgetful(ENSEMBLE.records, ENSEMBLE.states, ENSEMBLE.topics)
    return [StoreSpec("forgetful", make, "Keeps no settings.")]
"""


@pytest.mark.parametrize("name, check", [("memory", "simulated-histories"), ("embedded", "simulated-batches")])
def test_check_of_a_store_and_of_a_transport(name: str, check: str) -> None:
    (row,) = rows(run("check", name, "-o", "json"))
    assert (row["offer"], row["check"], row["passed"], row["problem"]) == (name, check, True, None)


@pytest.mark.extended
def test_check_reports_a_difference_from_the_embedded_store(tmp_path: Path) -> None:
    (tmp_path / "forgetful.py").write_text(FORGETFUL)
    result = run("check", "forgetful", "--plugins-dir", tmp_path, "-o", "json")
    assert result.exit_code == 1
    (row,) = rows(result)
    assert (row["kind"], row["passed"]) == ("store", False)
    assert re.match(r"seed 1, step \d+: session \d: write_configs\(.* notified once", row["problem"])


@pytest.mark.parametrize("name, why", [("recording", "nothing is offered"), ("counting", "nothing is offered")])
def test_transport_without_brokers_is_reported(name: str, why: str) -> None:
    result = run("check", name)
    assert result.exit_code == 2
    assert "not tried: " in result.stderr
    assert why in result.stderr


def test_store_that_cannot_be_imported_is_reported(tmp_path: Path) -> None:
    (tmp_path / "nowhere.py").write_text(
        "from kframe.plugin import StoreSpec, hookimpl\n\n@hookimpl\ndef kframe_stores():\n"
        "    return [StoreSpec('nowhere', 'no.such:store', 'Not there.')]\n"
    )
    result = run("check", "nowhere", "--plugins-dir", tmp_path)
    assert result.exit_code == 2
    assert "no.such:store cannot be imported" in result.stderr
