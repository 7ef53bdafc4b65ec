"""Real clusters of Kafka 4.4: kframe predicts the records of an event from the log of the live controller.

Then the event happens, and the log has the predicted records: types, versions, fields, order, and a batch for each
decision. Kafka iterates over hash tables of topics and directories (``BrokersToIsrs``), so the partition changes of a
decision are compared in the order of topic id and partition. ELRs ascend: that is the order of Kafka's hash sets for
ids below 16.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import msgspec
import numpy as np
import pytest
from kframe_kraft.disk import read_history, read_properties
from kframe_kraft.sources.paths import read_image

from kframe import read_snapshot
from kframe.core.kraft.brokers.broker_events import fence_broker
from kframe.core.kraft.controller_result import ControllerResult
from kframe.model.ids import NO_LEADER, RecoveryState
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.plugin.kraft import directory_ids, records
from kframe.snapshot import Snapshot
from kframe.testing.waiting import wait_until
from kframe.whatif import WhatIf
from kframe.whatif.engines.kraft.engine import KraftEngine
from verification.kraft.kafka_nodes import KraftCluster, KraftNode, KraftOptions, missing
from verification.kraft.kafka_tools import KafkaTools

#: The test of ``kframe controller shadow`` compares the records of these events, and of others.
pytestmark = [pytest.mark.real, pytest.mark.extended]

SETTINGS = {
    "broker.session.timeout.ms": "8000",
    "broker.heartbeat.interval.ms": "500",
    # No leader shrinks an ISR, and no timer elects, so that only the events of the test write records.
    "replica.lag.time.max.ms": "600000",
    "unclean.leader.election.interval.ms": "600000",
    # A broker notices soon that it cannot write to a log directory.
    "replica.high.watermark.checkpoint.interval.ms": "500",
}
#: Each order of three of the four brokers is the assignment of a partition.
ASSIGNMENTS = list(itertools.permutations((1, 2, 3, 4), 3))


class PredictingEngine(KraftEngine):
    """A controller that saves the records of each decision."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        assert snapshot.kraft is not None
        assert snapshot.kraft.offset is not None
        self.end = snapshot.kraft.offset + 1
        """The end of the log."""
        self.decisions: list[list[RecordAndVersion]] = []

    def commit(self, decided: ControllerResult[object], *, in_sync: bool = False) -> None:
        self.decisions.append(in_hash_free_order(decided.records))
        super().commit(decided, in_sync=in_sync)

    def expire_fenced_session(self, broker_id: int) -> None:
        """Expire the session of a fenced broker: Kafka fences it a second time."""
        self.commit(fence_broker(self.context, self.cluster.brokers.registrations[broker_id]))


class PredictingWhatIf(WhatIf):
    """A what-if of such a controller."""

    engine: PredictingEngine


def in_hash_free_order(decision: Sequence[RecordAndVersion]) -> list[RecordAndVersion]:
    """The records with each series of partition changes in the order of topic id and partition."""
    ordered: list[RecordAndVersion] = []
    series: list[RecordAndVersion] = []
    for versioned in decision:
        if isinstance(versioned.record, records.PartitionChangeRecord):
            series.append(versioned)
        else:
            ordered += [*sorted(series, key=partition_key), versioned]
            series.clear()
    return ordered + sorted(series, key=partition_key)


def partition_key(versioned: RecordAndVersion) -> tuple[UUID, int]:
    assert isinstance(versioned.record, records.PartitionChangeRecord)
    return versioned.record.topic_id, versioned.record.partition_id


def names_no_cordoned_directories(record: object) -> bool:
    return isinstance(
        record, records.BrokerRegistrationChangeRecord
    ) and record == records.BrokerRegistrationChangeRecord(
        broker_id=record.broker_id, broker_epoch=record.broker_epoch, cordoned_log_dirs=()
    )


def fences(record: object, broker_id: int | None) -> bool:
    return isinstance(record, records.BrokerRegistrationChangeRecord) and (record.broker_id, record.fenced) == (
        broker_id, records.FencingChange.FENCE
    )  # fmt: skip


