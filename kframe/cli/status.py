"""The report of ``kframe controller status`` on a live cluster, from storage and the pages of the active instance."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

import click
import numpy as np

from kframe.cli.monitor import STATUS, is_loopback, parse_address
from kframe.cli.output import cell, emit_heading, emit_reasons, emit_record
from kframe.cli.selectors import selectors_text
from kframe.errors import ConfigError
from kframe.model.config import ControllerConfig
from kframe.model.ids import ReplicaFlag
from kframe.model.texts import counted
from kframe.ports.live_cluster import ClusterStatus, LiveCounts
from kframe.snapshot.instances import Instance, utc_text
from kframe.whatif.engines.settings import DYNAMIC_KEYS
from kframe.whatif.engines.zookeeper.health import health_of

SCHEMA: Final = "kframe.controller-status/v1"
_TIMEOUT_S: Final = 3.0
_PAGE_BYTES_MAX: Final = 2**24
_NOTES_MAX: Final = 3
_ALL_INTERFACES: Final = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class Page:
    """The controller's own figures. ``problem`` is the reason if they are missing."""

    queues: Mapping[str, int] | None = None
    quarantined: Mapping[str, str] | None = None
    selectors: list[dict[str, Any]] | None = None
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


def report(status: ClusterStatus, page: Page, config: ControllerConfig) -> dict[str, Any]:
    """All known values as plain data; None is unknown. ``config`` has the settings that brokers do not store."""
    quarantined, unreadable = page.quarantined, status.unreadable
    if quarantined is None:
        # A controller quarantines every unreadable record that a quick status reads.
        quarantined = status.unreadable if status.counts is None else status.counts.quarantined
    return {
        "controller_id": status.controller_id,
        "controller_kind": status.kind,
        "controller_host": None if status.instance is None else status.instance.host,
        "controller_pid": None if status.instance is None else status.instance.pid,
        "controller_epoch": status.controller_epoch,
        "elected": None if status.elected_ms is None else utc_text(status.elected_ms),
        "standbys": [
            {
                "id": standby.controller_id,
                "host": standby.host,
                "pid": standby.pid,
                "started": utc_text(standby.started_ms),
            }
            for standby in status.standbys
        ],
        "cluster_id": status.cluster_id,
        "brokers": list(status.broker_ids),
        "topics": status.topics,
        "partitions": status.partitions,
        **_partition_counts(status.counts, config),
        "queues": page.queues if page.queues is None else dict(page.queues),
        "queues_unknown": page.problem,
        "selectors": page.selectors,
        "quick": status.counts is None,
        "quarantined_by": "storage" if page.quarantined is None else "controller",
        "quarantined": _reasons(quarantined),
        "unreadable": _reasons({path: reason for path, reason in unreadable.items() if path not in quarantined}),
        "warnings": list(status.warnings),
    }


def show(record: Mapping[str, Any], output: str) -> None:
    """Print a report as data, or as a table that begins with the controller."""
    if output not in ("table", "wide"):
        emit_record(SCHEMA, record, output)
        return
    lists = ("quarantined", "unreadable")
    standbys = ", ".join(f"{standby['id']} on {standby['host']} pid {standby['pid']}" for standby in record["standbys"])
    lines: dict[str, Any] = {
        "controller": _controller_line(record), "standbys": standbys or "none", "cluster_id": record["cluster_id"],
    }  # fmt: skip
    lines |= {key: record[key] for key in ("brokers", "topics", "partitions", *_COUNTS)}
    lines["queues"] = record["queues"] if record["queues_unknown"] is None else f"unknown: {record['queues_unknown']}"
    if isinstance(lines["queues"], dict):
        lines["queues"] = ", ".join(f"broker {queue}: {waiting}" for queue, waiting in lines["queues"].items())
    selectors = record["selectors"]
    lines["leader_selectors"] = "unknown" if selectors is None else selectors_text(selectors)
    lines |= {key: len(record[key]) for key in lists if key == "quarantined" or record[key]}
    lines["security"] = _security_line(record["warnings"])
    emit_record(SCHEMA, lines, output)
    for key in lists:
        emit_reasons(key, {entry["path"]: entry["reason"] for entry in record[key]})
    if output == "wide" and record["warnings"]:
        emit_heading("security")
        for warning in record["warnings"]:
            click.echo(f"  {cell(warning)}")


#: Counts of partitions and topics in a report, in display order.
_COUNTS: Final = (
    "offline_partitions", "under_replicated_partitions", "under_min_isr_partitions", "topics_to_delete",
    "reassigning_partitions",
)  # fmt: skip


def _partition_counts(counts: LiveCounts | None, config: ControllerConfig) -> dict[str, int | None]:
    if counts is None:
        return dict.fromkeys(_COUNTS)
    dynamic = {key: counts.broker_defaults[key] for key in DYNAMIC_KEYS if key in counts.broker_defaults}
    with suppress(ConfigError):  # Brokers reject such a value too, and use their own.
        config = ControllerConfig({**config.originals, **dynamic})
    health = health_of(counts.cluster, config).counts()
    values = (health["offline"], health["under_replicated"], health["under_min_isr"], counts.deletions,
             _reassigning(counts))  # fmt: skip
    return dict(zip(_COUNTS, values, strict=True))


def _reassigning(counts: LiveCounts) -> int:
    """Partitions with adding or removing replicas, and partitions with a requested reassignment."""
    p, names = counts.cluster.partitions, counts.cluster.topics.names
    rows_of_all = np.arange(len(p))
    flags = p.replica_flags[p.slots_of(rows_of_all)] & (ReplicaFlag.ADDING | ReplicaFlag.REMOVING)
    rows = np.flatnonzero(p.lists("replica", rows_of_all).any(flags != 0))
    reassigning = {(names[int(p.topic[row])], int(p.partition[row])) for row in rows.tolist()}
    return len(reassigning | counts.targets)


def _controller_line(record: Mapping[str, Any]) -> str:
    controller_id, kind = record["controller_id"], record["controller_kind"]
    match kind:
        case None:
            text = f"none (epoch {cell(record['controller_epoch'])})"
        case "kframe":
            text = f"kframe {cell(controller_id)} on {record['controller_host']} pid {record['controller_pid']}"
        case "broker":
            text = f"broker {controller_id}"
        case "kraft":
            text = f"KRaft controller {controller_id}"
        case _:
            text = f"{cell(controller_id)}, not a registered broker or instance of kframe"
    if kind is not None:
        text += f", epoch {cell(record['controller_epoch'])}, since {cell(record['elected'])}"
    return text


def _security_line(warnings: list[str]) -> str:
    if not warnings:
        return "no znode is open to all clients"
    omitted = len(warnings) - _NOTES_MAX
    first = "; ".join(warnings[:_NOTES_MAX])
    return f"{first}; and {counted(omitted, 'more note')} (-o wide shows all)" if omitted > 0 else first


def _selectors(listed: Any) -> list[dict[str, Any]] | None:
    """The leader selectors that a page lists; None for the page of a release without them."""
    if listed is None:
        return None
    return [
        {
            "name": str(entry["name"]),
            "elections": list(map(str, entry["elections"])),
            "options": {str(name): value for name, value in entry["options"].items()},
        }
        for entry in listed
    ]


def _reasons(reasons: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"path": path, "reason": reason} for path, reason in sorted(reasons.items())]


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
