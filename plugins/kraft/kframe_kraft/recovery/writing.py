"""Writes the copy of a controller's directory in which the node is the only voter."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from kframe.plugin.kraft import control, directory_ids
from kframe_kraft.batches import BatchPosition, encode_control_batch, read_batch
from kframe_kraft.disk import QuorumState, SnapshotId, write_properties, write_quorum_state
from kframe_kraft.disk.atomic import replace_file, sync_directory
from kframe_kraft.disk.names import BOOTSTRAP_NAME, segments_in, snapshots_in
from kframe_kraft.errors import BatchError, LogError
from kframe_kraft.log.epochs import FILE_NAME as EPOCHS_NAME
from kframe_kraft.log.epochs import EpochStarts, read_epochs
from kframe_kraft.log.segment import segment_name
from kframe_kraft.recovery.plan import RecoveryPlan
from kframe_kraft.sources.detection import LOG_DIRECTORY

_PARTITION: Final = "partition.metadata"


def write_recovery(
    plan: RecoveryPlan, out: Path, *, now: int, endpoints: tuple[control.VoterEndpoint, ...] = ()
) -> Path:
    """Write the copy as ``out``, a ``metadata.log.dir``, and return it. The directory of the plan is only read.

    The log gets a batch in the new epoch: the leader, and with kraft.version 1 the only voter. Its listeners are
    ``endpoints``, by default those in the log. ``now`` is in milliseconds since the epoch. Raises LogError if ``out``
    exists, or the log has grown since the plan.
    """
    if out.exists():
        raise LogError(str(out), "an existing path", "a new directory")
    temporary = out.with_name(out.name + ".part")
    if temporary.exists():
        raise LogError(str(temporary), "the remains of an interrupted recovery", "no such directory: remove it")
    log = temporary / LOG_DIRECTORY
    log.mkdir(parents=True)
    try:
        _copy_log(plan, log, _last_batch(plan, now, endpoints))
        _copy_snapshots(plan, log)
        _write_epochs(plan, log)
        write_quorum_state(log, _quorum_state(plan))
        write_properties(temporary, plan.properties)
        for source, target in ((plan.directory.parent / BOOTSTRAP_NAME, temporary), (plan.directory / _PARTITION, log)):
            if source.exists():
                replace_file(target / source.name, source.read_bytes())
        sync_directory(log)
        temporary.rename(out)
        sync_directory(out.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return out


def _last_batch(plan: RecoveryPlan, now: int, endpoints: tuple[control.VoterEndpoint, ...]) -> bytes:
    voter = control.LeaderChangeVoter(voter_id=plan.node_id)
    content: list[control.ControlRecord] = [
        control.LeaderChangeMessage(leader_id=plan.node_id, voters=(voter,), granting_voters=(voter,))
    ]
    if plan.kraft_version:
        content += [control.KRaftVersionRecord(k_raft_version=plan.kraft_version), _voters(plan, endpoints)]
    return encode_control_batch(content, BatchPosition(plan.end, plan.epoch, now))


def _voters(plan: RecoveryPlan, endpoints: tuple[control.VoterEndpoint, ...]) -> control.VotersRecord:
    known = plan.voters_record.voters if plan.voters_record else ()
    former = next((voter for voter in known if voter.voter_id == plan.node_id), None)
    listeners = endpoints or (former.endpoints if former else ())
    if not listeners:
        raise LogError("--listener", "no listener in the log", f"a listener of node {plan.node_id}, NAME://HOST:PORT")
    directory_id = plan.properties.directory_id
    if directory_id is None:
        raise LogError(str(plan.directory.parent), "no directory.id", "one, which kraft.version 1 needs")
    feature = former.k_raft_version_feature if former else control.KRaftVersionFeature(max_supported_version=1)
    voter = control.Voter(
        voter_id=plan.node_id, voter_directory_id=directory_id, endpoints=listeners, k_raft_version_feature=feature
    )
    return control.VotersRecord(voters=(voter,))


def _copy_log(plan: RecoveryPlan, log: Path, last_batch: bytes) -> None:
    """Copy the complete batches of all segments, then append ``last_batch``."""
    segments = segments_in(plan.directory)
    end, contents = plan.end, dict[int, bytes]()
    if plan.history.log.last is not None or (segments and plan.history.log.end == end):
        for base, path in segments.items():
            contents[base] = _complete_batches(path.read_bytes(), end)
    last = max(contents, default=end)
    contents[last] = contents.get(last, b"") + last_batch
    for base, content in contents.items():
        replace_file(log / segment_name(base), content)


def _complete_batches(data: bytes, end: int) -> bytes:
    """The batches of a segment below ``end``; later bytes are torn or newer than the plan."""
    position = 0
    while position < len(data):
        try:
            header = read_batch(data, position).header
        except BatchError:
            break
        if header.base_offset >= end:
            break
        position += header.size
    return data[:position]


def _copy_snapshots(plan: RecoveryPlan, log: Path) -> None:
    for snapshot_id, path in snapshots_in(plan.directory).items():
        if snapshot_id <= SnapshotId(plan.end, plan.epoch):
            replace_file(log / path.name, path.read_bytes())


def _write_epochs(plan: RecoveryPlan, log: Path) -> None:
    """Write the start offset of each epoch (Kafka ``LeaderEpochCheckpointFile``), the new one included."""
    epochs = read_epochs(plan.directory) or EpochStarts()
    for header in plan.history.log.batches.headers():
        epochs.note(header.leader_epoch, header.base_offset)
    epochs.truncate(plan.end)
    epochs.note(plan.epoch, plan.end)
    replace_file(log / EPOCHS_NAME, epochs.to_bytes())


def _quorum_state(plan: RecoveryPlan) -> QuorumState:
    """No leader and no vote in the new epoch: the only voter elects itself in the next one."""
    if plan.kraft_version:
        return QuorumState(plan.epoch, voted_directory_id=directory_ids.ZERO_UUID, data_version=1)
    return QuorumState(plan.epoch, voters=(plan.node_id,))