class LiveCluster(NamedTuple):
    cluster: KraftCluster
    elr: bool

    @property
    def controller(self) -> KraftNode:
        return self.cluster.nodes[3000]

    def whatif(self) -> PredictingWhatIf:
        return PredictingWhatIf.of(PredictingEngine(read_snapshot(self.controller.log_dirs[0])))

    def next_whatif(self, previous: PredictingWhatIf) -> PredictingWhatIf:
        """A what-if of the current state. The log has only the records that ``previous`` predicted."""
        assert len(self.records_from(previous.engine.end)) == sum(map(len, previous.engine.decisions))
        return self.whatif()

    def records_from(self, offset: int) -> list[tuple[int, RecordAndVersion]]:
        """The records of the log from ``offset`` on, each with the base offset of its batch.

        Without the statement of a broker that it has no cordoned directories: it depends on timing whether a broker
        that starts names them in its registration or in a heartbeat.
        """
        return [
            (batch.header.base_offset, versioned)
            for batch in read_history(self.controller.metadata_log).log.batches
            if batch.header.base_offset >= offset
            for versioned in batch.records()
            if not names_no_cordoned_directories(versioned.record)
        ]

    def compare(self, whatif: PredictingWhatIf, starting: int | None = None) -> list[records.PartitionChangeRecord]:
        """Wait until the log has as many records as are predicted, and compare. Returns the changes of partitions.

        The session of a broker that is ``starting`` may end before its first heartbeat: Kafka fences it again.
        """
        predicted = whatif.engine.decisions

        def written() -> list[tuple[int, RecordAndVersion]]:
            return [entry for entry in self.records_from(whatif.engine.end) if not fences(entry[1].record, starting)]

        count = sum(map(len, predicted))
        wait_until(lambda: len(written()) >= count, lambda: f"predicted {predicted}, written {written()}")
        remaining = iter(written())
        for decision in predicted:
            series = list(itertools.islice(remaining, len(decision)))
            assert in_hash_free_order([comparable(versioned) for _, versioned in series]) == [
                comparable(versioned) for versioned in decision
            ]
            assert len({base_offset for base_offset, _ in series}) == 1
        changes = [versioned.record for decision in predicted for versioned in decision]
        return [record for record in changes if isinstance(record, records.PartitionChangeRecord)]


def comparable(versioned: RecordAndVersion) -> RecordAndVersion:
    """The record; of a registration without the random id of the process.

    The order of the supported features is also random in each process (Java's ``Map.copyOf``).
    """
    record = versioned.record
    if not isinstance(record, records.RegisterBrokerRecord):
        return versioned
    features = tuple(sorted(record.features, key=lambda feature: feature.name))
    record = msgspec.structs.replace(record, incarnation_id=UUID(int=0), features=features)
    return versioned._replace(record=record)


@pytest.fixture(scope="module", params=[True, False], ids=["elr", "no elr"])
def live(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    if lacking := missing():
        pytest.skip(lacking)
    folder = tmp_path_factory.mktemp("predicted")
    options = KraftOptions(brokers=4, combined=False, log_dirs=2, release="4.3", elr=request.param, settings=SETTINGS)
    with KafkaTools(folder / "tools") as tools, KraftCluster(folder, options) as cluster:
        assignment = ",".join(":".join(map(str, replicas)) for replicas in ASSIGNMENTS)
        for topic, unclean in (("orders", "false"), ("payments", "false"), ("clicks", "true")):
            cluster.admin(
                tools, "kafka-topics", "--create", "--topic", topic, "--replica-assignment", assignment,
                "--config", "min.insync.replicas=2", "--config", f"unclean.leader.election.enable={unclean}",
            )  # fmt: skip
        source = cluster.nodes[3000].log_dirs[0]
        wait_until(lambda: has_all_directories(source))
        yield LiveCluster(cluster, request.param)


def has_all_directories(source: Path) -> bool:
    """Whether the brokers have reported the directory of each replica."""
    metadata = read_image(source).metadata
    indexes = metadata.partitions.lists("directory", np.arange(len(metadata.partitions))).values
    known_ids = metadata.directories.ids_of(np.unique(indexes))
    return len(metadata.partitions) == 3 * len(ASSIGNMENTS) and not any(map(directory_ids.is_reserved, known_ids))


def test_failures_write_the_predicted_records(live: LiveCluster) -> None:
    """A log directory fails, a broker stops in order, two brokers are killed, and the last one of them starts again."""
    nodes = live.cluster.nodes
    failed = nodes[4].log_dirs[1]
    directory_id = read_properties(failed).directory_id
    assert directory_id is not None

    whatif = live.whatif()
    whatif.fail_directories(4, [directory_id])
    failed.rename(failed.with_name("former"))
    failed.write_text("not a directory")
    lost = live.compare(whatif)
    assert {change.leader for change in lost} == {1, 2, 3, records.NO_LEADER_CHANGE}

    whatif = live.next_whatif(whatif)
    whatif.shutdown([3])
    nodes[3].stop()
    stopped = live.compare(whatif)
    assert {change.leader for change in stopped} == {1, 2, 4, records.NO_LEADER_CHANGE}

    whatif = live.next_whatif(whatif)
    whatif.engine.expire_fenced_session(3)
    live.compare(whatif)

    whatif = live.next_whatif(whatif)
    whatif.fail([2])
    nodes[2].kill()
    killed = live.compare(whatif)
    assert any(change.eligible_leader_replicas for change in killed) == live.elr

    whatif = live.next_whatif(whatif)
    whatif.fail([1])
    nodes[1].kill()
    killed = live.compare(whatif)
    assert NO_LEADER in {change.leader for change in killed}
    assert any(change.last_known_elr for change in killed) == live.elr
    assert any(change.isr == () for change in killed) == live.elr

    whatif = live.next_whatif(whatif)
    whatif.restart([1], clean=False)
    nodes[1].start()
    returned = live.compare(whatif, starting=1)
    recovering = [change for change in returned if change.leader_recovery_state == RecoveryState.RECOVERING]
    assert bool(recovering) == live.elr
