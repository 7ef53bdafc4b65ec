"""Writes controller.log and state-change.log from the log entries of the core and the effects of an event.

Entries with a single line are written after each step. Entries with a line per partition, and lines on requests, are
written after the event, when all requests are sent; their number is bounded. Disabled levels cost no formatting.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe.core.controller import ControllerCore
from kframe.model.changes import WriteResult
from kframe.model.effects import Effect, Send
from kframe.model.events import Done, EffectResult, Event
from kframe.model.log_entries import LogEntry, PartitionSample
from kframe.model.texts import counted
from kframe.ports.clock import Clock
from kframe.ports.store_requests import WriteStates
from kframe.runtime import controller_log, state_change_log
from kframe.runtime.controller_log import EventSize, processed_line
from kframe.runtime.log_text import Template, line_of, lines_of_partitions, lines_of_topics
from kframe.runtime.rate_limit import RateLimit
from kframe.runtime.state_change_log import SentRequests

#: The limit of lines on partitions and requests, per event and per second.
LINES_PER_SECOND: Final = 1000
#: Partitions named for each failed state change where ERROR is logged, but INFO is not.
FAILURES_LOGGED: Final = 10
#: The limit of lines ``Processed ...`` per second and type of event.
EVENTS_PER_SECOND: Final = 10

CONTROLLER_LOGGER: Final = "kframe.controller"
STATE_CHANGE_LOGGER: Final = "kframe.statechange"


@dataclass(frozen=True, slots=True, eq=False)
class _Deferred:
    """Lines to write after the event, with the time of their cause (seconds since the epoch)."""

    created: float
    content: LogEntry | SentRequests


class EventLogs:
    """The logs of a controller. Only the thread that handles events uses it."""

    def __init__(self, controller: ControllerCore, clock: Clock) -> None:
        self._controller = controller
        self._now_ms = clock.now_ms
        self._controller_log = logging.getLogger(CONTROLLER_LOGGER)
        self._state_change_log = logging.getLogger(STATE_CHANGE_LOGGER)
        self._lines = RateLimit(LINES_PER_SECOND, clock.now_ms)
        self._processed: dict[type[Event], RateLimit] = {}
        self._deferred: list[_Deferred] = []
        self._size = EventSize()
        self._has_info_lines = False
        """Whether the event has made a line of level INFO or above."""
        self._changes = False

    def begin(self) -> None:
        """An event is about to be handled."""
        self._changes = self._state_change_log.isEnabledFor(logging.INFO)
        is_logged = self._changes or self._controller_log.isEnabledFor(logging.INFO)
        log, failures = self._controller.log, self._state_change_log.isEnabledFor(logging.ERROR)
        log.partitions_max = LINES_PER_SECOND if is_logged else 0
        log.failures_max = max(log.partitions_max, FAILURES_LOGGED if failures else 0)
        self._size, self._has_info_lines = EventSize(), False

    def stepped(self) -> None:
        """The controller has taken a step: write what it reported."""
        for entry in self._controller.log.take():
            logger, template = self._template(entry)
            sample = entry.values.get("sample")
            if isinstance(sample, PartitionSample):
                self._size.changes[entry.message] += sample.names.count
            if not logger.isEnabledFor(template.level):
                continue
            self._has_info_lines |= template.level >= logging.INFO
            if sample is not None:
                self._deferred.append(_Deferred(time.time(), entry))
            elif "each_topic" in entry.values:
                for line in lines_of_topics(template, entry, self._controller.controller_id):
                    self._write(logger, template.level, line)
            else:
                self._write(logger, template.level, line_of(template, entry, self._controller.controller_id))

    def performed(self, effect: Effect, result: EffectResult | None) -> None:
        """Count a performed effect, before the columns change again."""
        match effect, result:
            case WriteStates(), Done(value=WriteResult() as written):
                self._size.partitions += int(np.count_nonzero(written.accepted))
            case Send(requests=requests), Done():
                leader_and_isr, stop_replica = requests.leader_and_isr.brokers, requests.stop_replica.brokers
                metadata = requests.metadata_brokers
                self._size.leader_and_isr += len(leader_and_isr)
                self._size.update_metadata += len(metadata)
                self._size.stop_replica += len(stop_replica)
                self._size.brokers.update(leader_and_isr.tolist(), metadata.tolist(), stop_replica.tolist())
                if self._changes:
                    sent = SentRequests.of(self._controller.cluster, requests)
                    self._deferred.append(_Deferred(time.time(), sent))

    def finish(self, event: Event, duration_ms: float) -> None:
        """Write the deferred lines and the summary of the event."""
        if self._deferred:
            deferred, self._deferred = self._deferred, []
            self._write_deferred(deferred)
        level = logging.INFO if self._has_info_lines or self._size.partitions or self._size.requests else logging.DEBUG
        if not self._controller_log.isEnabledFor(level):
            return
        limit = self._processed.setdefault(type(event), RateLimit(EVENTS_PER_SECOND, self._now_ms))
        if limit.take():
            suppressed, controller_id = limit.take_suppressed(), self._controller.controller_id
            line = processed_line(controller_id, event, duration_ms, self._size, suppressed)
            self._write(self._controller_log, level, line)

    def _template(self, entry: LogEntry) -> tuple[logging.Logger, Template]:
        template = controller_log.TEMPLATES.get(entry.message)
        if template is not None:
            return self._controller_log, template
        return self._state_change_log, state_change_log.TEMPLATES[entry.message]

    def _write_deferred(self, deferred: list[_Deferred]) -> None:
        """Write short entries completely. Longer ones share the rest of the limit evenly."""
        budget = self._lines.available
        shares = dict.fromkeys(range(len(deferred)), 0)
        waiting = sorted(shares, key=lambda index: _size(deferred[index].content))
        remaining = budget
        for position, index in enumerate(waiting):
            shares[index] = min(_size(deferred[index].content), remaining // (len(waiting) - position))
            remaining -= shares[index]
        self._lines.take(budget - remaining)
        omitted = 0
        for index, entry in enumerate(deferred):
            omitted += self._write_shared(entry, shares[index])
        if omitted:
            controller_id, epoch = self._controller.controller_id, self._controller.controller_epoch
            prefix = state_change_log.PREFIX.format(id=controller_id, epoch=epoch)
            self._write(
                self._state_change_log, logging.INFO, f"{prefix}left out: {counted(omitted, 'line')} on requests"
            )

    def _write_shared(self, deferred: _Deferred, share: int) -> int:
        """Write at most ``share`` lines of an entry. Return the number of omitted lines on requests."""
        controller_id = self._controller.controller_id
        if isinstance(deferred.content, LogEntry):
            logger, template = self._template(deferred.content)
            for line in lines_of_partitions(template, deferred.content, controller_id, share):
                self._write(logger, template.level, line, deferred.created)
            return 0
        lines = list(deferred.content.lines(controller_id))
        for line in lines[:share]:
            self._write(self._state_change_log, logging.INFO, line, deferred.created)
        return len(lines) - share

    @staticmethod
    def _write(logger: logging.Logger, level: int, line: str, created: float | None = None) -> None:
        record = logger.makeRecord(logger.name, level, "", 0, line, (), None)
        if created is not None:
            record.created, record.msecs = created, int(created % 1 * 1000)
        logger.handle(record)


def _size(content: LogEntry | SentRequests) -> int:
    """The number of lines."""
    if isinstance(content, LogEntry):
        sample = content.values["sample"]
        return len(sample)  # type: ignore[arg-type]
    return len(content.leader_and_isr) + len(content.stop_replica) + bool(content.metadata_brokers)
