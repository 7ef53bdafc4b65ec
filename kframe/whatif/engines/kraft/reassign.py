"""A reassignment in a KRaft cluster: it begins, the new replicas catch up, and their leaders propose the new ISRs.

The controller completes a reassignment in the change that brings its whole target into the ISR (Kafka 4.4
``PartitionReassignmentReplicas.maybeCompleteReassignment``).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from kframe.core.kraft.controller_result import RequestRefused
from kframe.core.kraft.replication.alter_partition import UNKNOWN_EPOCH, KraftIsrProposal, alter_partitions
from kframe.core.kraft.replication.reassignment import RequestedReassignment, reassign_partitions
from kframe.errors import ErrorCode
from kframe.model.arrays import Ragged
from kframe.model.ids import NO_LEADER
from kframe.model.lists import members
from kframe.model.tables import Targets
from kframe.whatif.engines.kraft.controller import WhatIfController
from kframe.whatif.engines.kraft.responses import partition_response
from kframe.whatif.engines.reassignment import ReassignmentScript
from kframe.whatif.results.outcome import ControllerResponse, Outcome


class KraftReassignment(ReassignmentScript):
    """A reassignment that is played, with its results so far."""

    def __init__(self, controller: WhatIfController, targets: Targets) -> None:
        metadata = controller.context.metadata
        p, brokers = metadata.partitions, metadata.brokers
        named = zip(targets.topic.tolist(), targets.partition.tolist(), strict=True)
        stored = [metadata.row(targets.names[topic], partition) for topic, partition in named]
        rows = np.array([-1 if row is None else row for row in stored], np.int32)
        replicas, adding = (p.lists(name, rows[rows >= 0]) for name in ("replica", "adding"))
        super().__init__(
            targets,
            [
                ("the reassignment begins", self._begin),
                ("the new replicas catch up, and leaders propose ISRs", self._catch_up),
            ],
            rows,
            Ragged(replicas.offsets, brokers.ids[replicas.values]),
            members(replicas, adding),
            frozenset(brokers.ids_of(np.flatnonzero(brokers.active).tolist())),
            controller.health().replicas,
        )
        self._controller = controller

    def _begin(self) -> ControllerResponse:
        """Send the request."""
        targets, context = self.targets, self._controller.context
        requests = [
            RequestedReassignment(
                targets.names[topic], partition, None if cancel else tuple(targets.replicas[index].tolist())
            )
            for index, (topic, partition, cancel) in enumerate(
                zip(targets.topic.tolist(), targets.partition.tolist(), targets.cancel.tolist(), strict=True)
            )
        ]
        results = self._controller.decide(lambda: reassign_partitions(context, requests))
        self.codes = np.array([result.error for result in results], np.int16)
        self.messages = {index: result.message for index, result in enumerate(results) if result.message}
        return partition_response(results)

    def _catch_up(self) -> None:
        """Each leader proposes the ISRs of its partitions with every active replica of the target."""
        context = self._controller.context
        p, brokers = context.metadata.partitions, context.metadata.brokers
        proposals: dict[int, list[tuple[int, KraftIsrProposal]]] = defaultdict(list)
        for position in np.flatnonzero((self.codes == ErrorCode.NONE) & (self.rows >= 0)).tolist():
            row = int(self.rows[position])
            leader = int(p.leader[row])
            self.led[position] = leader != NO_LEADER
            if leader == NO_LEADER or not (p.adding_count[row] or p.removing_count[row]):
                continue
            proposals[int(brokers.ids[leader])].append((position, self._proposal(row)))
        for done, (leader, named) in enumerate(sorted(proposals.items()), 1):
            epoch = brokers.registrations[leader].broker_epoch
            try:
                result = alter_partitions(context, leader, epoch, [proposal for _, proposal in named])
            except RequestRefused as refusal:
                self.isr_codes[[position for position, _ in named]] = refusal.error
                continue
            self._controller.commit(result, in_sync=True)
            for (position, _), isr_result in zip(named, result.response, strict=True):
                refused = isr_result.error not in (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED)
                self.isr_codes[position] = isr_result.error if refused else ErrorCode.NONE
            self.progress(done, len(proposals))

    def _proposal(self, row: int) -> KraftIsrProposal:
        """The ISR of a partition once every active replica of its target has caught up."""
        metadata = self._controller.context.metadata
        p, brokers = metadata.partitions, metadata.brokers
        isr, removing = p.list_of("isr", row), p.list_of("removing", row)
        caught_up = [
            index
            for index in p.list_of("replica", row)
            if index not in isr and index not in removing and brokers.active[index]
        ]
        active = [index for index in isr if brokers.active[index]]
        return KraftIsrProposal(
            topic_id=metadata.topics.ids[int(p.topic[row])],
            partition=int(p.partition[row]),
            isr=tuple((broker_id, UNKNOWN_EPOCH) for broker_id in brokers.ids_of([*active, *caught_up])),
            leader_epoch=int(p.leader_epoch[row]),
            partition_epoch=int(p.partition_epoch[row]),
        )

    def complete(self, outcome: Outcome) -> Outcome:
        """See ``Script``."""
        metadata, rows = self._controller.context.metadata, self.rows[self.known]
        p = metadata.partitions
        ongoing = (p.adding_count[rows] > 0) | (p.removing_count[rows] > 0)
        known_topics = frozenset(name for name in self.targets.names if name in metadata.topics.index_by_name)
        replicas = p.lists("replica", rows)
        now = Ragged(replicas.offsets, metadata.brokers.ids[replicas.values])
        return replace(outcome, reassignment=self.result(now, ongoing, known_topics, outcome))
