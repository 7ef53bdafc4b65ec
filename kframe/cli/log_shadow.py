"""``kframe controller shadow`` of a KRaft cluster: predict each committed batch, and report where the log differs."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from kframe.cli.live import awaited, cluster_of_brokers
from kframe.cli.output import BadInput
from kframe.cli.plugins import PluginSettings
from kframe.cli.progress import progress
from kframe.cli.shadow import POLL_INTERVAL_S, ShadowWatcher, watch
from kframe.cli.stop_signal import StopSignal
from kframe.core.kraft.context import KraftSettings
from kframe.errors import StoreError
from kframe.model.config import UNCLEAN
from kframe.model.ids import NO_LEADER
from kframe.model.texts import counted
from kframe.ports.committed_log import LoggedCluster
from kframe.settings.settings import Settings
from kframe.whatif.shadow.kraft import BatchComparison, BatchOutcome, LogShadow
from kframe.whatif.shadow.kraft.differences import RecordDifference

_log = logging.getLogger("kframe.shadow")

_COUNTER_NAMES: Final = {
    BatchOutcome.EQUAL: "equal",
    BatchOutcome.DIFFERS: "disagreements",
    BatchOutcome.UNPREDICTABLE: "unpredictable",
}


class ShadowedBatch(Struct):
    """A committed batch and its prediction; several batches if a decision was cut."""

    at: str
    offset: int
    records: int
    controller_id: int | None
    controller_epoch: int
    outcome: Literal["equal", "differs", "not predictable"]
    events: list[str]
    reasons: list[str]
    differences: list[RecordDifference]


class LogShadowDocument(Struct):
    """The committed log of a KRaft cluster, compared with its prediction: ``kframe controller shadow``."""

    controller_id: int | None
    controller_epoch: int | None
    end: int
    """The offset after the last batch."""
    batches: int
    equal: int
    disagreements: int
    """Batches that differ."""
    unpredictable: int
    skipped: int
    """Offsets that a snapshot replaced before they were read."""
    records: list[ShadowedBatch]
    """The batches without those of an idle log."""


class LogWatcher(ShadowWatcher[LogShadow]):
    """A run on a KRaft cluster, which reports each batch."""

    schema = "kframe.log-shadow/v1"
    summary_text = (
        "{batches} batches: {equal} equal, {unpredictable} not predictable, {skipped} offsets skipped, "
        "{disagreements} disagreements"
    )
    kinds = ("batches", *_COUNTER_NAMES.values())

    def follow(self, stop: StopSignal, for_s: float | None) -> None:
        """Read and compare until ``stop`` arrives, or ``for_s`` seconds have passed; once at least."""
        end_s = float("inf") if for_s is None else time.monotonic() + for_s
        while not stop:
            try:
                for comparison in self.shadow.poll():
                    self._report(comparison)
                self._problem = ""
            except StoreError as error:
                _log.warning("the log cannot be read: %s", error)
                self._problem = str(error)
                stop.wait(POLL_INTERVAL_S)
            if time.monotonic() >= end_s:
                break
        for comparison in self.shadow.finish():
            self._report(comparison)

    def metrics(self) -> Mapping[str, float]:
        """Counters. Callable from any thread."""
        return {**super().metrics(), "kframe_shadow_skipped_total": self.shadow.skipped}

    def _document(self) -> LogShadowDocument:
        shadow = self.shadow
        return LogShadowDocument(
            controller_id=None if shadow.controller == NO_LEADER else shadow.controller,
            controller_epoch=None if shadow.controller == NO_LEADER else shadow.controller_epoch,
            end=shadow.end,
            **{kind: self.counts[kind] for kind in self.kinds},
            skipped=shadow.skipped,
            records=self._records,
        )

    def _report(self, comparison: BatchComparison) -> None:
        self.counts.update(("batches", _COUNTER_NAMES[comparison.outcome]))
        if not (comparison.events or comparison.differences or comparison.reasons):
            return  # records of an idle log
        record = _record(comparison)
        reasons = f" ({'; '.join(record.reasons)})" if record.reasons else ""
        events = "; ".join(record.events) or counted(record.records, "record")
        headline = f"{record.at} offset {record.offset} {record.outcome}: {events}{reasons}"
        self._emit([record], [headline], [difference.line() for difference in comparison.differences], "  ")


def _record(comparison: BatchComparison) -> ShadowedBatch:
    first, last = comparison.batches[0], comparison.batches[-1]
    return ShadowedBatch(
        at=datetime.fromtimestamp(last.time_ms / 1000, UTC).isoformat(timespec="milliseconds"),
        offset=first.offset,
        records=sum(len(batch.records) for batch in comparison.batches),
        controller_id=None if last.leader_id == NO_LEADER else last.leader_id,
        controller_epoch=last.leader_epoch,
        outcome=comparison.outcome.value,
        events=list(comparison.events),
        reasons=list(dict.fromkeys(comparison.reasons)),
        differences=list(comparison.differences),
    )


def run(
    url: str,
    command_config: Path | None,
    settings: Settings,
    plugins: PluginSettings,
    *,
    from_start: bool,
    for_s: float | None,
    metrics_listen: str | None,
    output: str,
) -> int:
    """Shadow the controllers of a KRaft cluster; return the exit code."""
    cluster = cluster_of_brokers(url, command_config, plugins)
    if not isinstance(cluster, LoggedCluster):
        raise BadInput(f"{url}: found a cluster without a metadata log, expected kraft://HOST:PORT")
    config = settings.controller_config()
    static = KraftSettings(
        min_insync_replicas=config["min.insync.replicas"],
        unclean_leader_election_enable=config[UNCLEAN],
        default_replication_factor=config["default.replication.factor"],
        num_partitions=config["num.partitions"],
    )
    shadow = LogShadow(cluster.committed_log(), static, knows_unclean=UNCLEAN in settings)
    with progress("reading", awaited=awaited(url)) as tick:
        shadow.open(tick, from_start=from_start)
    return watch(LogWatcher(shadow, output), for_s=for_s, metrics_listen=metrics_listen)
