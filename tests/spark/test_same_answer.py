"""One machine and any number of shards say the same, row for row: changes, tallies, conditions, requests and bytes."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from tests.spark.cutting import clusters, cut, same, scenarios, table, together, try_alone


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
