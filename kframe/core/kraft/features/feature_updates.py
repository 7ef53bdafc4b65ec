"""Changes of feature levels (Kafka 4.4 ``FeatureControlManager``, and ``updateFeatures`` with its configurations)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final

from kframe.core.kraft.configuration.configs import elr_safety_records
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, RequestRefused, check_record_count
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION, MetadataLevel
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import BrokerFeature, FeatureLevelRecord, NoOpRecord

#: Levels of ``metadata.version`` that changed the metadata: no downgrade goes below them.
CHANGED_METADATA: Final = frozenset({8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
#: Feature levels that need a level of ``metadata.version``.
DEPENDENCIES: Final = {(ELR_VERSION, 1): int(MetadataLevel.ELR)}


class UpgradeType(Enum):
    """The direction of an update (Kafka ``FeatureUpdate.UpgradeType``)."""

    UPGRADE = "upgrade"
    SAFE_DOWNGRADE = "safe_downgrade"
    UNSAFE_DOWNGRADE = "unsafe_downgrade"


def update_features(
    context: KraftContext,
    updates: Mapping[str, tuple[int, UpgradeType]],
    *,
    validate_only: bool = False,
    kraft_version: int = 0,
) -> ControllerResult[None]:
    """Change feature levels, all or none.

    Turning ELR on writes the cluster's ``min.insync.replicas`` if it has none, and deletes those of brokers. An upgrade
    of ``kraft.version`` is a NoOp record here; the quorum writes its control records. Raises RequestRefused.
    """
    proposed = {**context.metadata.features, METADATA_VERSION: context.level}
    proposed |= {name: level for name, (level, _) in updates.items()}
    records: list[RecordAndVersion] = []
    for name, (level, upgrade_type) in updates.items():
        current = kraft_version if name == KRAFT_VERSION else context.metadata.features.get(name, 0)
        current = context.level if name == METADATA_VERSION else current
        problem = _problem(context, name, level, current, upgrade_type, proposed)
        if problem is not None:
            message = f"Invalid update version {level} for feature {name}. {problem}"
            raise RequestRefused(ErrorCode.INVALID_UPDATE_VERSION, message)
        if name != KRAFT_VERSION:
            records.append(RecordAndVersion(FeatureLevelRecord(name=name, feature_level=level), 0))
        elif upgrade_type is UpgradeType.UPGRADE:
            records.append(RecordAndVersion(NoOpRecord(), 0))
    if validate_only:
        return ControllerResult((), None)
    if updates.get(ELR_VERSION, (0, UpgradeType.UPGRADE))[0] > 0:
        records = [*elr_safety_records(context), *records]
    check_record_count(records)
    return ControllerResult(records, None, atomic=True)


def _problem(
    context: KraftContext, name: str, level: int, current: int, upgrade_type: UpgradeType, proposed: Mapping[str, int]
) -> str | None:
    """The reason why a level is invalid, or None."""
    if level < 0:
        return "A feature version cannot be less than 0."
    unsupported = next(_unsupporting_nodes(context, name, level), None)
    if unsupported is not None:
        return unsupported
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
    return f"It needs metadata.version {needed}." if proposed[METADATA_VERSION] < needed else None


def _unsupporting_nodes(context: KraftContext, name: str, level: int) -> Iterator[str]:
    """Why nodes do not support a level. A feature that a node does not name has the range 0 to 0."""
    settings, metadata = context.settings, context.metadata
    low, high = settings.supported_features.get(name, (0, 0))
    if not low <= level <= high:
        yield f"Local controller {settings.node_id} only supports versions {low}-{high}"
    for broker_id, registration in metadata.brokers.registrations.items():
        if not _supports(registration.features, name, level):
            yield f"Broker {broker_id} does not support this version."
    if context.level < MetadataLevel.CONTROLLER_REGISTRATION:
        return
    for controller_id, controller in metadata.controllers.items():
        if controller_id != settings.node_id and not _supports(controller.features, name, level):
            yield f"Controller {controller_id} does not support this version."
    for controller_id in settings.quorum_ids:
        if controller_id != settings.node_id and controller_id not in metadata.controllers:
            yield f"controller {controller_id} has not registered, and may not support this feature"


def _supports(features: tuple[BrokerFeature, ...], name: str, level: int) -> bool:
    ranges = {feature.name: (feature.min_supported_version, feature.max_supported_version) for feature in features}
    low, high = ranges.get(name, (0, 0))
    return low <= level <= high
