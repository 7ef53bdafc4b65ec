"""The machine of the controller: its directory, its disk, and the processes that lead there one after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from kframe_kraft.disk import CheckpointWriter, MetaProperties, write_properties
from kframe_kraft.disk.names import BOOTSTRAP_ID
from kframe_kraft.errors import LogError, LogWriteError
from kframe_kraft.log import open_log
from kframe_kraft.server.formatting import bootstrap_records
from kframe_kraft.sources.detection import LOG_DIRECTORY

from kframe.plugin.kraft import control
from kframe_simulator.simulation.scheduler import Scheduler
from verification.kraft.faulty_files import Faults, Stopped
from verification.kraft.simulation.controller import ControllerProcess
from verification.kraft.simulation.damage import damage_directory
from verification.kraft.simulation.equality import differences
from verification.kraft.simulation.expected.brokers import offset_problems, registration_problems
from verification.kraft.simulation.history import History, WrittenBatch
from verification.kraft.simulation.options import CLUSTER_ID, CONTROLLER, Options
from verification.kraft.simulation.processes import Requests
from verification.kraft.simulation.requests import Comparison, Decided
from verification.kraft.simulation.rules import LogRules
from verification.kraft.simulation.segments import SegmentModel, default_problems
from verification.kraft.simulation.selectors import Choice, SimulatedSelector

#: The share of starts on damaged files.
_DAMAGED: Final = 0.2
_RESTART_MS: Final = (200.0, 3_000.0, 15_000.0)


class Controllers:
    """Starts a process again after each one that has ended. ``report`` gets what is wrong."""

    def __init__(
        self,
        directory: Path,
        options: Options,
        scheduler: Scheduler,
        requests: Requests,
        random: Random,
        report: Callable[[str], None],
    ) -> None:
        self.history = History()
        self.rules = LogRules(options)
        self.counts: Counter[str] = Counter()
        self.process: ControllerProcess | None = None
        self.faults = Faults(random)
        self._directory = directory
        self._options = options
        self._scheduler = scheduler
        self._requests = requests
        self._random = random
        self._report = report
        self._epoch = 0
        self._free_bytes: int | None = None
        self._is_starting = False
        self._unsynced: dict[Path, int] = {}
        for problem in default_problems():
            report(problem)
        self._format()
        self.start()

    def _format(self) -> None:
        """Format the directory, with ids of the seed."""
        options, log = self._options, self._directory / LOG_DIRECTORY
        log.mkdir()
        voters = control.VotersRecord(voters=(options.voter,)) if options.is_dynamic else None
        with CheckpointWriter(
            log / BOOTSTRAP_ID.file_name,
            BOOTSTRAP_ID,
            timestamp=0,
            now=0,
            kraft_version=int(options.is_dynamic),
            voters=voters,
        ) as writer:
            writer.add_records([*bootstrap_records(options.levels())])
            writer.finish()
        write_properties(self._directory, MetaProperties(CLUSTER_ID, CONTROLLER, options.directory_id))

    def start(self) -> None:
        """Start a process, unless one runs."""
        self._is_starting = False
        if self.process is not None:
            return
        if self._random.random() < _DAMAGED:
            self._start_damaged()
        self.counts["controller starts"] += 1
        self.faults = Faults(self._random, bytes_max=self._free_bytes, unsynced=self._unsynced)
        if self._random.random() < 0.1:
            self.faults.stop_at = self._random.randint(1, 15)
            self.faults.loses_unsynced = True
        try:
            process = ControllerProcess(
                self._directory,
                self._options,
                self.faults,
                self._scheduler,
                self._check_step,
                self._compare,
                self._selector(),
            )
        except Stopped:
            self._on_end()
        except LogWriteError:
            self._start_later()
        except LogError as error:
            self._report(f"K7: the log cannot be opened: {error}")
        else:
            self.process = process
            self._reopened(process)
            self._requests.serve(process)

    def _start_damaged(self) -> None:
        """Open a damaged directory. A log that has lost anything must be refused."""
        damage = damage_directory(self._directory / LOG_DIRECTORY, self.history.batches, self._random)
        if damage is None:
            return
        self.counts["damaged directories"] += 1
        is_refused = False
        try:
            open_log(self._directory / LOG_DIRECTORY)
        except LogError:
            is_refused = True
        if is_refused != damage.is_refused:
            self._report(f"K7: the log with a damaged {damage.what} is {'refused' if is_refused else 'opened'}")
        damage.repair()

    def _selector(self) -> SimulatedSelector | None:
        """The leader selector of a process."""
        choice = self._options.choice
        if choice is Choice.BUILTIN:
            return None
        return SimulatedSelector(choice, lambda: self.rules.image, self._report)

    def _reopened(self, process: ControllerProcess) -> None:
        """Compare the log with what was written before this process."""
        quorum, log = process.node.quorum, process.node.log
        if quorum.epoch <= self._epoch:
            self._report(f"K1: epoch {quorum.epoch} was used before")
        self._epoch = quorum.epoch
        # The first batch of the epoch is already there.
        for problem in self.history.reopened(log, self._epoch):
            self._report(f"K6: {problem}")
        self.rules = LogRules(self._options, is_unclean_requested=self.rules.is_unclean_requested)
        for batch in self.history.batches:
            list(self.rules.check(batch))
            self._follow(batch)
        self._activate(process)
        self._check_step(process)

    def _activate(self, process: ControllerProcess) -> None:
        """Begin the soft state of a process."""
        image = self.rules.image
        image.soft.session_ns, image.soft.now_ns = 1_000_000 * self._options.session_ms, self._now_ns()
        epochs = {broker_id: broker.broker_epoch for broker_id, broker in image.brokers.items()}
        image.soft.activate(epochs, process.snapshot_end)
        for problem in (
            *registration_problems(process.node.metadata, image),
            *offset_problems(process.node.metadata, image),
        ):
            self._report(f"I24: the controller has opened its log: {problem}")

    def _follow(self, batch: WrittenBatch) -> None:
        for number, record in enumerate(batch.records):
            self.rules.image.soft.follow(record, batch.base + number)

    def _now_ns(self) -> int:
        return int(self._scheduler.now_ms * 1e6)

    def _check_step(self, started: ControllerProcess | None = None) -> None:
        """Check what a step has written, committed and ended."""
        process = started or self.process
        if process is None:
            return
        batches = self.history.follow(process.node.log)
        if started is not None:
            first = [batch for batch in batches if batch.base >= started.first]
            self._segments = SegmentModel(started.node.log, self._options.node_settings().log, first)
            for problem in self._segments.begun():
                self._report(f"K6: {problem}")
        elif process.is_running and process.failure is None:
            for problem in self._segments.follow(batches):
                self._report(f"K6: {problem}")
        for batch in batches:
            for problem in self.rules.check(batch):
                self._report(problem)
            self._follow(batch)
        if batches and process.is_running:
            image = self.rules.image
            for problem in differences(process.node.metadata, image, image.changed):
                self._report(f"I24: the controller has {problem}")
            image.changed = set()
            self._check_elections(process)
        leadership = process.node.quorum.leadership
        if leadership is not None and leadership.high_watermark is not None:
            self.history.committed = max(self.history.committed, leadership.high_watermark)
        failure = process.failure
        if failure is not None:
            if failure.startswith("a decision cannot be"):
                self._report(f"K8: {failure}")
            self.counts["controller resigns"] += 1
            process.release()
        if not process.is_running:
            self._on_end()

    def _check_elections(self, process: ControllerProcess) -> None:
        """Compare the elections that a process counts with its records."""
        counted = Counter(is_eligible for offset, is_eligible in self.rules.elections if offset >= process.first)
        elections = None if process.loop is None else process.loop.elections
        if elections is not None and (elections.from_elr, elections.unclean) != (counted[True], counted[False]):
            self._report(f"I24: the controller counts {elections}, the records have {dict(counted)}")

    def _compare(self, comparison: Comparison, end: int, decided: Decided) -> None:
        """Compare a decision with the metadata before it."""
        soft = self.rules.image.soft
        soft.now_ns = self._now_ns()
        soft.draws = [] if self.process is None else self.process.random.draws
        problem: str | None
        try:
            problem = comparison(self.rules.image, end, decided)
        except Exception as error:  # The controller would take it as a failure of its own, and refuse the request.
            problem = f"a decision cannot be compared: {error!r}"
        if problem is not None:
            self._report(f"K10: {problem}")

    def _on_end(self) -> None:
        self.process = None
        self._unsynced = self.faults.crash()
        self._start_later()

    def _start_later(self) -> None:
        if not self._is_starting:
            self._is_starting = True
            self._scheduler.after(self._random.choice(_RESTART_MS), self.start)

    # -- Faults.

    def crash(self, *, loses_unsynced: bool) -> None:
        """End the process at once."""
        if self.process is not None:
            self.faults.loses_unsynced = loses_unsynced
            self.process.release()
            self._on_end()

    def stop(self) -> None:
        """Stop the process in an orderly way."""
        if self.process is not None:
            self.faults.loses_unsynced = False
            self.process.release()
            self._on_end()

    def limit_space(self, bytes_max: int, for_ms: float) -> None:
        """Leave this much room on the disk for a while."""
        self._free_bytes = self.faults.bytes_max = bytes_max
        self._scheduler.after(for_ms, self.heal)

    def heal(self) -> None:
        """End the faults of the disk."""
        self._free_bytes = self.faults.bytes_max = None
        self.faults.fails_syncs, self.faults.stop_at = False, None
        if self.process is not None:
            self.process.slowness = 1.0
            self.process.resume()
        else:
            self._start_later()
