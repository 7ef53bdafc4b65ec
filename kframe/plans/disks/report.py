"""The report of moves between log directories: the moves, the directories before and after, and what is not met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, Literal, cast

import numpy as np

from kframe.model.texts import counted
from kframe.plans.check.document import PlanSnapshot
from kframe.plans.disks.document import DirectoryMove, DiskDirectory, DiskPlanDocument, UnmetDirectory
from kframe.plans.disks.plan import BrokerMoves, DiskPlan
from kframe.snapshot.content import brokers_text

SCHEMA: Final = "kframe.disk-plan/v1"
#: Directories that a sentence names.
_NAMED: Final = 3
#: What the fields of ``StayingReplicas`` say of replicas.
_STAYING: Final = {
    "moving": "being moved between log directories, and counted in the new one",
    "reassigning": "of partitions that are being reassigned or deleted, and left as they are",
    "unassigned": "not assigned to the broker in the snapshot, and left as they are",
    "long_names": "of topics whose names are too long for a move, and left as they are",
    "unlisted": "in no listed log directory; the bytes of those do not count",
}


def report_document(plan: DiskPlan) -> DiskPlanDocument:
    """The report of a plan."""
    unmet = list(unmet_directories(plan))
    return DiskPlanDocument(
        snapshot=PlanSnapshot.of(plan.snapshot),
        summary=_summary(plan, unmet),
        complete=plan.complete,
        bytes=plan.bytes,
        bound=plan.bound,
        gap=plan.bytes - plan.bound,
        proof=_proof(plan),
        seconds=None if plan.seconds is None else round(plan.seconds, 1),
        moves=list(_moves(plan)),
        directories=[row for broker in plan.brokers for row in _directories(broker)],
        unmet=unmet,
        notes=list(_notes(plan)),
    )


def _summary(plan: DiskPlan, unmet: list[UnmetDirectory]) -> str:
    count = len(plan.moves)
    text = f"{counted(count, 'move')} of {counted(plan.bytes, 'byte')}" if count else "no move"
    if unmet:
        named = [f"{row.broker_id}:{row.log_dir} ({row.reason})" for row in unmet[:_NAMED]]
        suffix = f" and {len(unmet) - _NAMED} more" if len(unmet) > _NAMED else ""
        verb = "is" if len(unmet) == 1 else "are"
        directories = counted(len(unmet), "log directory", "log directories")
        return f"{text}; {directories} {verb} outside of the limits: {', '.join(named)}{suffix}"
    if plan.bytes == plan.bound:
        return (
            f"{text}; no plan copies less"
            if count
            else "each log directory is within its limits; there is nothing to move"
        )
    return (
        f"{text}; every plan copies at least {plan.bound:,} (gap {(plan.bytes - plan.bound) / max(plan.bound, 1):.2%})"
    )


def _proof(plan: DiskPlan) -> str:
    """Why no plan copies less than the bound, in a sentence."""
    solved = [
        broker for broker in plan.brokers if broker.assignment.bound > broker.problem.bound(broker.assignment.outside)
    ]
    text = "What is above the limits must leave its log directory, and what lacks below must enter, in whole replicas."
    if solved:
        brokers = brokers_text([broker.disks.broker_id for broker in solved])
        text += f" For {brokers} the solver HiGHS has proven that more must move."
    return text


def _moves(plan: DiskPlan) -> Iterator[DirectoryMove]:
    topics, copied = plan.snapshot.topics, Counter[int]()
    names, numbers = topics.topic_of_rows(), topics.partition_of_rows()
    used = {broker.disks.broker_id: broker.problem.used.tolist() for broker in plan.brokers}
    for broker, replica in plan.moves:
        disks, size, row = broker.disks, int(broker.disks.size[replica]), int(broker.disks.rows[replica])
        source, target = int(disks.home[replica]), int(broker.assignment.target[replica])
        copied[disks.broker_id] += size
        remaining = used[disks.broker_id]
        remaining[source] -= size
        remaining[target] += size
        yield DirectoryMove(
            broker_id=disks.broker_id,
            topic=topics.names[int(names[row])],
            partition=int(numbers[row]),
            bytes=size,
            source=disks.directories[source].path,
            target=disks.directories[target].path,
            source_bytes=remaining[source],
            source_percent=_percent(remaining[source], disks.disk[source]),
            seconds=None if plan.request.rate is None else round(copied[disks.broker_id] / plan.request.rate, 1),
        )


def _percent(used: int, disk: int | None) -> float | None:
    return None if not disk else round(100 * used / disk, 1)


def _directories(broker: BrokerMoves) -> Iterator[DiskDirectory]:
    disks, problem, target = broker.disks, broker.problem, broker.assignment.target
    moved = np.flatnonzero(target != problem.home)
    after, count = problem.used_after(target).tolist(), len(disks.directories)
    left, received = (np.bincount(column[moved], minlength=count).tolist() for column in (problem.home, target))
    for index, directory in enumerate(disks.directories):
        state = (disks.refusals[index] or "is online").removeprefix("is ")
        before = int(problem.used[index])
        yield DiskDirectory(
            broker_id=disks.broker_id,
            log_dir=directory.path,
            state=cast(Literal["online", "offline", "cordoned", "excluded"], state),
            disk_bytes=disks.disk[index],
            bytes_before=before,
            bytes_after=after[index],
            percent_before=_percent(before, disks.disk[index]),
            percent_after=_percent(after[index], disks.disk[index]),
            lower=int(problem.lower[index]),
            upper=int(problem.upper[index]),
            replicas_left=left[index],
            replicas_received=received[index],
        )


# -- what is not met


def unmet_directories(plan: DiskPlan) -> Iterator[UnmetDirectory]:
    """The directories outside of their limits, by broker and path."""
    for broker in plan.brokers:
        used = broker.problem.used_after(broker.assignment.target)
        outside = broker.problem.outside(used)
        for index in np.flatnonzero(outside).tolist():
            yield UnmetDirectory(
                broker_id=broker.disks.broker_id,
                log_dir=broker.disks.directories[index].path,
                bytes=int(used[index]),
                lower=int(broker.problem.lower[index]),
                upper=int(broker.problem.upper[index]),
                outside=int(outside[index]),
                reason=_reason(broker, index, int(used[index])),
            )


def _reason(broker: BrokerMoves, index: int, used: int) -> str:
    """Why a directory is outside of its limits."""
    disks, problem = broker.disks, broker.problem
    others = [other for other in range(len(disks.directories)) if other != index]
    receivers = [other for other in others if problem.receives[other]]
    excess = used - int(problem.upper[index])
    if disks.offline:
        names = ", ".join(name.path for name in disks.offline)
        return f"the broker starts no move while a log directory is offline: {names}"
    if excess > 0 and not receivers:
        states = [f"{disks.directories[other].path} {disks.refusals[other] or 'is relieved too'}" for other in others]
        return f"no other log directory can take a replica: {', '.join(states) or 'the broker has no other'}"
    need = int(problem.used[index] - problem.upper[index])
    movable = int(problem.size[problem.home == index].sum())
    if need > movable:
        return f"{need:,} bytes are to leave, and {movable:,} of it are replicas that may move"
    room = sum(max(int(min(problem.upper[other] - problem.used[other], problem.room[other])), 0) for other in receivers)
    if need > room:
        return f"{need:,} bytes are to leave, and the other log directories have room for {room:,} within their limits"
    if broker.assignment.outside_proven:
        return "its replicas do not fit: no moves bring all log directories within their limits"
    return "no move or exchange of two replicas brings it nearer to its limits"


# -- notes


def _notes(plan: DiskPlan) -> Iterator[str]:
    if not plan.complete and plan.request.relieve:
        yield "kframe plan generate --rebalance --weights FILE moves replicas to other brokers"
    elif not plan.complete:
        yield f"--tolerance allows another deviation from the shares than {plan.request.tolerance:g} percent"
    for name, text in _STAYING.items():
        if count := sum(getattr(broker.disks.staying, name) for broker in plan.brokers):
            yield f"{counted(count, 'replica')} {'is' if count == 1 else 'are'} {text}"
    for broker in plan.brokers:
        yield from _broker_notes(broker, levels=not plan.request.relieve)
    if plan.unlisted:
        yield f"the log directories of {brokers_text(list(plan.unlisted))} are not listed: nothing moves there"


def _broker_notes(broker: BrokerMoves, *, levels: bool) -> Iterator[str]:
    disks = broker.disks
    name = f"broker {disks.broker_id}"
    if disks.hidden_cordons:
        yield f"{name} has cordoned log directories whose path is unknown: --exclude {disks.broker_id}:PATH names them"
    receivers = np.flatnonzero(broker.problem.receives).tolist()
    if levels and len({disks.disk[index] is None for index in receivers}) == 2:
        yield f"{name}: the sizes of some disks are unknown, so that each gets the same bytes (--disk-capacity)"
    volumes = Counter(
        (directory.total_bytes, directory.usable_bytes)
        for directory in disks.directories
        if directory.error is None and directory.usable_bytes is not None
    )
    if any(count > 1 for count in volumes.values()):
        yield f"{name} has log directories with equal free bytes: if they share a disk, moves between them free none"
    if broker.assignment.error is not None:
        yield f"{name} is not solved to the optimum, because the solver failed: {broker.assignment.error}"
