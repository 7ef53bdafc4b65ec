"""One machine and any number of shards say the same, row for row: changes, tallies, conditions, requests and bytes."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from kframe.spark.play import Engine, play
from tests.spark.cutting import (
    clusters,
    cut,
    in_one,
    same,
    scenarios,
    table,
    to_play,
    together,
    try_alone,
    whole_scenarios,
)


@given(st.data())
def test_whole_clusters_from_pieces_say_what_one_machine_says(data: st.DataObject) -> None:
    """Verbs that no shard can be asked: restart, reassign, create, delete, and elections of named partitions.

    Every topic has partitions: of one without no row tells, and it moves the counter of broker epochs."""
    snapshot = data.draw(clusters(least=1))
    one = data.draw(whole_scenarios(snapshot))
    rows = table(snapshot)
    owners = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=7))
    parts = cut(rows, owners, data.draw(st.permutations(range(rows.num_rows))))
    expected = try_alone(snapshot, one)
    (refused,) = play(to_play(snapshot, parts[:1], [one]), Engine())
    assert "it needs the whole" in refused["problem"][0].as_py()
    if isinstance(expected, str):
        (told,) = play(to_play(snapshot, in_one(parts), [one]), Engine(), whole=True)
        assert told["problem"][0].as_py() == expected
        event("refused")
        return
    event(f"{one['verb']}, {'changes' if expected['changes'] else 'nothing changed'}")
    same(together(snapshot, one, parts), expected)


@given(st.data())
def test_shards_say_together_what_one_machine_says(data: st.DataObject) -> None:
    snapshot = data.draw(clusters())
    one = data.draw(scenarios(snapshot))
    rows = table(snapshot)
    owners = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=7))
    order = data.draw(st.permutations(range(rows.num_rows)))
    expected = try_alone(snapshot, one)
    if isinstance(expected, str):
        event("refused")
        return
    event(f"{one['verb']}, {'changes' if expected['changes'] else 'nothing changed'}")
    same(together(snapshot, one, cut(rows, owners, order)), expected)
