"""The plan to recover a lost quorum from one controller: its committed records, and possible losses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kframe.plugin.kraft import control
from kframe_kraft.detection import log_directory
from kframe_kraft.disk import LogHistory, MetaProperties, TransactionFilter, read_history, read_properties
from kframe_kraft.errors import LogError
from kframe_kraft.sources import image_of


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """A directory and the quorum of one voter that continues its log. Offsets are ends: records below them exist.

    ``epoch`` is above every epoch that the node knows. ``risks`` are sentences about possible losses.
    """

    directory: Path
    history: LogHistory
    properties: MetaProperties
    end: int
    last_epoch: int
    timestamp: int | None
    committed: int
    epoch: int
    kraft_version: int
    voters_record: control.VotersRecord | None
    brokers: int
    topics: int
    partitions: int
    risks: tuple[str, ...]

    @property
    def node_id(self) -> int:
        """The node that becomes the only voter."""
        return self.properties.node_id


def plan_recovery(path: Path) -> RecoveryPlan:
    """Return the plan for a node's ``metadata.log.dir``, which is only read.

    The whole log is replayed. Raises LogError if it is damaged, or the node is not a voter.
    """
    directory = log_directory(path)
    if directory is None:
        raise LogError(str(path), "no segment or snapshot", "metadata.log.dir of a controller")
    properties = read_properties(directory.parent)
    history = read_history(directory)
    if history.voters and properties.node_id not in history.voters:
        voters = ", ".join(map(str, history.voters))
        raise LogError(str(path), f"the directory of node {properties.node_id}", f"that of a voter: {voters}")
    image = image_of(history)
    state = history.quorum_state
    last_epoch = max(image.epoch, 0)
    topics = image.metadata.topics
    return RecoveryPlan(
        directory=directory,
        history=history,
        properties=properties,
        end=image.offset,
        last_epoch=last_epoch,
        timestamp=image.timestamp,
        committed=history.committed.offset,
        epoch=max(last_epoch, state.leader_epoch if state else 0) + 1,
        kraft_version=image.kraft_version,
        voters_record=image.voters_record,
        brokers=len(image.metadata.brokers.registrations),
        topics=len(topics.index_by_name),
        partitions=int((image.metadata.partitions.topic >= 0).sum()),
        risks=tuple(_risks(history, properties.node_id, image.offset, last_epoch)),
    )


def _risks(history: LogHistory, node_id: int, end: int, last_epoch: int) -> list[str]:
    risks: list[str] = []
    state, committed = history.quorum_state, history.committed
    was_leader = state is not None and state.leader_id == node_id and state.leader_epoch == last_epoch
    if state is not None and state.leader_epoch > last_epoch:
        risks.append(
            f"The node knows of epoch {state.leader_epoch}, but its log ends in epoch {last_epoch}: records of later "
            "epochs are lost."
        )
    elif not was_leader and len(history.voters) != 1:
        risks.append(
            f"The node did not lead epoch {last_epoch}: records from offset {end} on, which the leader committed "
            "with another voter, are lost."
        )
    if was_leader and len(history.voters) != 1:
        risks.append(
            f"The node led epoch {last_epoch}: all records that it committed are here. Those of later leaders are lost."
        )
    if committed.offset < end and not committed.exact:
        risks.append(
            f"Records from offset {committed.offset} to {end - 1} may not have been committed. The copy commits them."
        )
    if history.log.torn_bytes:
        risks.append(f"{history.log.torn_bytes} bytes after the last complete batch are cut: {history.log.torn_reason}")
    begin = _open_transaction(history)
    if begin is not None:
        risks.append(f"The transaction that begins at offset {begin} is open: the new leader aborts it.")
    return risks


def _open_transaction(history: LogHistory) -> int | None:
    transactions = TransactionFilter()
    for batch in history.log.batches:
        if not batch.header.is_control:
            transactions.apply(batch)
    return transactions.begin_offset
