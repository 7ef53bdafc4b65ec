"""Leader selectors of every tier on a fleet.

They decide on whole clusters. A missing selector is an error with its name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kframe.snapshot.generate import Health, generate
from kframe.spark.play import EngineSettings
from tests.cli.running import kframe
from tests.registry.conftest import compile_selectors
from tests.spark.fleets import snapshot_directory
from tests.spark.outcomes import assert_same_rows, reference_rows, result_of, scenario, tables

SNAPSHOT = generate(600, 6, racks=3, seed=4, health=Health(under_replicated=0.2, preferred_replica_imbalance=0.2))
EXAMPLES = Path(__file__).parents[2] / "examples" / "selectors"
NATIVE = """
import ctypes
from kframe.plugin import SIGNATURE, ElectionKind, NativeFunction, SelectorSpec, Tier, hookimpl

library = ctypes.CDLL({library!r})
address = ctypes.cast(library.last_in_sync, ctypes.c_void_p).value

@hookimpl
def kframe_leader_selectors():
    kinds = (ElectionKind.OFFLINE, ElectionKind.CONTROLLED_SHUTDOWN)
    make = lambda: NativeFunction(address, SIGNATURE, owner=library)
    return [SelectorSpec("last-in-sync-native", Tier.NATIVE, make, kinds, "The last.")]
"""


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of plugins with a native selector."""
    directory = tmp_path_factory.mktemp("natives")
    (directory / "natives.py").write_text(NATIVE.format(library=str(compile_selectors(directory))))
    return directory


@pytest.fixture(params=["native", "bulk", "scalar"])
def engine(request: pytest.FixtureRequest, native: Path) -> EngineSettings:
    """One selector of each tier with one rule: the last in-sync replica leads."""
    plugins_dir = native if request.param == "native" else EXAMPLES
    return EngineSettings(selectors=(f"last-in-sync-{request.param}",), plugins_dir=str(plugins_dir))


def test_selectors_of_a_fleet_decide_as_on_one_machine(engine: EngineSettings) -> None:
    scenario_row = scenario("shutdown", [1, 2], together=False)
    expected = reference_rows(SNAPSHOT, scenario_row, selectors=engine.selector_maker()())
    actual = result_of(tables(SNAPSHOT), scenario_row, engine)
    assert not isinstance(actual, str)
    assert_same_rows(actual, expected)
    assert expected["changes"] != reference_rows(SNAPSHOT, scenario_row)["changes"]


def test_native_selector_of_directory_runs_in_executors(spark: Any, native: Path, tmp_path: Path) -> None:
    (tmp_path / "fleet").mkdir()
    snapshot_directory(tmp_path / "fleet" / "east", SNAPSHOT)
    out = tmp_path / "out"
    result = kframe(
        "spark",
        "failover",
        tmp_path / "fleet",
        "--brokers",
        2,
        "--selector",
        "last-in-sync-native",
        "--plugins-dir",
        native,
        "--out",
        out,
        "-o",
        "json",
    )
    assert result.exit_code == 0, result.output
    rows = [row.asDict() for row in spark.read.parquet(str(out / "changes")).collect()]
    make = EngineSettings(selectors=("last-in-sync-native",), plugins_dir=str(native)).selector_maker()
    expected = reference_rows(SNAPSHOT, scenario(brokers=[2]), selectors=make())["changes"]
    expected_leaders = {(row["topic"], row["partition"]): row["leader_after"] for row in expected}
    assert {(row["topic"], row["partition"]): row["leader_after"] for row in rows} == expected_leaders
    assert json.loads(result.stdout)["rows"][0]["states_changed"] == len(expected_leaders)


def test_selector_missing_on_executors_prints_single_line(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "fleet").mkdir()
    snapshot_directory(tmp_path / "fleet" / "east", SNAPSHOT)
    result = kframe("spark", "failover", tmp_path / "fleet", "--brokers", 2, "--selector", "rack-sprad")
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert "where a part of the fleet is played: no leader selector 'rack-sprad'" in line
