"""What a rolling restart must observe."""

from __future__ import annotations

from dataclasses import dataclass

from kframe.errors import ParameterError


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """Which nodes restart, and what each batch must observe. None is no limit.

    ``brokers``: only these restart. ``voters`` are the controllers of a KRaft quorum, if the snapshot lacks them.
    ``max_at_min_isr``: the most partitions that a batch may bring down to ``min.insync.replicas``. ``max_batch``: the
    most nodes in a batch. ``whole_racks``: the brokers of a rack restart together. ``same_rack``: the brokers of a
    batch are in one rack. ``allow_unavoidable``: a partition that no order protects, because the restart of one node
    takes it offline or under min ISR, holds back no node. Two nodes of such a partition still share no batch.
    ``exact``: search for fewer batches with HiGHS where the bound leaves a gap.
    """

    brokers: tuple[int, ...] | None = None
    voters: tuple[int, ...] = ()
    max_at_min_isr: int | None = None
    max_batch: int | None = None
    whole_racks: bool = False
    same_rack: bool = False
    allow_unavoidable: bool = False
    exact: bool = False

    def __post_init__(self) -> None:
        """Raise InputError for a limit out of range, a repeated node, and for contradicting limits."""
        if self.max_at_min_isr is not None and self.max_at_min_isr < 0:
            raise ParameterError("max_at_min_isr", str(self.max_at_min_isr), "0 or more partitions")
        if self.max_batch is not None and self.max_batch < 1:
            raise ParameterError("max_batch", str(self.max_batch), "1 or more nodes")
        for name, nodes in (("brokers", self.brokers or ()), ("voters", self.voters)):
            repeated = next((node for node in nodes if nodes.count(node) > 1), None)
            if repeated is not None:
                raise ParameterError(name, f"node {repeated} twice", "each node once")
        if self.brokers == ():
            raise ParameterError("brokers", "no broker", "at least one")
        if self.whole_racks and self.max_batch is not None:
            raise ParameterError("max_batch", "whole racks", "no limit of nodes, since a rack restarts together")
        if self.exact and self.max_at_min_isr is not None:
            raise ParameterError("exact", "a limit of partitions at min ISR", "no such limit, which is not linear")
