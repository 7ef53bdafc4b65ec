"""``kframe controller shadow``: look over a controller's shoulder, and say where we would have decided otherwise."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import click

from kframe.api.health import Health
from kframe.api.settings import Settings
from kframe.cli.monitor import LISTENER, Monitor
from kframe.cli.run import asked_to_stop
from kframe.errors import StoreError
from kframe.model.ids import NO_LEADER
from kframe.shadow import Shadow, Verdict
from kframe.snapshot.live import LiveCluster

_log = logging.getLogger("kframe.shadow")

#: The exit code of a run that has found disagreements.
DISAGREED: Final = 3
SCHEMA: Final = "kframe.shadow/v1"
#: How often storage is read at most, and the part of the time that is spent on it at most.
LOOK_EVERY_S: Final = 0.5
LOOK_SHARE: Final = 0.2
#: A round in which something moves all the time is given up after so many settling times.
PATIENCE: Final = 20
#: Lines for one verdict; data has them all.
LINES_MOST: Final = 50
_KINDS: Final = ("rounds", "judged", "passed_over", "given_up", "disagreements")


class Watcher:
    """One run: when to look, when to judge, and what came of it."""

    def __init__(self, shadow: Shadow, settle_s: float, output: str) -> None:
        self.shadow = shadow
        self.counts: Counter[str] = Counter()
        self._settle_s = settle_s
        self._output = output
        self._records: list[dict[str, Any]] = []
        self._moved_s = self._begun_s = 0.0
        self._problem = ""

    def follow(self, stop: threading.Event, for_s: float | None) -> None:
        """Look and judge until told to stop, or for so long; what is unsettled then is waited for."""
        end_s = float("inf") if for_s is None else time.monotonic() + for_s
        while not stop.is_set() and (time.monotonic() < end_s or self.shadow.unsettled):
            before = time.monotonic()
            try:
                self._step()
                self._problem = ""
            except StoreError as error:
                _log.warning("storage cannot be read: %s", error)
                self._problem = str(error)
            stop.wait(max(LOOK_EVERY_S, (time.monotonic() - before) * (1 / LOOK_SHARE - 1)))

    def metrics(self) -> Mapping[str, float]:
        """Counters. Callable from any thread."""
        return {f"kframe_shadow_{kind}_total": self.counts[kind] for kind in _KINDS}

    def ready(self) -> Health:
        """Whether there is a controller to look at, and a session to look by. Callable from any thread."""
        reasons = [self._problem] if self._problem else []
        reasons += [] if self.shadow.connected else ["no live session with storage"]
        reasons += [] if self.shadow.controller != NO_LEADER else ["nobody is known to be controller"]
        return Health(tuple(reasons), self._summary())

    def finish(self) -> None:
        """Say how it went."""
        document = {"schema": SCHEMA, **self._summary()}
        if self._output == "json":
            click.echo(json.dumps({**document, "found": self._records}, indent=2))
        elif self._output == "table":
            told = "{rounds} rounds, {judged} partitions judged, {passed_over} passed over, {given_up} rounds given up"
            click.echo(
                f"{told}: {{disagreements}} disagreements".format(**{kind: self.counts[kind] for kind in _KINDS})
            )

    def _summary(self) -> dict[str, Any]:
        return {"controller_id": self.shadow.controller, **{kind: self.counts[kind] for kind in _KINDS}}

    def _step(self) -> None:
        now = time.monotonic()
        waiting = self._begun_s > 0
        if self.shadow.look():
            self._moved_s = now
            self._begun_s = self._begun_s if waiting else now
        if not self.shadow.unsettled:
            self._begun_s = 0.0
        elif now - self._moved_s >= self._settle_s or (waiting and now - self._begun_s > PATIENCE * self._settle_s):
            settled = now - self._moved_s >= self._settle_s
            verdict = self.shadow.judge()
            if verdict is not None:
                self._begun_s = 0.0
                self._tell(verdict) if settled else self.counts.update(given_up=1)

    def _tell(self, verdict: Verdict) -> None:
        self.counts.update(
            rounds=1, judged=verdict.judged, passed_over=verdict.passed_over, disagreements=len(verdict.disagreements)
        )
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        records = [{"at": at, **disagreement.record()} for disagreement in verdict.disagreements]
        if self._output == "jsonl":
            for record in records:
                click.echo(json.dumps(record))
        elif self._output == "json":
            self._records += records
        else:
            for disagreement in verdict.disagreements[:LINES_MOST]:
                click.echo(f"{at} {disagreement.line()}")
            if len(verdict.disagreements) > LINES_MOST:
                click.echo(f"{at} and {len(verdict.disagreements) - LINES_MOST} more (-o jsonl lists them all)")


def run(
    cluster: LiveCluster, settings: Settings, *, settle_s: float, for_s: float | None, metrics_listen: str | None,
    output: str,
) -> int:  # fmt: skip
    """Shadow the controller of a live cluster; return the exit code."""
    stop = asked_to_stop()
    shadow = Shadow(cluster.reader(), settings.controller_config())
    watcher = Watcher(shadow, settle_s, output)
    shadow.open()
    monitor = None if metrics_listen is None else Monitor(metrics_listen)
    try:
        if monitor is not None:
            monitor.serve(watcher.metrics, lambda: Health((), {}), watcher.ready)
            click.echo(f"metrics on {monitor.addresses[LISTENER]}", err=True)
        click.echo(f"shadowing controller {shadow.controller}; nothing is written", err=True)
        watcher.follow(stop, for_s)
    finally:
        if monitor is not None:
            monitor.stop()
        shadow.close()
    watcher.finish()
    return DISAGREED if watcher.counts["disagreements"] else 0
