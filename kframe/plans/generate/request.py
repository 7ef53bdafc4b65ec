"""The goals of a plan: brokers, racks, replication factors and scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kframe.errors import InputError, ParameterError
from kframe.model.arrays import Int64
from kframe.model.elections import LeaderSelector
from kframe.model.slot_columns import REPLICAS_MAX
from kframe.ports.administration import DirectoryName, LogDirectory
from kframe.registry.placements import CostTerm, PlanGoal


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The goals of a plan, which may be combined, and its scope.

    ``topics`` and ``exclude_topics`` are names or patterns with ``*`` and ``?``; no ``topics`` are all. Partitions of
    the topics ``one_rack`` have all replicas in one rack, and ``fix_racks`` spreads the others evenly. ``racks`` gives
    the racks of added brokers that the snapshot does not have. ``broker_caps`` is the greatest number of replicas by
    broker id; the key None is the cap of all others. A broker that has more retains at most as many. ``weights`` (n,)
    is the size of a replica of each row of the snapshot; None counts replicas. ``rate`` is the bytes per second into a
    broker, and out of it, for an estimate of the duration. ``capacities`` is the relative capacity
    by broker id, 1 where none is given. ``tolerance`` is the deviation from a broker's share of the weights that a
    rebalance allows, in percent. ``seed`` determines the order in which partitions are considered.

    ``demote_brokers`` and ``demote_racks`` lead nothing after the plan: their replicas become the last of each
    partition. So do replicas in ``demote_directories``: by path in ``log_directories``, which has those of brokers, or
    by directory id in a KRaft cluster. ``leader_racks``, if there are any, lead all that they can. These plans move no
    data, and change the leaders of other partitions only with ``leaders_only``, which balances all. ``exclude_brokers``
    lead nothing either. With ``leaders_only`` a ``leader_selector`` chooses the leaders instead: those that it elects
    in an OFFLINE election while all brokers are alive and all replicas in sync.

    ``exact`` solves problems of up to 100,000 partitions times brokers to the optimum. If highspy is installed,
    problems of up to 2,000 are solved without it too, where the gap is above 1 % or the limits are not reached.
    Problems without limits of loads are solved up to 20,000, where there is any gap. ``goal`` balances the brokers by
    the weights and limits of a plugin, instead of ``rebalance``. ``cost_terms`` of plugins add to the cost of each
    copied replica, or forbid its placement.
    """

    remove_brokers: tuple[int, ...] = ()
    add_brokers: tuple[int, ...] = ()
    replace: Mapping[int, int] = field(default_factory=dict)
    evacuate_racks: tuple[str, ...] = ()
    replication_factors: Mapping[str, int] = field(default_factory=dict)
    fix_racks: bool = False
    one_rack: tuple[str, ...] = ()
    rebalance: bool = False
    leaders_only: bool = False
    demote_brokers: tuple[int, ...] = ()
    demote_racks: tuple[str, ...] = ()
    leader_racks: tuple[str, ...] = ()
    leader_selector: LeaderSelector | None = None
    demote_directories: tuple[DirectoryName, ...] = ()
    log_directories: Mapping[int, Sequence[LogDirectory]] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    exclude_topics: tuple[str, ...] = ()
    exclude_brokers: tuple[int, ...] = ()
    racks: Mapping[int, str] = field(default_factory=dict)
    broker_caps: Mapping[int | None, int] = field(default_factory=dict)
    weights: Int64 | None = None
    rate: int | None = None
    capacities: Mapping[int, float] = field(default_factory=dict)
    tolerance: float = 1.0
    seed: int = 0
    exact: bool = False
    goal: PlanGoal | None = None
    cost_terms: tuple[CostTerm, ...] = ()

    def __post_init__(self) -> None:
        """Raise InputError for a request without a goal, or with goals that contradict each other."""
        data_goals = (
            self.remove_brokers,
            self.add_brokers,
            self.replace,
            self.evacuate_racks,
            self.replication_factors,
            self.fix_racks,
            self.one_rack,
            self.rebalance,
            self.goal,
        )
        if not (self.orders_only or any(data_goals)):
            raise InputError("plan", "no goal", "at least one, such as rebalance")
        for name in ("leaders_only", "demote_brokers", "demote_racks", "demote_directories", "leader_racks"):
            if getattr(self, name) and any(data_goals):
                raise ParameterError(name, "a goal that moves replicas", "no such goal, since the plan moves no data")
        if self.leader_selector is not None:
            if not self.leaders_only:
                raise ParameterError("leader_selector", "a plan that may move replicas", "leaders_only with it")
            if any((self.demote_brokers, self.demote_racks, self.demote_directories, self.leader_racks)):
                raise ParameterError(
                    "leader_selector", "another goal of leaders", "none: the selector chooses each leader"
                )
        if self.goal is not None and (self.rebalance or self.add_brokers or self.weights is not None):
            raise ParameterError(
                "goal", "rebalance, added brokers or weights too", "none: the goal has its own weights"
            )
        for topic, factor in self.replication_factors.items():
            if not 1 <= factor <= REPLICAS_MAX:
                raise ParameterError("replication_factors", str(factor), f"1 to {REPLICAS_MAX}", f" of topic {topic}")
        for broker_id, capacity in self.capacities.items():
            if not 0 < capacity < float("inf"):
                raise ParameterError("capacities", str(capacity), "a positive number", f" of broker {broker_id}")
        if self.rate is not None and (self.rate < 1 or self.weights is None):
            actual = "no sizes of partitions" if self.weights is None else str(self.rate)
            raise ParameterError("rate", actual, "weights, and 1 or more bytes per second")
        if not 0 <= self.tolerance <= 100:
            raise ParameterError("tolerance", str(self.tolerance), "0 to 100 percent")
        removed = {*self.remove_brokers, *self.replace}
        for name, brokers in (("add_brokers", self.add_brokers), ("replace", tuple(self.replace.values()))):
            for broker_id in removed.intersection(brokers):
                raise ParameterError(name, f"broker {broker_id}", "a broker that is not removed")

    @property
    def orders_only(self) -> bool:
        """Whether the plan only orders replicas, which moves no data."""
        return self.leaders_only or any(
            (self.demote_brokers, self.demote_racks, self.demote_directories, self.leader_racks)
        )

    @property
    def balances(self) -> bool:
        """Whether loads have limits, so that replicas may move that need not."""
        return self.rebalance or bool(self.add_brokers) or self.goal is not None
