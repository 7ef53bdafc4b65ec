"""The report of ``kframe controller status`` on a live cluster, from storage and the pages of the active instance."""

from __future__ import annotations

import itertools
import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

import click
import numpy as np
from msgspec import Struct

from kframe.cli.documents.cluster import QuarantinedPath
from kframe.cli.layout import cell
from kframe.cli.monitor import STATUS, is_loopback, parse_address
from kframe.cli.output import emit_heading, emit_reasons, emit_record, plain
from kframe.cli.selectors import ChosenSelectorRecord, selectors_text
from kframe.errors import ConfigError
from kframe.model.config import ControllerConfig
from kframe.model.ids import ReplicaFlag
from kframe.model.texts import counted
from kframe.ports.live_cluster import ClusterStatus, ControllerKind, LiveCounts
from kframe.snapshot import Snapshot
from kframe.snapshot.instances import Instance, utc_text
from kframe.whatif import WhatIf
from kframe.whatif.engines.settings import DYNAMIC_KEYS
from kframe.whatif.engines.zookeeper.health import health_of

SCHEMA: Final = "kframe.controller-status/v1"
_TIMEOUT_S: Final = 3.0
_PAGE_BYTES_MAX: Final = 2**24
_NOTES_MAX: Final = 3
_ALL_INTERFACES: Final = ("0.0.0.0", "::")


class StandbyRecord(Struct):
    """An instance of kframe that waits for the role."""

    id: int
    host: str
    pid: int
    started: str


class StatusDocument(Struct):
    """A live cluster and its controller: ``kframe controller status``. Null is unknown or absent."""

    controller_id: int | None
    controller_kind: ControllerKind | None
    controller_host: str | None
    controller_pid: int | None
    controller_epoch: int | None
    elected: str | None
    standbys: list[StandbyRecord]
    cluster_id: str | None
    brokers: list[int]
    topics: int
    partitions: int | None
    offline_partitions: int | None
    under_replicated_partitions: int | None
    under_min_isr_partitions: int | None
    topics_to_delete: int | None
    reassigning_partitions: int | None
    queues: dict[str, int] | None
    """Requests that wait, by broker id."""
    queues_unknown: str | None
    """Why ``queues`` is null."""
    selectors: list[ChosenSelectorRecord] | None
    """Leader selectors of the active kframe; none is Kafka's rule. Null if its page cannot be read."""
    quick: bool
    quarantined_by: str
    quarantined: list[QuarantinedPath]
    unreadable: list[QuarantinedPath]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Page:
    """The controller's own figures. ``problem`` is the reason if they are missing."""

    queues: Mapping[str, int] | None = None
    quarantined: Mapping[str, str] | None = None
    selectors: list[ChosenSelectorRecord] | None = None
    problem: str | None = None


def fetch_page(status: ClusterStatus) -> Page:
    """The page of the active instance. Any failure is named in the result."""
    if status.kind is None:
        return Page(problem="there is no controller")
    if status.instance is None:
        return Page(problem="the controller is no instance of kframe")
    instance = status.instance
    if instance.metrics is None:
        return Page(problem="the controller serves no pages (--metrics-listen)")
    try:
        document = _get(instance, instance.metrics)
        queues = {str(int(broker_id)): int(waiting) for broker_id, waiting in document["queues"].items()}
        quarantined = {str(path): str(reason) for path, reason in document["quarantined"].items()}
        selectors = _selectors(document.get("selectors"))
    except (OSError, HTTPException, ConfigError, ValueError, KeyError, TypeError, AttributeError) as error:
        return Page(problem=f"the page at {instance.metrics} cannot be read ({str(error) or type(error).__name__})")
    return Page(queues, quarantined, selectors)


def report(status: ClusterStatus, page: Page, config: ControllerConfig) -> StatusDocument:
    """All known values; None is unknown. ``config`` has the settings that brokers do not store."""
    quarantined, unreadable, instance = page.quarantined, status.unreadable, status.instance
    if quarantined is None:
        # A controller quarantines every unreadable record that a quick status reads.
        quarantined = status.unreadable if status.counts is None else status.counts.quarantined
    return StatusDocument(
        controller_id=status.controller_id,
        controller_kind=status.kind,
        controller_host=None if instance is None else instance.host,
        controller_pid=None if instance is None else instance.pid,
        controller_epoch=status.controller_epoch,
        elected=None if status.elected_ms is None else utc_text(status.elected_ms),
        standbys=[
            StandbyRecord(standby.controller_id, standby.host, standby.pid, utc_text(standby.started_ms))
            for standby in status.standbys
        ],
        cluster_id=status.cluster_id,
        brokers=list(status.broker_ids),
        topics=status.topics,
        partitions=status.partitions,
        **(_partition_counts(status.counts, config) if status.snapshot is None else _captured_counts(status.snapshot)),
        queues=None if page.queues is None else dict(page.queues),
        queues_unknown=page.problem,
        selectors=page.selectors,
        quick=status.counts is None and status.snapshot is None,
        quarantined_by="storage" if page.quarantined is None else "controller",
        quarantined=_reasons(quarantined),
        unreadable=_reasons({path: reason for path, reason in unreadable.items() if path not in quarantined}),
        warnings=list(status.warnings),
    )


