"""What if these brokers restarted? Failed ones register again; those that are up bounce."""

from __future__ import annotations

from kframe.whatif.engines.requests import BrokersRestart
from kframe.whatif.engines.script import Script, Step, groups, step_name
from kframe.whatif.engines.zookeeper.controller import ObservedController
from kframe.whatif.results.outcome import Operation, Verb


class ZookeeperRestart(Script):
    """A restart in ZooKeeper mode. Brokers that are up bounce before the controller notices their absence."""

    def __init__(self, controller: ObservedController, request: BrokersRestart) -> None:
        operation = Operation(Verb.RESTART, request.brokers, request.together)
        super().__init__(operation, [_step(controller, group) for group in groups(request.brokers, request.together)])


def _step(controller: ObservedController, ids: tuple[int, ...]) -> Step:
    up = set(controller.registered)
    bounced = tuple(broker_id for broker_id in ids if broker_id in up)
    started = tuple(broker_id for broker_id in ids if broker_id not in up)
    parts = [step_name(bounced, "bounces", "bounce"), step_name(started, "starts", "start")]
    name = ", ".join(part for part, group in zip(parts, (bounced, started), strict=True) if group)

    def act() -> None:
        controller.ensemble.bounce_brokers(bounced)
        controller.ensemble.register_brokers(controller.registrations[broker_id] for broker_id in started)

    return name, act
