"""An Outcome as plain data, under the schema that JSON output and the files of ``--out`` share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final, Protocol

from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.snapshot import Snapshot
from kframe.whatif.results.health import ClusterHealth
from kframe.whatif.results.outcome import ControllerResponse, FailOn, Outcome, StepOutcome

SCHEMA: Final = "kframe.whatif/v1"
#: How many partitions a response names.
NAMES_MAX: Final = 20

#: Column name of each kind of request.
API_COLUMNS: Final = {
    Api.LEADER_AND_ISR: "leader_and_isr",
    Api.UPDATE_METADATA: "update_metadata",
    Api.STOP_REPLICA: "stop_replica",
}


class NamesPartitions(Protocol):
    """A cluster, whichever its mode."""

    def name(self, row: int) -> str:
        """``topic-partition`` of a row."""


def summary_document(outcome: Outcome, snapshot: Snapshot, cluster: NamesPartitions) -> dict[str, Any]:
    """An outcome without the changed partitions, which ``outcome.changes`` has in columns and as records.

    ``cluster`` is the cluster of the outcome; it supplies the names. Unknown facts are None.
    """
    operation = asdict(outcome.operation)
    operation.update(
        verb=str(outcome.operation.verb), brokers=list(outcome.operation.brokers),
        topics=list(outcome.operation.topics), directories=list(outcome.operation.directories),
    )  # fmt: skip
    optional_fields: dict[str, Any] = {}
    if outcome.records is not None:
        optional_fields["records"] = [asdict(count) for count in outcome.records]
    if outcome.reassignment is not None:
        optional_fields["reassignment"] = outcome.reassignment.document()
    if outcome.topics:
        optional_fields["topics"] = [topic.record() for topic in outcome.topics]
    return {
        "schema": SCHEMA,
        "operation": {"text": outcome.operation.text(), **operation},
        "snapshot": {
            "format": snapshot.source.format,
            "name": snapshot.source.name,
            "mode": snapshot.mode,
            "cluster_id": snapshot.cluster_id,
            "controller_id": snapshot.controller_id,
            "controller_epoch": snapshot.controller_epoch,
            "brokers": len(snapshot.brokers),
            "topics": len(snapshot.topics),
            "partitions": len(snapshot),
        },
        "rules": outcome.rules,
        "changed": outcome.changed,
        "impact": asdict(outcome.impact),
        "findings": {str(what): outcome.count_of(what) for what in FailOn},
        "before": _health(outcome.before),
        "after": _health(outcome.after),
        "steps": [_step(step, cluster) for step in outcome.steps],
        **optional_fields,
        "brokers": list(broker_records(outcome)),
        "bytes_unknown": outcome.bytes_unknown,
        "assumptions": list(outcome.assumptions),
        "notes": list(outcome.notes),
    }


def broker_records(outcome: Outcome) -> Iterator[dict[str, Any]]:
    """The load of each broker before and after, and in ZooKeeper mode the requests to it."""
    before, after = outcome.before, outcome.after
    for index, broker_id in enumerate(outcome.broker_ids.tolist()):
        sent: dict[str, int | None] = {}
        if outcome.traffic:
            sent["requests"] = sum(int(traffic.requests[index]) for traffic in outcome.traffic.values())
            sent["bytes"] = _all_bytes(outcome, index)
        for api, traffic in outcome.traffic.items():
            column = API_COLUMNS[api]
            sent[f"{column}_requests"] = int(traffic.requests[index])
            sent[f"{column}_partitions"] = int(traffic.entries[index])
            sent[f"{column}_bytes"] = traffic.bytes_of(index)
        yield {
            "broker_id": broker_id,
            "rack": outcome.racks[index],
            "registered_before": bool(before.registered[index]),
            "registered_after": bool(after.registered[index]),
            "leaders_before": int(before.leaders[index]),
            "leaders_after": int(after.leaders[index]),
            "preferred_leaders": int(after.preferred[index]),
            "replicas_before": int(before.replicas[index]),
            "replicas": int(after.replicas[index]),
            "in_sync_replicas_before": int(before.in_sync[index]),
            "in_sync_replicas_after": int(after.in_sync[index]),
            **sent,
        }


def _all_bytes(outcome: Outcome, broker: int) -> int | None:
    sizes = [traffic.bytes_of(broker) for traffic in outcome.traffic.values()]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def timeline_records(outcome: Outcome) -> Iterator[dict[str, Any]]:
    """All events, in order. Each has the number and name of its step."""
    for number, step in enumerate(outcome.steps, 1):
        for timeline_event in step.events:
            yield {"step": number, "name": step.name, "text": timeline_event.text(), **timeline_event.record()}


def _health(health: ClusterHealth) -> dict[str, Any]:
    return {
        **health.counts(),
        "registered_brokers": int(health.registered.sum()),
        "leader_skew": asdict(health.leader_skew),
        "replica_skew": asdict(health.replica_skew),
    }


def _step(step: StepOutcome, cluster: NamesPartitions) -> dict[str, Any]:
    return {
        "name": step.name,
        "timeline": [{"text": timeline_event.text(), **timeline_event.record()} for timeline_event in step.events],
        **step.counts,
        "response": None if step.response is None else _response(step.response, cluster),
    }


def _response(response: ControllerResponse, cluster: NamesPartitions) -> dict[str, Any]:
    """A ControlledShutdown response counts remaining partitions; others count errors and name some partitions."""
    document: dict[str, Any] = {"error": response.error.name}
    if response.codes is None:
        document["remaining"] = len(response.rows)
    else:
        document[response.unit] = response.counts()
    if response.named is not None:
        return {**document, "named": list(response.named[:NAMES_MAX])}
    named = response.rows if response.codes is None else response.rows[response.codes != ErrorCode.NONE]
    return {**document, "named": [cluster.name(row) for row in named[:NAMES_MAX].tolist()]}
