"""The Kafka release of the controllers, which decides some rules that no ``metadata.version`` does.

``RULES`` has these rules; docs/reference/rules-by-release.md shows them as a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

from kframe.errors import ConfigError
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.ids import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION, MetadataLevel
from kframe.model.kraft.levels import level_name
from kframe.model.kraft.records import BrokerFeature, RegisterControllerRecord


class Release(NamedTuple):
    """A minor release of Kafka, such as 4.4."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class ReleaseRule(StrEnum):
    """A rule of the controller that came with a release, not with a feature level."""

    ALL_TARGETS_IN_SYNC = "all-targets-in-sync"
    RESTART_LEAVES_ISRS = "restart-leaves-isrs"
    FEATURES_TOGETHER = "features-together"
    LAST_KNOWN_ACTIVE = "last-known-active"
    LAST_KNOWN_WITH_LEADER = "last-known-with-leader"
    RETAINED_OUT_OF_SYNC = "retained-out-of-sync"
    ASSIGNMENT_KEEPS_ELR = "assignment-keeps-elr"
    CORDONED_REFUSED = "cordoned-refused"
    NEW_PARTITIONS_LIMITED = "new-partitions-limited"


class RuleFacts(NamedTuple):
    """The first release with a rule, the rule in words, and the method of Kafka's controller that has it."""

    since: Release
    text: str
    source: str


class CompletionRule(IntEnum):
    """Which replicas must be in the ISR to complete a reassignment (Kafka ``PartitionReassignmentReplicas``)."""

    ADDING = 0
    """The adding replicas."""
    ALL = 1
    """All target replicas (KAFKA-15665)."""
    ALL_IF_FEWER_ADDED = 2
    """The adding replicas, and all target replicas if fewer are added than removed (KAFKA-19975)."""


#: The configuration key that states the release.
RELEASE_KEY: Final = "kframe.kraft.release"
#: The rules by release, the oldest first.
RULES: Final = {
    ReleaseRule.ALL_TARGETS_IN_SYNC: RuleFacts(
        Release(3, 8),
        "a reassignment completes once all target replicas are in sync, not only the adding ones (KAFKA-15665)",
        "PartitionReassignmentReplicas.maybeCompleteReassignment",
    ),
    ReleaseRule.RESTART_LEAVES_ISRS: RuleFacts(
        Release(4, 0),
        "a new process of a broker leaves the ISRs and leaderships of the former one when it registers (KAFKA-18106)",
        "ReplicationControlManager.handleBrokerShutdown",
    ),
    ReleaseRule.FEATURES_TOGETHER: RuleFacts(
        Release(4, 0),
        "an update of several features is refused as a whole; before, each feature is accepted or refused alone",
        "FeatureControlManager.updateFeatures",
    ),
    ReleaseRule.LAST_KNOWN_ACTIVE: RuleFacts(
        Release(4, 1),
        "the last-known leader of a partition without ISR and ELR is elected only while it is active (KAFKA-19522)",
        "PartitionChangeBuilder.electLeader",
    ),
    ReleaseRule.LAST_KNOWN_WITH_LEADER: RuleFacts(
        Release(4, 1),
        "the last-known leader is stored when a partition loses its leader; before, when its ISR becomes empty",
        "PartitionChangeBuilder.build",
    ),
    ReleaseRule.RETAINED_OUT_OF_SYNC: RuleFacts(
        Release(4, 3),
        "a reassignment completes without retained replicas that are out of sync, unless fewer replicas are added than"
        " removed (KAFKA-19975)",
        "PartitionReassignmentReplicas.maybeCompleteReassignment",
    ),
    ReleaseRule.ASSIGNMENT_KEEPS_ELR: RuleFacts(
        Release(4, 3),
        "a broker that assigns its replicas to log directories leaves the ELRs as they are; before, that empties them",
        "ReplicationControlManager.handleAssignReplicasToDirs",
    ),
    ReleaseRule.CORDONED_REFUSED: RuleFacts(
        Release(4, 4),
        "assignments to brokers whose log directories are all cordoned are refused (KIP-1066)",
        "ReplicationControlManager.validateManualPartitionAssignment",
    ),
    ReleaseRule.NEW_PARTITIONS_LIMITED: RuleFacts(
        Release(4, 4),
        "one request for more than 10,000 new partitions is refused; before, the first 10,000 are added, with an error",
        "ReplicationControlManager.createPartitions",
    ),
}
#: The rules that changed the completion of reassignments: the completion rule before the release of each, and since.
COMPLETION_CHANGES: Final = (
    (ReleaseRule.ALL_TARGETS_IN_SYNC, CompletionRule.ADDING, CompletionRule.ALL),
    (ReleaseRule.RETAINED_OUT_OF_SYNC, CompletionRule.ALL, CompletionRule.ALL_IF_FEWER_ADDED),
)
#: The first release with each level of a feature, from level 1 on.
FEATURE_RELEASES: Final = {
    KRAFT_VERSION: (Release(3, 9),),
    "group.version": (Release(4, 0),),
    "transaction.version": (Release(4, 0), Release(4, 0)),
    ELR_VERSION: (Release(4, 0),),
    "share.version": (Release(4, 1), Release(4, 4)),
    "streams.version": (Release(4, 2),),
}
#: The first release whose metadata.version begins at 3.3-IV3.
_WITHOUT_ZOOKEEPER: Final = Release(4, 0)
#: The level that a broker is assumed to support if its registration is unknown.
_EVERY_LEVEL: Final = 2**15 - 1


