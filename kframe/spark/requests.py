"""The requests to the brokers of a fleet, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kframe.spark.row_types import RequestsRow
from kframe.spark.schema import INT, FleetTable, columns_of
from kframe.whatif import Outcome
from kframe.whatif.results.traffic import SentBatch

#: The requests of one API to one broker in one batch. ``batch`` is its number in the step, from 1. ``bytes`` counts
#: sizes, headers and bodies; it is null, and ``unknown`` says why, if a request must name a broker whose endpoints are
#: unknown. ``encoded`` are the bodies, if requested.
REQUESTS: Final = FleetTable(
    "requests",
    columns_of(RequestsRow, step=INT, batch=INT, broker_id=INT, encoded=pa.list_(pa.binary())),
    ("cluster", "scenario", "step", "batch", "broker_id", "api"),
)


def request_rows(outcome: Outcome) -> pa.Table:
    """The requests in the recorded batches of an outcome, without cluster and scenario."""
    ids = outcome.broker_ids.tolist()
    rows = [
        {"step": step_number, "batch": batch_number, **row, "broker_id": ids[row["broker_id"]]}
        for step_number, step in enumerate(outcome.steps, 1)
        for batch_number, batch in enumerate(step.batches, 1)
        for row in _batch_rows(batch)
    ]
    return pa.Table.from_pylist(rows, pa.schema(list(REQUESTS.schema)[2:]))


def _batch_rows(batch: SentBatch) -> Iterator[dict[str, Any]]:
    """``broker_id`` is the index of the broker."""
    for api, sent in batch.traffic.items():
        for broker in np.flatnonzero((sent.requests > 0) | (sent.entries > 0)).tolist():
            yield {
                "broker_id": broker, "api": api.value, "requests": int(sent.requests[broker]),
                "entries": int(sent.entries[broker]), "bytes": sent.bytes_of(broker), "unknown": batch.bytes_unknown,
                "encoded": batch.bodies.get((api, broker)),
            }  # fmt: skip
