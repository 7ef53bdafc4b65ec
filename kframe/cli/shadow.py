"""``kframe controller shadow``: follow an active controller, and report where kframe would have decided otherwise."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

import click
from msgspec import UNSET, Struct, UnsetType

from kframe.cli.exits import HAS_FINDINGS
from kframe.cli.monitor import LISTENER, Monitor
from kframe.cli.output import plain
from kframe.cli.stop_signal import StopSignal
from kframe.errors import StoreError
from kframe.model.ids import NO_LEADER
from kframe.ports.live_cluster import LiveCluster
from kframe.runtime.health import HealthStatus
from kframe.settings.settings import Settings
from kframe.whatif.shadow import Comparison, Shadow
from kframe.whatif.shadow.comparison import DisagreementRecord

_log = logging.getLogger("kframe.shadow")

#: Minimum interval between reads of storage, and the largest share of the time spent on them.
POLL_INTERVAL_S: Final = 0.5
POLL_TIME_SHARE_MAX: Final = 0.2
#: Number of settling times after which a round without quiescence is abandoned.
SETTLE_PERIODS_MAX: Final = 20
#: Maximum number of lines per comparison; JSON has all.
LINES_MAX: Final = 50


class ShadowDocument(Struct):
    """The comparison with an active controller: ``kframe controller shadow``."""

    controller_id: int
    rounds: int
    compared: int
    skipped: int
    abandoned: int
    disagreements: int
    records: list[DisagreementRecord] | UnsetType = UNSET


class RunningShadow(Protocol):
    """A shadow while it is watched."""

    @property
    def controller(self) -> int:
        """The id of the last known controller. -1 if there is none."""

    def close(self) -> None:
        """Disconnect."""


RunningShadowT = TypeVar("RunningShadowT", bound=RunningShadow)


class ShadowWatcher(Generic[RunningShadowT]):
    """One run of the command with a kind of shadow: compares and counts the results."""

    schema: ClassVar[str]
    summary_text: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    """What is counted."""

    def __init__(self, shadow: RunningShadowT, output: str) -> None:
        self.shadow = shadow
        self.counts: Counter[str] = Counter()
        self._output = output
        self._records: list[Any] = []
        self._problem = ""

    def follow(self, stop: StopSignal, for_s: float | None) -> None:
        """Read and compare until ``stop`` arrives, or ``for_s`` seconds have passed."""
        raise NotImplementedError

    def metrics(self) -> Mapping[str, float]:
        """Counters. Callable from any thread."""
        return {f"kframe_shadow_{kind}_total": self.counts[kind] for kind in self.kinds}

    def ready(self) -> HealthStatus:
        """Whether decisions can be compared. Callable from any thread."""
        return HealthStatus((self._problem,) if self._problem else (), self._summary())

    def finish(self) -> None:
        """Print the summary."""
        if self._output == "json":
            click.echo(json.dumps({"schema": self.schema, **plain(self._document())}, indent=2))
        elif self._output == "table":
            click.echo(self.summary_text.format(**self._summary()))

    def _emit(self, records: list[Any], headline: list[str], disagreements: list[str], indent: str) -> None:
        """Print a comparison: its records, now or in the document, or its first lines."""
        match self._output:
            case "jsonl":
                for record in records:
                    click.echo(json.dumps(plain(record)))
            case "json":
                self._records += records
            case _:
                omitted = len(disagreements) - LINES_MAX
                further = [f"and {omitted} more (-o jsonl lists them all)"] if omitted > 0 else []
                for line in [*headline, *(f"{indent}{text}" for text in [*disagreements[:LINES_MAX], *further])]:
                    click.echo(line)

    def _summary(self) -> dict[str, Any]:
        """The document without the reported comparisons."""
        document = self._document()
        return {name: getattr(document, name) for name in document.__struct_fields__ if name != "records"}

    def _document(self) -> Struct:
        """The controller, the counts, and ``records``: the reported comparisons."""
        raise NotImplementedError


class Watcher(ShadowWatcher[Shadow]):
    """A run in ZooKeeper mode, which schedules comparisons."""

    schema = "kframe.shadow/v1"
    summary_text = (
        "{rounds} rounds, {compared} partitions compared, {skipped} skipped, {abandoned} rounds abandoned: "
        "{disagreements} disagreements"
    )
    kinds = ("rounds", "compared", "skipped", "abandoned", "disagreements")

    def __init__(self, shadow: Shadow, settle_s: float, output: str) -> None:
        super().__init__(shadow, output)
        self._settle_s = settle_s
        self._changed_s = self._waiting_since_s = 0.0

    def follow(self, stop: StopSignal, for_s: float | None) -> None:
        """Read and compare until ``stop`` arrives, or ``for_s`` seconds have passed and all changes are compared."""
        end_s = float("inf") if for_s is None else time.monotonic() + for_s
        while not stop and (time.monotonic() < end_s or self.shadow.unsettled):
            before = time.monotonic()
            try:
                self._step()
                self._problem = ""
            except StoreError as error:
                _log.warning("storage cannot be read: %s", error)
                self._problem = str(error)
            stop.wait(max(POLL_INTERVAL_S, (time.monotonic() - before) * (1 / POLL_TIME_SHARE_MAX - 1)))

    def ready(self) -> HealthStatus:
        """Whether there is a controller and a live session. Callable from any thread."""
        reasons = [self._problem] if self._problem else []
        reasons += [] if self.shadow.connected else ["no live session with storage"]
        reasons += [] if self.shadow.controller != NO_LEADER else ["no known controller"]
        return HealthStatus(tuple(reasons), self._summary())

    def _document(self) -> ShadowDocument:
        counts = {kind: self.counts[kind] for kind in self.kinds}
        return ShadowDocument(controller_id=self.shadow.controller, **counts, records=self._records)

    def _step(self) -> None:
        now = time.monotonic()
        waiting = self._waiting_since_s > 0
        if self.shadow.poll():
            self._changed_s = now
            self._waiting_since_s = self._waiting_since_s if waiting else now
        if not self.shadow.unsettled:
            self._waiting_since_s = 0.0
        elif now - self._changed_s >= self._settle_s or (
            waiting and now - self._waiting_since_s > SETTLE_PERIODS_MAX * self._settle_s
        ):
            settled = now - self._changed_s >= self._settle_s
            comparison = self.shadow.compare()
            if comparison is not None:
                self._waiting_since_s = 0.0
                self._report(comparison) if settled else self.counts.update(abandoned=1)

    def _report(self, comparison: Comparison) -> None:
        self.counts.update(
            rounds=1,
            compared=comparison.compared,
            skipped=comparison.skipped,
            disagreements=len(comparison.disagreements),
        )
        timestamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        records = [disagreement.record(timestamp) for disagreement in comparison.disagreements]
        lines = [disagreement.line() for disagreement in comparison.disagreements]
        self._emit(records, [], lines, f"{timestamp} ")


def run(
    cluster: LiveCluster,
    settings: Settings,
    *,
    settle_s: float,
    for_s: float | None,
    metrics_listen: str | None,
    output: str,
) -> int:
    """Shadow the controller of a live cluster; return the exit code."""
    shadow = Shadow(cluster.reader(), settings.controller_config())
    shadow.open()
    return watch(Watcher(shadow, settle_s, output), for_s=for_s, metrics_listen=metrics_listen)


def watch(watcher: ShadowWatcher[Any], *, for_s: float | None, metrics_listen: str | None) -> int:
    """Run an open shadow until SIGTERM or SIGINT, or for ``for_s`` seconds, and close it; return the exit code."""
    monitor = None if metrics_listen is None else Monitor(metrics_listen)
    try:
        if monitor is not None:
            monitor.serve(watcher.metrics, lambda: HealthStatus((), {}), watcher.ready)
            click.echo(f"metrics on {monitor.addresses[LISTENER]}", err=True)
        click.echo(f"shadowing controller {watcher.shadow.controller}; nothing is written", err=True)
        with StopSignal() as stop:
            watcher.follow(stop, for_s)
    finally:
        if monitor is not None:
            monitor.stop()
        watcher.shadow.close()
    watcher.finish()
    return HAS_FINDINGS if watcher.counts["disagreements"] else 0
