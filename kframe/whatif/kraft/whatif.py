"""What-if operations on a KRaft cluster, without brokers and in no time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from kframe.errors import InputError
from kframe.lazy import load_at_call
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.levels import level_name
from kframe.whatif.kraft.player import KraftPlayer
from kframe.whatif.modes import ModeOperations
from kframe.whatif.outcome import Operation, Outcome, Verb
from kframe.whatif.whatif import Step, groups, step_name


class KraftWhatIf(KraftPlayer):
    """A KRaft cluster; see ``WhatIf``. The brokers that it calls registered are those that are not fenced."""

    _operations = ModeOperations(
        load_at_call("kframe.whatif.kraft.topics", "play_creation"),
        load_at_call("kframe.whatif.kraft.topics", "play_expansion"),
        load_at_call("kframe.whatif.kraft.topics", "play_deletion"),
        load_at_call("kframe.whatif.kraft.reassign", "play_reassignment"),
        load_at_call("kframe.whatif.kraft.explain", "explain_elections"),
    )

    def fence(self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True) -> Outcome:
        """See ``WhatIf``."""
        ids = self._select_brokers(brokers, racks, registered=True)
        steps: list[Step] = [
            (step_name(group, "is fenced", "are fenced"), self.fence_action(group)) for group in groups(ids, together)
        ]
        return self.play(Operation(Verb.FENCE, ids, together), steps)

    def unfence(self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True) -> Outcome:
        """See ``WhatIf``."""
        ids = self._select_brokers(brokers, racks, registered=False)
        for broker_id in ids:
            if broker_id not in self.context.metadata.brokers.registrations:
                raise InputError("brokers", f"broker {broker_id}", "a broker with a registration")
        steps: list[Step] = [
            (step_name(group, "is unfenced", "are unfenced"), self.unfence_action(group))
            for group in groups(ids, together)
        ]
        return self.play(Operation(Verb.UNFENCE, ids, together), steps)

    def fail_directories(self, broker_id: int, failed: Sequence[UUID]) -> Outcome:
        """See ``WhatIf``."""
        (broker_id,) = self._select_brokers([broker_id], [], registered=True)
        listed = self.context.metadata.brokers.registrations[broker_id].directories
        if self.context.level < MetadataLevel.DIRECTORIES:
            expected = f"{level_name(MetadataLevel.DIRECTORIES)} or later"
            raise InputError("metadata.version", level_name(self.context.level), expected)
        unlisted = [str(directory) for directory in failed if directory not in listed]
        if unlisted or not failed:
            expected = f"a log directory of broker {broker_id}: {', '.join(map(str, listed)) or 'it lists none'}"
            raise InputError("directories", unlisted[0] if unlisted else "none", expected)
        operation = Operation(Verb.DIRECTORY, (broker_id,), directories=tuple(map(str, failed)))
        steps: list[Step] = [(f"log directories of broker {broker_id} fail", self.directory_failure(broker_id, failed))]
        if not set(listed) - set(failed):
            steps = [(f"broker {broker_id} stops without a log directory", self._stop((broker_id,)))]
        return self.play(operation, steps)

    def update_features(self, levels: Mapping[str, int], *, unsafe: bool = False) -> Outcome:
        """See ``WhatIf``."""
        if not levels:
            raise InputError("features", "no feature", "at least one")
        operation = Operation(Verb.FEATURE, features=dict(levels))
        return self.play(operation, [("feature levels change", self.feature_update(dict(levels), unsafe))])
