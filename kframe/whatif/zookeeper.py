"""What-if operations on a cluster in ZooKeeper mode. No broker answers, and no time passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kframe.whatif.create import play_creation, play_expansion
from kframe.whatif.delete import play_deletion
from kframe.whatif.explain import explain_elections
from kframe.whatif.explanation import Explanation
from kframe.whatif.outcome import Operation, Outcome, Verb
from kframe.whatif.plan import Plan
from kframe.whatif.reassign import play_reassignment
from kframe.whatif.whatif import groups
from kframe.whatif.zookeeper_player import ZookeeperPlayer


class ZookeeperWhatIf(ZookeeperPlayer, kraft=False):
    """A cluster in ZooKeeper mode; see ``WhatIf``."""

    def restart(
        self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True,
        clean: bool | None = None,
    ) -> Outcome:  # fmt: skip
        """See ``WhatIf``."""
        ids = self._chosen(brokers, racks, registered=False)
        steps = [(self.describe_start(group), self.start(group)) for group in groups(ids, together)]
        return self.play(Operation(Verb.RESTART, ids, together), steps)

    def create(
        self, name: str, partitions: int = -1, replication_factor: int = -1, *,
        assignments: Sequence[Sequence[int]] | None = None, seed: int = 0,
    ) -> Outcome:  # fmt: skip
        """See ``WhatIf``."""
        return play_creation(self, name, partitions, replication_factor, assignments=assignments, seed=seed)

    def create_partitions(
        self, name: str, count: int, *, assignments: Sequence[Sequence[int]] | None = None, seed: int = 0
    ) -> Outcome:
        """See ``WhatIf``; nothing depends on ``seed``."""
        return play_expansion(self, name, count, assignments)

    def delete(self, names: Iterable[str]) -> Outcome:
        """See ``WhatIf``. Every registered broker confirms; topics with a replica on another broker wait for it."""
        return play_deletion(self, names)

    def reassign(self, plan: Plan) -> Outcome:
        """See ``WhatIf``."""
        return play_reassignment(self, plan)

    def explain(self, topic: str, partition: int, fail: Iterable[int] = ()) -> Explanation:
        """See ``WhatIf``."""
        return explain_elections(self, topic, partition, fail)
