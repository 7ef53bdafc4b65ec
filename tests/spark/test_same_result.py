"""A cluster from rows in any order has the result of its snapshot: changes, counts, conditions, requests and bytes."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import event, given
from hypothesis import strategies as st

from kframe.spark.grouping import pack
from kframe.spark.schema import CLUSTER_TABLES, TOPICS
from tests.spark.outcomes import (
    assert_same_rows,
    clusters,
    reference_rows_or_problem,
    result_of,
    scenarios,
    tables,
    whole_scenarios,
)


@given(st.data())
def test_packed_rows_have_result_of_snapshot(data: st.DataObject) -> None:
    """Without the table of topics, each topic has partitions: one without any has no row."""
    without_topics = data.draw(st.booleans())
    snapshot = data.draw(clusters(min_count=int(without_topics)))
    has_names = bool(snapshot.topics.names)
    scenario_row = data.draw(st.one_of(scenarios(snapshot), *[whole_scenarios(snapshot)] * has_names))
    contents = {}
    for table in CLUSTER_TABLES:
        rows = tables(snapshot)[table.name]
        rows = rows.take(pa.array(data.draw(st.permutations(range(rows.num_rows))), pa.int64()))
        pieces = pack(rows.to_batches(max_chunksize=3), table)
        streams = [pa.ipc.open_stream(piece["data"][0].as_buffer()).read_all() for piece in pieces]
        contents[table.name] = pa.concat_tables([table.schema.empty_table(), *streams])
    if without_topics:
        del contents[TOPICS.name]
    expected, actual = reference_rows_or_problem(snapshot, scenario_row), result_of(contents, scenario_row)
    if isinstance(expected, str) or isinstance(actual, str):
        assert actual == expected
        event("refused")
        return
    event(f"{scenario_row['verb']}, {'changes' if expected['changes'] else 'nothing changed'}")
    assert_same_rows(actual, expected)
