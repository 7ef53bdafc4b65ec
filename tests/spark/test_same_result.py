"""One machine and any number of shards have equal rows: changes, counts, conditions, requests and bytes."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from kframe.spark.play import EngineSettings, play
from tests.spark.sharding import (
    assert_same_rows,
    clusters,
    concatenated,
    merged_rows,
    reference_rows_or_problem,
    scenarios,
    shard_rows,
    table,
    to_play,
    whole_scenarios,
)


@given(st.data())
def test_whole_cluster_from_pieces_equals_one_machine(data: st.DataObject) -> None:
    """Verbs that shards cannot execute: restart, reassign, create, delete, and elections of named partitions.

    Every topic has partitions. A topic without partitions has no row, but increments the counter of broker epochs.
    """
    snapshot = data.draw(clusters(min_count=1))
    scenario_row = data.draw(whole_scenarios(snapshot))
    rows = table(snapshot)
    owners = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=7))
    parts = shard_rows(rows, owners, data.draw(st.permutations(range(rows.num_rows))))
    expected = reference_rows_or_problem(snapshot, scenario_row)
    (refused,) = play(to_play(snapshot, parts[:1], [scenario_row]), EngineSettings())
    assert "it needs the whole" in refused["problem"][0].as_py()
    if isinstance(expected, str):
        (result,) = play(to_play(snapshot, concatenated(parts), [scenario_row]), EngineSettings(), whole=True)
        assert result["problem"][0].as_py() == expected
        event("refused")
        return
    event(f"{scenario_row['verb']}, {'changes' if expected['changes'] else 'nothing changed'}")
    assert_same_rows(merged_rows(snapshot, scenario_row, parts), expected)


@given(st.data())
def test_merged_shards_equal_one_machine(data: st.DataObject) -> None:
    snapshot = data.draw(clusters())
    scenario_row = data.draw(scenarios(snapshot))
    rows = table(snapshot)
    owners = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=7))
    order = data.draw(st.permutations(range(rows.num_rows)))
    expected = reference_rows_or_problem(snapshot, scenario_row)
    if isinstance(expected, str):
        event("refused")
        return
    event(f"{scenario_row['verb']}, {'changes' if expected['changes'] else 'nothing changed'}")
    assert_same_rows(merged_rows(snapshot, scenario_row, shard_rows(rows, owners, order)), expected)
