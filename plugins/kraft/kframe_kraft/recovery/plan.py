"""The plan to recover a lost quorum from one controller: its committed records, and possible losses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from kframe.plugin import counted
from kframe.plugin.kraft import control
from kframe_kraft.disk import LogHistory, MetaProperties, read_properties
from kframe_kraft.errors import LogError
from kframe_kraft.replay.image import MetadataImage, image_of
from kframe_kraft.replay.transactions import TransactionFilter
from kframe_kraft.sources.paths import find_log_directory, read_node
from kframe_kraft.uuids import random_uuid


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """A directory and the quorum of one voter that continues its log. Offsets are ends: records below them exist.

    ``properties`` are those of the copy, ``source_node_id`` is the node of the directory. ``epoch`` is above every
    epoch that this node knows. ``risks`` are sentences about possible losses.
    """

    directory: Path
    history: LogHistory
    properties: MetaProperties
    source_node_id: int
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


def plan_recovery(path: Path, node_id: int | None = None) -> RecoveryPlan:
    """Return the plan for a node's ``metadata.log.dir``, which is only read. ``node_id`` is the only voter, by default
    the node itself.

    The whole log is replayed. Raises LogError if it is damaged, or the node is not a voter and ``node_id`` is None.
    """
    directory = find_log_directory(path)
    history = read_node(path).history
    source = read_properties(directory.parent)
    if node_id is None and history.voters and source.node_id not in history.voters:
        voters = ", ".join(map(str, history.voters))
        raise LogError(
            str(path),
            f"the directory of node {source.node_id}, which is no voter",
            f"that of a voter ({voters}), or --node-id with the controller that is to start from the copy",
        )
    properties = source
    if node_id is not None and node_id != source.node_id:
        properties = replace(source, node_id=node_id, directory_id=random_uuid())
    image = image_of(history)
    state = history.quorum_state
    last_epoch = max(image.epoch, 0)
    topics = image.metadata.topics
    return RecoveryPlan(
        directory=directory,
        history=history,
        properties=properties,
        source_node_id=source.node_id,
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
        risks=(
            *_role_risks(history, image, properties.node_id),
            *_risks(history, source.node_id, image.offset, last_epoch),
        ),
    )


def _role_risks(history: LogHistory, image: MetadataImage, node_id: int) -> list[str]:
    """What a voter needs that was none before."""
    if node_id in history.voters or node_id not in image.metadata.brokers.registrations:
        return []
    roles = "process.roles=broker,controller"
    return [f"Node {node_id} is registered as a broker: it needs {roles}, unless --node-id names a controller."]


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
        torn = counted(history.log.torn_bytes, "byte")
        risks.append(f"The copy lacks {torn} after the last complete batch: {history.log.torn_reason}")
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
