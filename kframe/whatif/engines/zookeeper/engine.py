"""The engine of a cluster in ZooKeeper mode: its controller, and the operations that are played on it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kframe.model.tables import Targets
from kframe.whatif.engines.script import Assignments, Script, Step, groups, step_name
from kframe.whatif.engines.zookeeper.controller import ZookeeperController
from kframe.whatif.results.outcome import Operation, Verb

if TYPE_CHECKING:
    from kframe.whatif.engines.zookeeper.explain import ElectionExplainer


class ZookeeperEngine(ZookeeperController):
    """Implements ``Engine``. A module is imported with its operation: one command plays one."""

    def restart(self, ids: tuple[int, ...], together: bool, clean: bool | None, repair_directories: bool) -> Script:
        """The restart of brokers. Brokers that are up bounce before the controller notices their absence."""
        operation, up = Operation(Verb.RESTART, ids, together), set(self.registered)
        steps: list[Step] = []
        for group in groups(ids, together):
            bounced = tuple(broker_id for broker_id in group if broker_id in up)
            started = tuple(broker_id for broker_id in group if broker_id not in up)
            parts = [step_name(bounced, "bounces", "bounce")] if bounced else []
            parts += [step_name(started, "starts", "start")] if started else []
            steps.append((", ".join(parts), partial(self._restart, bounced, started)))
        return Script(operation, steps)

    def _restart(self, bounced: tuple[int, ...], started: tuple[int, ...]) -> None:
        self.ensemble.bounce_brokers(bounced)
        self.ensemble.register_brokers(self.registrations[broker_id] for broker_id in started)

    def create_topic(
        self, name: str, partitions: int, replication_factor: int, assignments: Assignments, seed: int
    ) -> Script:
        """See ``Engine``."""
        from kframe.whatif.engines.zookeeper.create import topic_creation

        return topic_creation(self, name, partitions, replication_factor, assignments, seed)

    def create_partitions(self, name: str, count: int, assignments: Assignments, seed: int) -> Script:
        """The creation of further partitions of a topic. Nothing depends on the seed."""
        from kframe.whatif.engines.zookeeper.create import partitions_creation

        return partitions_creation(self, name, count, assignments)

    def delete_topics(self, names: tuple[str, ...]) -> Script:
        """See ``Engine``."""
        from kframe.whatif.engines.zookeeper.delete import ZookeeperDeletion

        return ZookeeperDeletion(self, names)

    def reassign(self, targets: Targets) -> Script:
        """See ``Engine``."""
        from kframe.whatif.engines.zookeeper.reassign import ZookeeperReassignment

        return ZookeeperReassignment(self, targets)

    def explainer(self, row: int) -> ElectionExplainer:
        """See ``Engine``."""
        from kframe.whatif.engines.zookeeper.explain import ElectionExplainer

        return ElectionExplainer(self, row)
