"""Inject the faults of a section into a cluster, and compare what was seen with the guarantees."""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from kazoo.exceptions import KazooException

from verification.kafka_wire.campaigns import clock_faults, network_faults, process_faults, resource_faults
from verification.kafka_wire.campaigns.fault_cluster import FAULT_S, Fault, FaultReport, fault_cluster
from verification.kafka_wire.replication import SESSION_MS
from verification.support.evidence import facts_lines
from verification.zookeeper import clocks, java, network
from verification.zookeeper.clocks import Clocks

#: The bound on recovery of the page.
RECOVERY_S: Final = SESSION_MS / 1000 + 10
_INTRODUCTION: Final = f"""\
# Faults of the network, processes, resources and clocks

Three ZooKeeper 3.8.4 servers, three Kafka 3.9.1 brokers and two instances of kframe ran in network namespaces of their
own. A thread of the test forwards packets between the namespaces, and drops or delays them. Each row has its own topic
of six partitions with `min.insync.replicas=2`, and its own pair of instances. An idempotent producer with `acks=all`
sent 500 records a second. Sessions time out after {SESSION_MS // 1000} s, and followers leave the ISR after 6 s.
A fault lasts {FAULT_S:.0f} s where the table does not state more.

Each row has these checks:

- A consumer finds every acknowledged record at its offset, once and in order, and no other record.
- No broker executes a control request with a lower controller epoch than before. All requests of a controller epoch
  come from one controller.
- No controller epoch or leader epoch decreases in ZooKeeper.
- After the fault one instance is active, the other stands by, each partition has all replicas in sync, and Kafka's
  admin client shows the stored state. `recovered` has the seconds from the end of the fault until then.
  The expected limit is {RECOVERY_S:.0f} s, the session timeout plus 10 s; higher values are bold.
- Both instances are running.

`elections` has the increase of the controller epoch, `during` the records that were acknowledged during the fault.
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A table of the page."""

    title: str
    text: str
    faults: Sequence[Fault]
    limit_s: float = RECOVERY_S
    """Higher values of ``recovered_s`` are bold."""


def sections(fake_clocks: Clocks | None) -> dict[str, Section]:
    """All sections by name. Without clocks, the last one has no faults."""
    return {
        "network": Section("Network", network_faults.TEXT, network_faults.FAULTS),
        "processes": Section("Processes", process_faults.TEXT, process_faults.FAULTS, float("inf")),
        "resources": Section("Disk and descriptors", resource_faults.TEXT, resource_faults.FAULTS),
        "clocks": Section("Clocks", clock_faults.TEXT, [] if fake_clocks is None else clock_faults.faults(fake_clocks)),
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """See ``Campaign``."""
    parser.add_argument("section", nargs="*", choices=list(sections(None)), help="default: all")
    parser.add_argument("--only", default="", metavar="PATTERN", help="only faults whose names match")
    parser.add_argument("--seed", type=int, default=0, help="of lost packets (default: 0)")


def missing() -> str | None:
    """See ``Campaign``."""
    return java.missing() or network.missing() or clocks.missing()


def run(
    options: argparse.Namespace, folder: Path, facts: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Any], Sequence[str]]]:
    """See ``Campaign``. Sections that are not run stay as they are in the record."""
    record: dict[str, Any] = json.loads(options.record.read_text()) if options.record.exists() else {}
    violations: list[str] = []
    for name in options.section or sections(None):
        reports: list[Mapping[str, Any]] = []
        record[name] = {**facts, "faults": reports}
        for report in _observed(name, folder / name, options):
            print(report, flush=True)
            reports.append(asdict(report))
            violations += (f"{report.name}: {violation}" for violation in report.violations)
            yield record, violations


def _observed(name: str, folder: Path, options: argparse.Namespace) -> Iterator[FaultReport]:
    """The reports of a section. A cluster that does not recover is replaced by another."""
    fake_clocks = Clocks(folder / "clocks")
    pending = [fault for fault in sections(fake_clocks)[name].faults if re.search(options.only, fault.name)]
    while pending:
        with ExitStack() as stack:
            cluster_folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            environment = fake_clocks.environment if name == "clocks" else lambda _: {}
            cluster = stack.enter_context(fault_cluster(cluster_folder, options.seed, environment))
            while pending:
                fault = pending.pop(0)
                try:
                    yield cluster.observe(fault)
                except (AssertionError, KazooException) as error:
                    yield FaultReport(fault.name, "not completed", 0, 0, 0, float("inf"), [repr(error)])
                    break


def page(record: Mapping[str, Any]) -> str:
    """The evidence page in Markdown."""
    lines = [_INTRODUCTION]
    for name, section in sections(None).items():
        if name in record:
            lines += [f"## {section.title}", "", section.text, "", *_table(record[name], section.limit_s), ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(run: Mapping[str, Any], limit_s: float) -> list[str]:
    rows = [
        "| fault | what it did | elections | acknowledged | during | recovered | violations |",
        "|---|---|---|---|---|---|---|",
    ]
    for fault in run["faults"]:
        mark = "**" if fault["recovered_s"] > limit_s else ""
        recovered = f"{mark}{fault['recovered_s']:.1f} s{mark}"
        rows.append(
            f"| {fault['name']} | {fault['effect']} | {fault['controller_epochs']} | {fault['acknowledged']:,} |"
            f" {fault['acknowledged_during']:,} | {recovered} | {len(fault['violations'])} |"
        )
    return [*rows, "", *facts_lines(run)]