def show(document: StatusDocument, output: str) -> None:
    """Print a report as data, or as a table that begins with the controller."""
    if output not in ("table", "wide"):
        emit_record(SCHEMA, document, output)
        return
    fields = plain(document)
    standbys = ", ".join(f"{standby.id} on {standby.host} pid {standby.pid}" for standby in document.standbys)
    queues: str | None = f"unknown: {document.queues_unknown}"
    if document.queues_unknown is None:
        queues = ", ".join(f"broker {queue}: {waiting}" for queue, waiting in (document.queues or {}).items())
    paths = {"quarantined": document.quarantined, "unreadable": document.unreadable}
    lines: dict[str, Any] = {
        "controller": _controller_line(document),
        "standbys": standbys or "none",
        "cluster_id": document.cluster_id,
        **{key: fields[key] for key in ("brokers", "topics", "partitions", *_COUNTS)},
        "queues": queues,
        "leader_selectors": "unknown" if document.selectors is None else selectors_text(document.selectors),
        **{key: len(entries) for key, entries in paths.items() if key == "quarantined" or entries},
        "security": "not audited" if document.controller_kind == "kraft" else _security_line(document.warnings),
    }
    emit_record(SCHEMA, lines, output)
    for key, entries in paths.items():
        emit_reasons(key, {entry.path: entry.reason for entry in entries})
    if output == "wide" and document.warnings:
        emit_heading("security")
        for warning in document.warnings:
            click.echo(f"  {cell(warning)}")


#: Counts of partitions and topics in a report, in display order.
_COUNTS: Final = (
    "offline_partitions",
    "under_replicated_partitions",
    "under_min_isr_partitions",
    "topics_to_delete",
    "reassigning_partitions",
)


def _partition_counts(counts: LiveCounts | None, config: ControllerConfig) -> dict[str, int | None]:
    if counts is None:
        return dict.fromkeys(_COUNTS)
    dynamic = {key: counts.broker_defaults[key] for key in DYNAMIC_KEYS if key in counts.broker_defaults}
    with suppress(ConfigError):  # Brokers reject such a value too, and use their own.
        config = ControllerConfig({**config.originals, **dynamic})
    health = health_of(counts.cluster, config).counts()
    values = (
        health["offline"],
        health["under_replicated"],
        health["under_min_isr"],
        counts.deletions,
        _reassigning(counts),
    )
    return dict(zip(_COUNTS, values, strict=True))


def _captured_counts(snapshot: Snapshot) -> dict[str, int | None]:
    """A KRaft cluster deletes a topic at once, and stores reassignments in the partitions alone."""
    health = WhatIf(snapshot).health().counts()
    adding, removing = snapshot.partitions.adding_replicas, snapshot.partitions.removing_replicas
    reassigning = None
    if adding is not None and removing is not None:
        reassigning = int(np.count_nonzero((adding.counts > 0) | (removing.counts > 0)))
    values = (health["offline"], health["under_replicated"], health["under_min_isr"], 0, reassigning)
    return dict(zip(_COUNTS, values, strict=True))


def _reassigning(counts: LiveCounts) -> int:
    """Partitions with adding or removing replicas, and partitions with a requested reassignment."""
    p, names = counts.cluster.partitions, counts.cluster.topics.names
    rows_of_all = np.arange(len(p))
    flags = p.replica_status[p.slots_of(rows_of_all)] & (ReplicaFlag.ADDING | ReplicaFlag.REMOVING)
    rows = np.flatnonzero(p.lists("replica", rows_of_all).any(flags != 0))
    reassigning = {(names[int(p.topic[row])], int(p.partition[row])) for row in rows.tolist()}
    return len(reassigning | counts.targets)


def _controller_line(document: StatusDocument) -> str:
    controller_id, kind = document.controller_id, document.controller_kind
    match kind:
        case None:
            text = f"none (epoch {cell(document.controller_epoch)})"
        case "kframe":
            text = f"kframe {cell(controller_id)} on {document.controller_host} pid {document.controller_pid}"
        case "broker":
            text = f"broker {controller_id}"
        case "kraft":
            text = f"KRaft controller {controller_id}"
        case _:
            text = f"{cell(controller_id)}, not a registered broker or instance of kframe"
    if kind is not None:
        text += f", epoch {cell(document.controller_epoch)}, since {cell(document.elected)}"
    return text


def _security_line(warnings: list[str]) -> str:
    if not warnings:
        return "no znode is open to all clients"
    omitted = len(warnings) - _NOTES_MAX
    first = "; ".join(warnings[:_NOTES_MAX])
    return f"{first}; and {counted(omitted, 'more note')} (-o wide shows all)" if omitted > 0 else first


def _selectors(listed: Any) -> list[ChosenSelectorRecord] | None:
    """The leader selectors that a page lists; None for the page of a release without them."""
    if listed is None:
        return None
    return [
        ChosenSelectorRecord(
            name=str(entry["name"]),
            elections=list(map(str, entry["elections"])),
            options={str(name): value for name, value in entry["options"].items()},
        )
        for entry in listed
    ]


def _reasons(reasons: Mapping[str, str]) -> list[QuarantinedPath]:
    return list(itertools.starmap(QuarantinedPath, sorted(reasons.items())))


def _get(instance: Instance, address: str) -> Any:
    """The document of the STATUS page. Raises OSError, ConfigError and ValueError."""
    host, port = parse_address(address)
    if is_loopback(host) and instance.host != platform.node():
        raise OSError(f"it is served on {instance.host} alone")
    connection = HTTPConnection(instance.host if host in _ALL_INTERFACES else host, port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", STATUS)
        response = connection.getresponse()
        body = response.read(_PAGE_BYTES_MAX)
    finally:
        connection.close()
    if response.status != 200:
        raise OSError(f"status {response.status}")
    document = json.loads(body)
    if document.get("token") != instance.token:
        raise OSError("another process serves it")
    return document
