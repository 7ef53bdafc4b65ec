"""The requests to the brokers of a fleet. The batches of all shards are merged, then encoded by the real encoder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kframe.embedded import Api
from kframe.engines.zookeeper.observe import APIS, encode_known, encoder_for, framed_bytes
from kframe.errors import ConfigError
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.model.requests import BatchCause, BrokerRows, ControlRequests
from kframe.spark.announced import merged
from kframe.spark.kraft import without_features
from kframe.spark.part import ClusterFacts
from kframe.spark.schema import INT, LONG, TEXT, FleetTable

#: The requests of one API to one broker in one batch. ``bytes`` counts sizes, headers and bodies; it is null, and
#: ``unknown`` says why, if a request must name a broker whose endpoints are unknown. ``encoded`` are the bodies, if
#: requested.
REQUESTS: Final = FleetTable(
    "requests",
    pa.schema(
        [("cluster", TEXT), ("scenario", TEXT), ("step", INT), ("cause", TEXT), ("round", INT), ("broker_id", INT),
         ("api", TEXT), ("requests", LONG), ("entries", LONG), ("bytes", LONG), ("unknown", TEXT),
         ("encoded", pa.list_(pa.binary()))]
    ),
    ("cluster", "scenario", "step", "cause", "round", "broker_id", "api"),
)  # fmt: skip


def encode(
    batches: Iterable[pa.RecordBatch], config: dict[str, object], keep: bool = False
) -> Iterator[pa.RecordBatch]:
    """Merged batches as rows of REQUESTS.

    Each row in is one batch of one cluster and scenario: ``step``, ``cause``, ``round``, the ``data`` of all shards,
    and of the cluster ``brokers``, ``controller_id``, ``controller_epoch`` and ``broker_default_configs``. With
    ``keep`` the bodies are kept.
    """
    settings = ControllerConfig(without_features(config))
    for batch in batches:
        for index in range(batch.num_rows):
            row = batch.slice(index, 1).to_pylist()[0]
            cause = BatchCause(row["cause"])
            cluster, requests = merged(row["data"], ClusterFacts.of(row), cause)
            shared = [row["cluster"], row["scenario"], row["step"], cause.name.lower(), row["round"]]
            yield sent(cluster, requests, settings, shared, keep=keep)


def encode_alone(
    announced: pa.RecordBatch, cluster: ClusterFacts, scenario: str, config: dict[str, object], keep: bool = False
) -> Iterator[pa.RecordBatch]:
    """The batches of a cluster that was played whole (rows of ANNOUNCED without cluster and scenario) as rows of
    REQUESTS. ``keep`` is as in ``encode``."""
    settings = ControllerConfig(without_features(config))
    for row in announced.to_pylist():
        if row["sent"]:
            cause = BatchCause(row["cause"])
            state, requests = merged([row["data"]], cluster, cause)
            shared = [cluster.name, scenario, row["step"], cause.name.lower(), row["round"]]
            yield sent(state, requests, settings, shared, keep=keep)


def sent(
    cluster: ClusterState, requests: ControlRequests, config: ControllerConfig, shared: list[Any], *, keep: bool
) -> pa.RecordBatch:
    """One batch as rows of REQUESTS. ``shared`` are the columns up to ``round``."""
    counts = _listed(cluster, requests)
    unknown = None
    try:
        for request in encode_known(encoder_for(config), cluster, requests):
            count = counts[int(request.broker), APIS[request.api_key]]
            count["requests"] += 1
            count["bytes"] += framed_bytes(request, requests.controller_id)
            if keep:
                count["encoded"].append(b"".join(request.chunks))
    except ConfigError as problem:
        unknown = str(problem)
    ids = cluster.brokers.ids
    rows = [
        [*shared, int(ids[broker]), api.value, max(count["requests"], 1) if unknown else count["requests"],
         count["entries"], None if unknown else count["bytes"], unknown,
         count["encoded"] if keep and not unknown else None]
        for (broker, api), count in counts.items()
    ]  # fmt: skip
    columns = [pa.array([row[index] for row in rows], field.type) for index, field in enumerate(REQUESTS.schema)]
    return pa.RecordBatch.from_arrays(columns, schema=REQUESTS.schema)


def _listed(cluster: ClusterState, requests: ControlRequests) -> dict[tuple[int, Api], dict[str, Any]]:
    """The number of entries for each broker and API, before anything is encoded."""
    counts: dict[tuple[int, Api], dict[str, Any]] = {}

    def add(broker: int, api: Api, entries: int) -> None:
        counts[broker, api] = {"requests": 0, "entries": entries, "bytes": 0, "encoded": []}

    for broker, entries in _lengths(requests.leader_and_isr):
        add(broker, Api.LEADER_AND_ISR, entries)
    for broker in requests.metadata_brokers.tolist():
        add(broker, Api.UPDATE_METADATA, len(requests.metadata_rows))
    for broker, entries in _lengths(requests.stop_replica):
        add(broker, Api.STOP_REPLICA, entries)
    return counts


def _lengths(rows: BrokerRows) -> Iterator[tuple[int, int]]:
    return zip(rows.brokers.tolist(), np.diff(rows.offsets).tolist(), strict=True)
