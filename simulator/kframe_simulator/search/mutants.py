"""Mutants of core, storage and brokers that the search must find."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType
from typing import Any, Final

from kframe.core import context, controller
from kframe.core.operations import alter_partition, controlled_shutdown, dispatch, failover, membership
from kframe.core.reassignment import partition_reassignment
from kframe.core.selectors import builtin
from kframe.core.state_machines import leader_election, replica_state_machine
from kframe.core.topics import replica_assignment
from kframe_simulator.search import brokers
from kframe_simulator.search.configurations import SearchOptions

TWO: Final = SearchOptions(broker_faults=2, controller_faults=1, record=False)
ALONE: Final = SearchOptions(controllers=1, broker_faults=2, controller_faults=0, record=False)

MOVES: Final = SearchOptions(
    controllers=1, broker_faults=0, controller_faults=0, record=False, assigned=(1, 2), isr=(1, 2), target=(3, 2)
)


@dataclass(frozen=True, slots=True)
class SearchMutant:
    """One defect. It has the function, its edits, and the invariant and depth at which the search must find it."""

    function: Any
    edits: tuple[tuple[str, str], ...]
    invariant: str
    depth: int
    options: SearchOptions = field(default_factory=lambda: TWO)


@contextmanager
def planted(mutant: SearchMutant) -> Iterator[None]:
    """Replace the function's code by the edited code. Raises ValueError if its source does not match the edits."""
    function: FunctionType | None = mutant.function
    if function is None:
        yield
        return
    code = function.__code__
    function.__code__ = _edited(function, mutant.edits)
    try:
        yield
    finally:
        function.__code__ = code


def _edited(function: FunctionType, edits: tuple[tuple[str, str], ...]) -> CodeType:
    source = textwrap.dedent(inspect.getsource(function))
    for old, new in edits:
        if source.count(old) != 1:
            raise ValueError(f"{function.__qualname__} has {source.count(old)} times: {old}")
        source = source.replace(old, new)
    namespace: dict[str, Any] = {}
    exec(compile("from __future__ import annotations\n" + source.replace("@staticmethod\n", ""), "mutant", "exec"),
         function.__globals__, namespace)  # fmt: skip
    code: CodeType = namespace[function.__name__].__code__
    return code


MUTANTS: dict[str, SearchMutant] = {
    "storage does not check the controller epoch": SearchMutant(None, (), "I2", 5, replace(TWO, fenced=False)),
    "an election raises no leader epoch": SearchMutant(
        leader_election._plan, (("isr = Ragged(isr.offsets,", "leader_epoch -= 1; isr = Ragged(isr.offsets,"),), "I8", 2
    ),
    "leaving the ISR raises no leader epoch": SearchMutant(
        replica_state_machine._plan_removals, (("leader_epoch[:count]", "p.leader_epoch[changed[:count]]"),), "I8", 2
    ),
    "the last member leaves the ISR": SearchMutant(
        replica_state_machine._plan_removals,
        (
            (
                "isr = Ragged(offsets[: count + 1], values[: offsets[count]])",
                "isr = Ragged(offsets[: count + 1] * (values[:1] != brokers[:1]), values[: offsets[count]])",
            ),
        ),
        "I5",
        4,
        replace(TWO, isr=(1,)),
    ),
    "the preferred replica is elected, alive or not": SearchMutant(
        builtin.elect_builtin, (("return leader", "return p.preferred_of(rows)"),), "I4", 2
    ),
    "who is not in sync is elected": SearchMutant(
        leader_election._unclean_permitted,
        (("if strategy.allow_unclean:", "if True:"),),
        "I6",
        3,
        replace(TWO, isr=(1,)),
    ),
    "who is not alive may join the ISR": SearchMutant(
        alter_partition._validate, (("(ineligible, not_eligible),", ""),), "I4", 7
    ),
    "AlterPartition checks no epoch and overwrites": SearchMutant(
        alter_partition._validate,
        (
            (
                "undecided: Bool = codes",
                "request.partition_epoch[:] = p.partition_epoch[rows]; undecided: Bool = codes",
            ),
            ("(newer, ErrorCode.NOT_CONTROLLER),", ""),
            ("(older_leader, ErrorCode.FENCED_LEADER_EPOCH),", ""),
        ),
        "I8",
        9,
        ALONE,
    ),
    "a bounced broker is not noticed": SearchMutant(
        membership.BrokerChanges.between,
        (("if broker.broker_epoch > known.get(broker.broker_id, broker.broker_epoch)", "if False"),),
        "L6",
        3,
    ),
    "the dead stay registered": SearchMutant(membership.brokers_changed, (("if changes.dead:", "if False:"),), "L6", 2),
    "a new controller does not send live brokers": SearchMutant(
        failover.take_over, (("yield from context.announce(registered)", "pass"),), "I14", 4
    ),
    "a new broker receives no live brokers before LeaderAndIsr": SearchMutant(
        membership.on_broker_startup,
        (("yield from context.announce(indexes, context.announced_rows())", "pass"),),
        "I14",
        4,
    ),
    "what storage accepted is not remembered": SearchMutant(
        context.Context.write,
        (("stored_states.apply(self.cluster, change, result.partition_epoch)", "pass"),),
        "I9",
        2,
    ),
    "a new leader receives no LeaderAndIsr": SearchMutant(
        leader_election.queue_election, (("queue_leader_and_isr(", "(lambda *a, **b: None)("),), "I12", 2
    ),
    "a request gets no response": SearchMutant(
        dispatch.operate, (("elif token != NO_TOKEN:", "elif False:"),), "I26", 2
    ),
    "who has lost the role goes on": SearchMutant(
        controller.ControllerCore._follow, (("if self.active and not holder.ours:", "if False:"),), "I3", 2
    ),
    "a broker that leaves keeps its leaders": SearchMutant(
        controlled_shutdown.shut_down, (("brokers.shutting_down[broker] = 1", "pass"),), "I12", 8, ALONE
    ),
    "a reassignment ends before its target is in sync": SearchMutant(
        replica_assignment.is_complete,
        (("~running | in_sync", "np.ones(len(rows), np.bool_)"),),
        "I22",
        4,
        MOVES,
    ),
    "the end of a reassignment is not stored": SearchMutant(
        partition_reassignment._complete,
        (("yield from topic_metadata.store(context, rows)", "pass"),),
        "I9",
        9,
        MOVES,
    ),
    "replicas that leave stay in the ISR": SearchMutant(
        partition_reassignment._complete,
        (("yield from stop_replicas(context, removed_replicas(context, rows, removed))", "pass"),),
        "I5",
        13,
        MOVES,
    ),
    "brokers commit without those who are about to join": SearchMutant(
        brokers.commits,
        (("{*broker.isr, *broker.proposed}", "{*broker.isr}"),),
        "I10",
        6,
        replace(ALONE, isr=(1,), record=True),
    ),
}
