"""The Kafka release of the controllers, which decides some rules that no ``metadata.version`` does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.ids import METADATA_VERSION, MetadataLevel
from kframe.model.kraft.levels import level_name
from kframe.model.kraft.records import BrokerFeature, RegisterControllerRecord


class Release(NamedTuple):
    """A minor release of Kafka, such as 4.4."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


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
#: The first release that refuses assignments to brokers whose log directories are all cordoned.
REFUSES_CORDONED: Final = Release(4, 4)
#: The first release that limits the partitions of one CreatePartitions request.
LIMITS_NEW_PARTITIONS: Final = Release(4, 4)
#: The first release with each rule.
RELEASE_OF_RULE: Final = {
    CompletionRule.ALL_IF_FEWER_ADDED: Release(4, 3),
    CompletionRule.ALL: Release(3, 8),
    CompletionRule.ADDING: Release(3, 3),
}
#: The level that a broker is assumed to support if its registration is unknown.
_EVERY_LEVEL: Final = 2**15 - 1


def release_of_level(level: int) -> Release:
    """The release that introduced a level of ``metadata.version``. Levels below and above the known ones count as the
    first and the last."""
    known = min(max(level, MetadataLevel.MINIMUM), MetadataLevel.LATEST)
    major, minor = level_name(known).partition("-")[0].split(".")
    return Release(int(major), int(minor))


#: The release whose rules kframe follows where none is stated or known.
LATEST_RELEASE: Final = release_of_level(MetadataLevel.LATEST)


def parse_release(text: str) -> Release | None:
    """The release that a text such as ``4.2`` or ``4.2.1`` names, or None."""
    match = re.fullmatch(r"(\d{1,3})\.(\d{1,3})(\.\d{1,3})?", text)
    return None if match is None else Release(int(match[1]), int(match[2]))


def completion_rule(release: Release) -> CompletionRule:
    """The rule of a release."""
    return next((rule for rule, first in RELEASE_OF_RULE.items() if release >= first), CompletionRule.ADDING)


def known_release(
    controllers: Mapping[int, RegisterControllerRecord], brokers: Iterable[BrokerRegistration], controller_id: int
) -> Release | None:
    """The release of the controllers by the levels that nodes support.

    That of the active controller, else the lowest of the controllers, else the lowest of the brokers. None if no
    registration tells it.
    """
    active = controllers.get(controller_id)
    registered = controllers.values() if active is None else [active]
    for features in ([node.features for node in registered], [node.features for node in brokers]):
        releases = [release for each in features if (release := _supported_release(each)) is not None]
        if releases:
            return min(releases)
    return None


def _supported_release(features: Iterable[BrokerFeature]) -> Release | None:
    """The release of a node that supports these features."""
    levels = [feature.max_supported_version for feature in features if feature.name == METADATA_VERSION]
    return release_of_level(levels[0]) if levels and 0 < levels[0] < _EVERY_LEVEL else None
