"""Check that the rows of a request have topics."""

from __future__ import annotations

from kframe.model.arrays import Int32
from kframe.model.cluster import ClusterState
from kframe.wire.sections import check_topics


def require_topics(name: str, cluster: ClusterState, rows: Int32) -> None:
    """``check_topics`` for many rows: if every row of the cluster has a topic, these rows are not looked up.

    Raises ShapeError if a row of request ``name`` belongs to no topic.
    """
    topic = cluster.partitions.topic
    if len(rows) < len(topic) or int(topic.min(initial=0)) < 0:
        check_topics(name, cluster, rows)
