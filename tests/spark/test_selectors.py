"""Leader selectors of every tier on a fleet.

Selectors of single partitions run on shards, selectors of whole batches on whole clusters. A missing selector is an
error with its name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kframe.errors import PluginError
from kframe.registry.registry import build_registry
from kframe.snapshot.generate import Health, generate
from kframe.spark import failover
from kframe.spark.play import EngineSettings, play
from tests.cli.running import kframe
from tests.registry.conftest import compile_selectors
from tests.spark.fleets import snapshot_directory
from tests.spark.sharding import (
    assert_same_rows,
    concatenated,
    merged,
    reference_rows,
    scenario,
    shard_rows,
    table,
    to_play,
)
from tests.spark.test_failover import frames, rows, scenario_frame

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
    return [SelectorSpec("last-in-sync-native", Tier.NATIVE, make, kinds, "The last.", row_by_row=True)]
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


@pytest.mark.parametrize("verb", ["fail", "shutdown"])
def test_partition_selectors_decide_the_same_on_shards(engine: EngineSettings, verb: str) -> None:
    assert not engine.needs_whole_clusters()
    scenario_row = scenario(verb, [1, 2], together=False)
    parts = to_play(SNAPSHOT, shard_rows(table(SNAPSHOT), [0, 2, 1, 1], range(600)), [scenario_row])
    expected = reference_rows(SNAPSHOT, scenario_row, selectors=engine.selector_maker()())
    assert_same_rows(merged(play(parts, engine), parts[0]), expected)
    assert expected["changes"] != reference_rows(SNAPSHOT, scenario_row)["changes"]


def test_batch_selector_decides_differently_on_shards() -> None:
    """The fleet then processes whole clusters, and the combined rows of shards are elected as on one machine."""
    pytest.importorskip("kframe_rack_spread")
    engine, scenario_row = EngineSettings(selectors=("rack-spread",)), scenario(brokers=[2])
    assert engine.needs_whole_clusters()
    assert EngineSettings(selectors=("first-in-sync", "rack-spread")).needs_whole_clusters()
    expected = reference_rows(SNAPSHOT, scenario_row, selectors=build_registry().selectors_for(["rack-spread"]))
    shards = shard_rows(table(SNAPSHOT), [0, 2, 1, 1], range(600))
    whole = to_play(SNAPSHOT, concatenated(shards), [scenario_row])
    assert_same_rows(merged(play(whole, engine, whole=True), whole[0]), expected)
    parts = to_play(SNAPSHOT, shards, [scenario_row])
    assert merged(play(parts, engine), parts[0])["changes"] != expected["changes"]


@pytest.mark.parametrize(("engine", "message"), [
    (EngineSettings(selectors=("rack-sprad",)), "no leader selector 'rack-sprad'; did you mean"),
    (EngineSettings(selectors=("rack-spread",), disabled=("rack-spread",)), "is disabled"),
    (EngineSettings(selectors=("first-in-sync",), plugins_dir="/nowhere"), "found /nowhere"),
    (EngineSettings(selectors=("first-in-sync",), selector_options={"first-in-sync": {"rack": "a"}}), "option 'rack'"),
], ids=["unknown", "disabled", "no plugins dir", "wrong option"])  # fmt: skip
def test_selector_build_error_names_the_machine(engine: EngineSettings, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        list(play([], engine))
    assert message in str(caught.value)
    assert str(caught.value).startswith("on ")


def test_rack_spread_selector_gets_whole_clusters(spark: Any) -> None:
    pytest.importorskip("kframe_rack_spread")
    engine = EngineSettings(selectors=("rack-spread",), parts=("changes",))
    played = failover.played(
        *frames(spark, {"east": SNAPSHOT}), scenario_frame(spark, [scenario(brokers=[2])]), engine, target=100
    ).persist()
    expected = reference_rows(
        SNAPSHOT, scenario(brokers=[2]), selectors=build_registry().selectors_for(["rack-spread"])
    )
    assert_same_rows({"changes": rows(failover.changes(played))}, {"changes": expected["changes"]})
    assert played.count() == 1
    played.unpersist()


def test_native_selector_of_directory_runs_in_executors(spark: Any, native: Path, tmp_path: Path) -> None:
    (tmp_path / "fleet").mkdir()
    snapshot_directory(tmp_path / "fleet" / "east", SNAPSHOT)
    out = tmp_path / "out"
    result = kframe("spark", "failover", tmp_path / "fleet", "--brokers", 2, "--selector", "last-in-sync-native",
                  "--plugins-dir", native, "--out", out, "-o", "json")  # fmt: skip
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