def release_of_level(level: int) -> Release:
    """The release that introduced a level of ``metadata.version``. Levels below and above the known ones count as the
    first and the last."""
    known = min(max(level, MetadataLevel.MINIMUM), MetadataLevel.LATEST)
    major, minor = level_name(known).partition("-")[0].split(".")
    return Release(int(major), int(minor))


#: The releases that kframe knows, the oldest first.
RELEASES: Final = tuple(
    dict.fromkeys(release_of_level(level) for level in range(MetadataLevel.MINIMUM, MetadataLevel.LATEST + 1))
)
#: The release whose rules kframe follows where none is stated or known.
LATEST_RELEASE: Final = RELEASES[-1]


def parse_release(text: str) -> Release | None:
    """The release that a text such as ``4.2`` or ``4.2.1`` names, or None."""
    match = re.fullmatch(r"(\d{1,3})\.(\d{1,3})(\.\d{1,3})?", text)
    return None if match is None else Release(int(match[1]), int(match[2]))


def stated_release(config: Mapping[str, object] | None) -> Release | None:
    """The release that ``config`` states, or None. Raises ConfigError."""
    text = (config or {}).get(RELEASE_KEY)
    release = None if text is None else parse_release(str(text))
    if text is not None and release is None:
        raise ConfigError(f"config key {RELEASE_KEY}", str(text), f"a release of Kafka such as {LATEST_RELEASE}")
    return release


def supported_features(release: Release) -> dict[str, tuple[int, int]]:
    """The lowest and highest level of each feature that the controllers of a release support."""
    levels = [level for level in range(1, MetadataLevel.LATEST + 1) if release_of_level(level) <= release]
    lowest = 1 if release < _WITHOUT_ZOOKEEPER else int(MetadataLevel.MINIMUM)
    highest = {name: sum(release >= first for first in releases) for name, releases in FEATURE_RELEASES.items()}
    return {METADATA_VERSION: (lowest, levels[-1])} | {name: (0, level) for name, level in highest.items() if level}


def has_rule(release: Release, rule: ReleaseRule) -> bool:
    """Whether the controllers of a release follow a rule."""
    return release >= RULES[rule].since


def releases_by_rules(rules: Iterable[ReleaseRule]) -> list[Release]:
    """A release for each combination of these rules, the newest first."""
    return sorted({RELEASES[0], *(RULES[rule].since for rule in rules)}, reverse=True)


def completion_rule(release: Release) -> CompletionRule:
    """The rule of a release."""
    followed = [since for rule, _, since in COMPLETION_CHANGES if has_rule(release, rule)]
    return followed[-1] if followed else CompletionRule.ADDING


def known_release(
    controllers: Mapping[int, RegisterControllerRecord], brokers: Iterable[BrokerRegistration], controller_id: int
) -> Release | None:
    """The release of the controllers by the levels that nodes support.

    That of the active controller, else the lowest of the controllers, else the lowest of the brokers that are not
    fenced, else of all brokers. None if no registration tells it.
    """
    active = controllers.get(controller_id)
    registered = controllers.values() if active is None else [active]
    stored = list(brokers)
    ranks = (
        [node.features for node in registered],
        [node.features for node in stored if not node.fenced],
        [node.features for node in stored],
    )
    for features in ranks:
        releases = [release for each in features if (release := _supported_release(each)) is not None]
        if releases:
            return min(releases)
    return None


def _supported_release(features: Iterable[BrokerFeature]) -> Release | None:
    """The release of a node that supports these features."""
    levels = [feature.max_supported_version for feature in features if feature.name == METADATA_VERSION]
    return release_of_level(levels[0]) if levels and 0 < levels[0] < _EVERY_LEVEL else None
