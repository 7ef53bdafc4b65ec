"""Every failure of one broker, two brokers, one rack and one log directory of a KRaft cluster, from its counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kframe.errors import ErrorCode, InputError
from kframe.model.arrays import Bool, Int32, Int64
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.ids import ELR_VERSION
from kframe.model.kraft.releases import ReleaseRule
from kframe.ports.progress import Progress
from kframe.snapshot import Snapshot
from kframe.whatif.engines.kraft.engine import KraftEngine
from kframe.whatif.engines.kraft.features import request_levels
from kframe.whatif.engines.kraft.sweep_counts import COUNTED, FailureChanges, FailureTargets, count_changes
from kframe.whatif.engines.settings import knows_min_insync
from kframe.whatif.results.health import Skew
from kframe.whatif.results.release import ClusterRelease
from kframe.whatif.results.sweep import KINDS, METRICS, FailedDirectories, Failure, Sweep

#: Columns of a Sweep, by name.
_Columns: TypeAlias = dict[str, NDArray[Any]]
_BEFORE: Final = ("offline", "under_min_isr", "at_min_isr", "needs_unclean_election", "may_lose_data")


def count_failures(
    snapshot: Snapshot,
    config: Mapping[str, object] | None,
    *,
    depth: int,
    racks: bool,
    elr: bool | None,
    progress: Progress,
    part: int = 0,
    parts: int = 1,
) -> CountedFailures:
    """The counts of all failures in one of the ``parts`` of a cluster's partitions. ``CountedFailures.sum`` of all
    parts has the failures of ``kframe.whatif.sweep``. The numbers are those of ``WhatIf.fail`` and
    ``fail_directories``.

    ``elr``: turn eligible leader replicas on or off first, as ``WhatIf.update_features`` does; None leaves them
    as they are. Raises InputError if the controller refuses that. With ``depth`` 0 only racks are counted.
    """
    engine = KraftEngine(snapshot, config)
    if elr is not None and elr != engine.cluster.elr_enabled:
        response = request_levels(engine, {ELR_VERSION: int(elr)}, unsafe=False)
        if response.error is not ErrorCode.NONE:
            reason = ", ".join(response.named or ()) or response.error.name
            raise InputError(ELR_VERSION, f"level {int(elr)}, which the controller refuses: {reason}", "a valid level")
    targets = FailureTargets.of(
        engine.context, {facts.broker_id: facts.rack if racks else None for facts in snapshot.brokers}
    )
    size = len(engine.cluster.partitions)
    rows = np.arange(size * part // parts, size * (part + 1) // parts, dtype=np.int32)
    return CountedFailures(
        targets,
        count_changes(engine.context, targets, rows, depth=depth, progress=progress),
        knows_min_insync(snapshot.topics, config),
        engine.rules,
        engine.assumptions,
        engine.known_release,
        frozenset(engine.context.consulted),
    )


@dataclass(frozen=True, slots=True, eq=False)
class CountedFailures:
    """What fails in a cluster, and the changes in all of its partitions or in some of them."""

    targets: FailureTargets
    changes: FailureChanges
    configs_known: bool
    rules: str
    assumptions: tuple[str, ...]
    release: ClusterRelease
    consulted: frozenset[ReleaseRule]
    """The rules by release that decided something."""

    @staticmethod
    def sum(parts: Sequence[CountedFailures]) -> CountedFailures:
        """The failures of a cluster from the counts of all its parts."""
        consulted = frozenset[ReleaseRule]().union(*(part.consulted for part in parts))
        return replace(parts[0], changes=FailureChanges.sum([part.changes for part in parts]), consulted=consulted)

    def sweep(self) -> Sweep:
        """The failures, if the changes are those of all partitions."""
        targets, parts = self.targets, [self._brokers(), *self._pairs(), self._racks(), self._directories()]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        counts, directory = columns.pop("counts"), columns.pop("directory")
        known = dict(zip(COUNTED, self.changes.totals.tolist(), strict=True))
        return Sweep(
            **columns,
            counts=counts[:, : len(METRICS)],
            before={
                name: None if name.endswith("min_isr") and not self.configs_known else known[name] for name in _BEFORE
            },
            before_skew=Skew.of(self.changes.leads.astype(np.int32)),
            rack_names=targets.rack_names,
            rack_brokers=tuple(
                tuple(targets.brokers[targets.rack_of == number].tolist()) for number in range(len(targets.rack_names))
            ),
            brokers=tuple(targets.brokers.tolist()),
            configs_known=self.configs_known,
            rules=self.rules,
            assumptions=self.assumptions,
            release=self.release.record(self.consulted),
            directories=FailedDirectories(
                directory,
                tuple(map(uuid_text, targets.directories)),
                counts[:, COUNTED.index("may_lose_data")],
            ),
        )

    def _brokers(self) -> _Columns:
        """Each broker alone."""
        size = len(self.targets.brokers)
        ranks = np.arange(size, dtype=np.int32)
        failing = np.eye(size, dtype=np.bool_)
        return self._part(Failure.BROKER, failing, self.changes.brokers, self.changes.broker_leads, first=ranks)

    def _pairs(self) -> Iterator[_Columns]:
        """The pairs of each broker with those of higher rank."""
        changes, size, number = self.changes, len(self.targets.brokers), 0
        for low in range(size - 1 if len(changes.pairs) else 0):
            partners = np.arange(low + 1, size, dtype=np.int32)
            failing = np.zeros((len(partners), size), np.bool_)
            failing[:, low] = failing[np.arange(len(partners)), partners] = True
            span = slice(*np.searchsorted(changes.pair_lead_keys, [number * size, (number + len(partners)) * size]))
            leads = changes.broker_leads[low] + changes.broker_leads[partners]
            leads.reshape(-1)[changes.pair_lead_keys[span] - number * size] += changes.pair_lead_changes[span]
            counts = changes.brokers[low] + changes.brokers[partners] + changes.pairs[number : number + len(partners)]
            yield self._part(
                Failure.PAIR, failing, counts, leads, first=np.full(len(partners), low, np.int32), second=partners
            )
            number += len(partners)

    def _racks(self) -> _Columns:
        """Each rack."""
        numbers = np.arange(len(self.targets.rack_names), dtype=np.int32)
        failing: Bool = numbers[:, np.newaxis] == self.targets.rack_of
        return self._part(Failure.RACK, failing, self.changes.racks, self.changes.rack_leads, rack=numbers)

    def _directories(self) -> _Columns:
        """Each log directory."""
        targets, changes = self.targets, self.changes
        failing: Bool = targets.stops[:, np.newaxis] & (
            targets.owners[:, np.newaxis] == np.arange(len(targets.brokers))
        )
        return self._part(
            Failure.DIRECTORY,
            failing,
            changes.directories,
            changes.directory_leads,
            first=targets.owners,
            directory=np.arange(len(targets.owners), dtype=np.int32),
        )

    def _part(
        self,
        kind: Failure,
        failing: Bool,
        counts: Int64,
        leads: Int64,
        *,
        first: Int32 | None = None,
        second: Int32 | None = None,
        rack: Int32 | None = None,
        directory: Int32 | None = None,
    ) -> _Columns:
        """``failing`` (m, u) marks the brokers that fail. ``counts`` and ``leads`` are changes."""
        none = np.full(len(failing), -1, np.int32)
        ids, failed = self.targets.brokers, failing.sum(axis=1)
        loads = np.where(failing, 0, self.changes.leads + leads)
        return {
            "kind": np.full(len(failing), KINDS.index(kind), np.uint8),
            "first": none if first is None else ids[first],
            "second": none if second is None else ids[second],
            "rack": none if rack is None else rack,
            "directory": none if directory is None else directory,
            "counts": (self.changes.totals + counts).astype(np.int32),
            "leaders_max": loads.max(axis=1, initial=0).astype(np.int32),
            "leaders_mean": loads.sum(axis=1) / np.maximum(len(ids) - failed, 1),
            "failed": np.maximum(failed, int(kind is Failure.DIRECTORY)).astype(np.int32),
        }
