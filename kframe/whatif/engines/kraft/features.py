"""What if feature levels changed, or nodes were unregistered?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from kframe.core.kraft.brokers.registration import unregister_broker, unregister_controller
from kframe.core.kraft.controller_result import ControllerResult, RequestRefused
from kframe.core.kraft.features.feature_updates import (
    FeatureUpdates,
    UnsupportingNode,
    UpgradeType,
    is_only_unsupported,
    unsupporting_nodes,
    update_features,
)
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import KRAFT_VERSION, METADATA_VERSION, MetadataLevel
from kframe.model.kraft.level_rules import rules_between
from kframe.model.kraft.levels import level_name
from kframe.model.kraft.record_versions import changed_versions
from kframe.model.kraft.records import record_name
from kframe.whatif.engines.kraft.controller import WhatIfController
from kframe.whatif.engines.kraft.responses import accepted, refused
from kframe.whatif.engines.script import Script, Step
from kframe.whatif.results.feature_update import (
    FeatureBlocker,
    FeatureUpdateRecord,
    NodeState,
    RecordVersions,
    RuleChange,
)
from kframe.whatif.results.outcome import ControllerResponse, Operation, Outcome, Verb


def request_levels(controller: WhatIfController, levels: Mapping[str, int], unsafe: bool) -> ControllerResponse:
    """An administrator updates feature levels; ``unsafe`` permits downgrades that lose metadata."""
    updates, kraft_version = _updates(controller, levels, unsafe), controller.cluster.features.get(KRAFT_VERSION, 0)
    return _respond(controller, partial(update_features, controller.context, updates, kraft_version=kraft_version))


def _updates(controller: WhatIfController, levels: Mapping[str, int], unsafe: bool) -> FeatureUpdates:
    downgrade, current = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE, _levels(controller)
    return {
        name: (level, UpgradeType.UPGRADE if level >= current.get(name, 0) else downgrade)
        for name, level in levels.items()
    }


def _levels(controller: WhatIfController) -> dict[str, int]:
    """The present level of each feature."""
    return {**controller.cluster.features, METADATA_VERSION: controller.context.level}


def _respond(controller: WhatIfController, request: Callable[[], ControllerResult[Any]]) -> ControllerResponse:
    try:
        reasons = controller.decide(request)
    except RequestRefused as refusal:
        return refused(refusal)
    if reasons:
        return refused(RequestRefused(ErrorCode.INVALID_UPDATE_VERSION, " ".join(reasons.values())))
    return accepted()


class KraftFeatures(Script):
    """An administrator updates feature levels. ``voters``: see ``WhatIfController.voters``."""

    def __init__(
        self, controller: WhatIfController, levels: Mapping[str, int], unsafe: bool, voters: Collection[int]
    ) -> None:
        voters = controller.voters(voters)
        step: Step = "feature levels change", partial(request_levels, controller, levels, unsafe)
        super().__init__(Operation(Verb.FEATURE, features=dict(levels)), [step])
        context, current = controller.context, _levels(controller)
        metadata_version = levels.get(METADATA_VERSION, context.level)
        blockers = [
            _blocker(controller, node, name, level, voters)
            for name, level in levels.items()
            for node in unsupporting_nodes(context, name, level)
        ]
        self._result = FeatureUpdateRecord(
            blockers,
            list(_record_versions(context.level, metadata_version)),
            [change for name, level in levels.items() for change in _rule_changes(name, current.get(name, 0), level)],
        )
        if blockers and is_only_unsupported(context, _updates(controller, levels, unsafe)):
            self.notes = ("only these nodes block the request: each must support the level, or be unregistered",)
        self.notes += tuple(_removals(blockers, context.level))

    def complete(self, outcome: Outcome) -> Outcome:
        """See ``Script``."""
        return replace(outcome, feature_update=self._result)


def _blocker(
    controller: WhatIfController, node: UnsupportingNode, feature: str, level: int, voters: Collection[int]
) -> FeatureBlocker:
    node_id: int | None = node.node_id
    state: NodeState = "registered"
    if node.role == "broker":
        state = "fenced" if controller.cluster.brokers.registrations[node.node_id].fenced else "up"
    elif node.role == "local controller":
        node_id, state = controller.snapshot.controller_id, "active"
    elif node.levels is None:
        state = "not registered"
    elif voters:
        state = "voter" if node.node_id in voters else "not a voter"
    low, high = (None, None) if node.levels is None else node.levels
    return FeatureBlocker(
        node_id, "broker" if node.role == "broker" else "controller", state, feature, level, low, high
    )


def _removals(blockers: Iterable[FeatureBlocker], level: int) -> Iterator[str]:
    """How the registrations of nodes that are gone stop blocking; ``level`` is that of ``metadata.version``."""
    brokers = sorted({str(blocker.node_id) for blocker in blockers if blocker.state == "fenced"})
    controllers = sorted(
        {str(blocker.node_id) for blocker in blockers if blocker.state in ("registered", "not a voter")}
    )
    if brokers:
        yield f"kafka-cluster unregister removes a broker that is gone: {', '.join(brokers)}"
    if not controllers:
        return
    removal = f"kafka-cluster unregister-controller removes a controller that is gone: {', '.join(controllers)}"
    if level >= MetadataLevel.UNREGISTER_CONTROLLER:
        yield removal
        return
    needed = f"{METADATA_VERSION} {level_name(MetadataLevel.UNREGISTER_CONTROLLER)}"
    anew = "a controller with the same node id, of a release that supports the level, replaces the registration"
    yield f"{removal}; that needs {needed}, and the cluster has {level_name(level)}: until then, {anew}"


def unregistration(controller: WhatIfController, brokers: tuple[int, ...], controllers: tuple[int, ...]) -> Script:
    """The removal of registrations, one after another."""
    steps: list[Step] = [
        (
            f"{role} {node_id} is unregistered",
            partial(_respond, controller, partial(remove, controller.context, node_id)),
        )
        for role, ids, remove in (
            ("broker", brokers, unregister_broker),
            ("controller", controllers, unregister_controller),
        )
        for node_id in ids
    ]
    return Script(Operation(Verb.UNREGISTER, brokers, together=False, controllers=controllers), steps)


def _record_versions(before: int, after: int) -> Iterator[RecordVersions]:
    for record, *versions in changed_versions(before, after):
        known = [None if version < 0 else version for version in versions]
        yield RecordVersions(record_name(record), *known)


def _rule_changes(feature: str, before: int, after: int) -> Iterator[RuleChange]:
    change: Literal["begins", "ends"] = "begins" if after > before else "ends"
    for level, rule in rules_between(feature, before, after):
        name = level_name(level) if feature == METADATA_VERSION else str(level)
        yield RuleChange(feature, level, name, change, rule)
