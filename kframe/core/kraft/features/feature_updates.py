"""Changes of feature levels (Kafka 4.4 ``FeatureControlManager``, and ``updateFeatures`` with its configurations)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, Literal, NamedTuple, TypeAlias

from kframe.core.kraft.configuration.configs import elr_safety_records
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, RequestRefused, check_record_count
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION, MetadataLevel
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import BrokerFeature, FeatureLevelRecord, NoOpRecord
from kframe.model.kraft.releases import ReleaseRule

#: Levels of ``metadata.version`` that changed the metadata: no downgrade goes below them.
CHANGED_METADATA: Final = frozenset({8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
#: Feature levels that need a level of ``metadata.version``.
DEPENDENCIES: Final = {(ELR_VERSION, 1): int(MetadataLevel.ELR)}


class UpgradeType(Enum):
    """The direction of an update (Kafka ``FeatureUpdate.UpgradeType``)."""

    UPGRADE = "upgrade"
    SAFE_DOWNGRADE = "safe_downgrade"
    UNSAFE_DOWNGRADE = "unsafe_downgrade"


#: The requested level and direction of each feature.
FeatureUpdates: TypeAlias = Mapping[str, tuple[int, UpgradeType]]


class UnsupportingNode(NamedTuple):
    """A node that does not support a level, and the levels that it supports: None before it has registered."""

    role: Literal["local controller", "broker", "controller"]
    node_id: int
    levels: tuple[int, int] | None

    @property
    def text(self) -> str:
        """The reason for a refusal."""
        if self.levels is None:
            return f"{self.role} {self.node_id} has not registered, and may not support this feature"
        node, (low, high) = f"{self.role.capitalize()} {self.node_id}", self.levels
        return f"{node} {f'only supports versions {low}-{high}' if high else 'does not support this feature'}"


def update_features(
    context: KraftContext, updates: FeatureUpdates, *, validate_only: bool = False, kraft_version: int = 0
) -> ControllerResult[dict[str, str]]:
    """Change feature levels, all or none; the response is empty.

    Releases without FEATURES_TOGETHER change the valid levels; the response has the reasons for the others by feature.

    Turning ELR on writes the cluster's ``min.insync.replicas`` if it has none, and deletes those of brokers. An upgrade
    of ``kraft.version`` is a NoOp record here; the quorum writes its control records. Raises RequestRefused.
    """
    records: list[RecordAndVersion] = []
    refused: dict[str, str] = {}
    for name, (level, upgrade_type) in updates.items():
        problem = next(_problems(context, updates, name, kraft_version), None)
        if problem is not None:
            message = f"Invalid update version {level} for feature {name}. {problem}"
            if len(updates) == 1 or context.follows(ReleaseRule.FEATURES_TOGETHER):
                raise RequestRefused(ErrorCode.INVALID_UPDATE_VERSION, message)
            refused[name] = message
        elif name != KRAFT_VERSION:
            records.append(RecordAndVersion(FeatureLevelRecord(name=name, feature_level=level), 0))
        elif upgrade_type is UpgradeType.UPGRADE:
            records.append(RecordAndVersion(NoOpRecord(), 0))
    if validate_only:
        return ControllerResult((), refused)
    if updates.get(ELR_VERSION, (0, UpgradeType.UPGRADE))[0] > 0:
        records = [*elr_safety_records(context), *records]
    check_record_count(records)
    return ControllerResult(records, refused, atomic=True)


def is_only_unsupported(context: KraftContext, updates: FeatureUpdates) -> bool:
    """Whether the controller refuses a request only because of nodes that do not support a level."""
    return not any(level < 0 or _level_problem(context, updates, name, 0) for name, (level, _) in updates.items())


def unsupporting_nodes(context: KraftContext, name: str, level: int) -> Iterator[UnsupportingNode]:
    """The nodes that do not support a level. A feature that a node does not name has the range 0 to 0."""
    settings, metadata = context.settings, context.metadata
    low, high = settings.supported_features.get(name, (0, 0))
    if not low <= level <= high:
        yield UnsupportingNode("local controller", settings.node_id, (low, high))
    for broker_id, registration in metadata.brokers.registrations.items():
        levels = _supported_levels(registration.features, name)
        if not levels[0] <= level <= levels[1]:
            yield UnsupportingNode("broker", broker_id, levels)
    if context.level < MetadataLevel.CONTROLLER_REGISTRATION:
        return
    for controller_id, controller in metadata.controllers.items():
        levels = _supported_levels(controller.features, name)
        if controller_id != settings.node_id and not levels[0] <= level <= levels[1]:
            yield UnsupportingNode("controller", controller_id, levels)
    for controller_id in settings.quorum_ids:
        if controller_id != settings.node_id and controller_id not in metadata.controllers:
            yield UnsupportingNode("controller", controller_id, None)


def _problems(context: KraftContext, updates: FeatureUpdates, name: str, kraft_version: int) -> Iterator[str]:
    """The reasons why a level is invalid; the controller names the first."""
    level = updates[name][0]
    if level < 0:
        yield "A feature version cannot be less than 0."
    yield from (node.text for node in unsupporting_nodes(context, name, level))
    problem = _level_problem(context, updates, name, kraft_version)
    if problem is not None:
        yield problem


def _level_problem(context: KraftContext, updates: FeatureUpdates, name: str, kraft_version: int) -> str | None:
    """The reason why a level is invalid on any nodes, or None."""
    level, upgrade_type = updates[name]
    levels = {**context.metadata.features, METADATA_VERSION: context.level, KRAFT_VERSION: kraft_version}
    current = levels.get(name, 0)
    if level < current and upgrade_type is UpgradeType.UPGRADE:
        return "Can't downgrade without setting the upgrade type to either safe or unsafe downgrade."
    if level > current and upgrade_type is not UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    if name == METADATA_VERSION:
        lost = CHANGED_METADATA.intersection(range(level + 1, current + 1))
        return f"A downgrade would lose the metadata of level {max(lost)}." if lost else None
    if name == KRAFT_VERSION:
        return "Can't downgrade the version of this feature." if level < current else None
    if name not in context.settings.supported_features:
        return "The feature is unknown."
    needed = DEPENDENCIES.get((name, level), 0)
    proposed = updates[METADATA_VERSION][0] if METADATA_VERSION in updates else context.level
    return f"It needs metadata.version {needed}." if proposed < needed else None


def _supported_levels(features: Iterable[BrokerFeature], name: str) -> tuple[int, int]:
    ranges = [
        (feature.min_supported_version, feature.max_supported_version) for feature in features if feature.name == name
    ]
    return ranges[-1] if ranges else (0, 0)
