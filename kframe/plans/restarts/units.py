"""The units of a rolling restart: nodes, or racks whose brokers restart together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kframe.errors import ParameterError
from kframe.plans.restarts.request import RestartRequest
from kframe.snapshot.content import brokers_text
from kframe.whatif.engines.engine import Engine


@dataclass(frozen=True, slots=True)
class RestartUnits:
    """``nodes``: the node ids of each unit, ascending. ``voters``: the controllers of the quorum, ascending. ``racks``
    by broker id. ``left_out``: brokers that are not up, which restart in no batch."""

    nodes: tuple[tuple[int, ...], ...]
    voters: tuple[int, ...]
    racks: Mapping[int, str | None]
    left_out: tuple[int, ...]

    @staticmethod
    def of(engine: Engine, request: RestartRequest) -> RestartUnits:
        """The units of a cluster. Raises InputError for a broker that is unknown or not up, and for racks that the
        request needs and the snapshot lacks."""
        racks = {facts.broker_id: facts.rack for facts in engine.snapshot.brokers}
        up, instances = engine.registered, engine.snapshot.controllers
        brokers = [broker for broker in up if broker not in instances]
        voters = engine.quorum(request.voters)
        chosen = set(brokers if request.brokers is None else request.brokers)
        candidates = {*brokers, *voters}
        unknown = sorted(chosen - candidates)
        if unknown:
            expected = (
                f"brokers that are up: {brokers_text(brokers)}" if brokers else "brokers that are up: there is none"
            )
            raise ParameterError("brokers", brokers_text(unknown), expected)
        nodes = chosen if request.brokers is not None else chosen | set(voters)
        left_out = tuple(sorted(set(racks) - set(up) - set(instances))) if request.brokers is None else ()
        if request.whole_racks or request.same_rack:
            rackless = sorted(broker for broker in nodes & set(brokers) if racks[broker] is None)
            if rackless:
                option = "whole_racks" if request.whole_racks else "same_rack"
                raise ParameterError(option, f"{brokers_text(rackless)} without a rack", "a rack of each broker")
        return RestartUnits(_grouped(sorted(nodes), racks, request.whole_racks), voters, racks, left_out)

    def rack(self, unit: int) -> str | None:
        """The rack of a unit. None for a controller that is no broker, and for a broker without a rack."""
        return next((rack for node in self.nodes[unit] if (rack := self.racks.get(node)) is not None), None)


def _grouped(nodes: list[int], racks: Mapping[int, str | None], whole_racks: bool) -> tuple[tuple[int, ...], ...]:
    """The nodes of each unit; units ascend by their first node."""
    if not whole_racks:
        return tuple((node,) for node in nodes)
    groups: dict[object, list[int]] = {}
    for node in nodes:
        groups.setdefault(racks.get(node) or node, []).append(node)
    return tuple(map(tuple, groups.values()))
