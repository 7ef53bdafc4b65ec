"""The settings and the identity of the controller of a what-if, from its snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kframe.model.config import ControllerConfig
from kframe.model.texts import AS_STATED
from kframe.snapshot import Snapshot, TopicFacts

#: The cluster-wide dynamic settings in a snapshot that a what-if applies.
DYNAMIC_KEYS: Final = ("unclean.leader.election.enable", "min.insync.replicas")
_MIN_INSYNC: Final = "min.insync.replicas"


def config_of(snapshot: Snapshot, config: Mapping[str, object] | None = None) -> ControllerConfig:
    """The settings of the controller of a what-if: ``config``, and the DYNAMIC_KEYS of the snapshot that it lacks."""
    dynamic = {key: value for key, value in (snapshot.broker_default_configs or {}).items() if key in DYNAMIC_KEYS}
    return ControllerConfig({**dynamic, **(config or {})})


def knows_min_insync(topics: TopicFacts, config: Mapping[str, object] | None) -> bool:
    """Whether ``min.insync.replicas`` of all ``topics`` is known: from the snapshot, or stated by ``config`` for topics
    whose settings are unknown."""
    return topics.configs is not None or _MIN_INSYNC in (config or {})


def assumptions_of(snapshot: Snapshot, config: Mapping[str, object] | None) -> tuple[str, ...]:
    """The assumptions of a snapshot, with the setting that ``config`` states for topics whose settings are unknown."""
    stated = (config or {}).get(_MIN_INSYNC)
    assumptions = snapshot.assumptions
    if stated is None or snapshot.topics.configs is not None:
        return assumptions
    return (*assumptions, f"{_MIN_INSYNC}: {stated} for every topic{AS_STATED}")


def controller_id_of(snapshot: Snapshot) -> int:
    """The controller's id. That of the first broker if the snapshot does not say."""
    first = snapshot.brokers[0].broker_id if snapshot.brokers else 0
    return first if snapshot.controller_id is None else snapshot.controller_id


def controller_epoch_of(snapshot: Snapshot) -> int:
    """The present controller's epoch. The highest that any state was written under if the snapshot does not say."""
    written = snapshot.partitions.controller_epoch
    return max(1 if written is None else int(written.max(initial=1)), snapshot.controller_epoch or 1)
