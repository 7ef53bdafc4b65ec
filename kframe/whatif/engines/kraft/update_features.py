"""What if feature levels of a KRaft cluster were changed?"""

from __future__ import annotations

from kframe.core.kraft.controller_result import RequestRefused
from kframe.core.kraft.features.feature_updates import UpgradeType, update_features
from kframe.whatif.engines.kraft.controller import KraftController
from kframe.whatif.engines.kraft.responses import accepted, refused
from kframe.whatif.engines.requests import FeaturesUpdate
from kframe.whatif.engines.script import Script
from kframe.whatif.results.outcome import ControllerResponse, Operation, Verb


class KraftFeaturesUpdate(Script):
    """An administrator updates feature levels."""

    def __init__(self, controller: KraftController, request: FeaturesUpdate) -> None:
        operation = Operation(Verb.FEATURE, features=dict(request.levels))
        super().__init__(operation, [("feature levels change", self._update)])
        self._controller = controller
        self._request = request

    def _update(self) -> ControllerResponse:
        context = self._controller.context
        downgrade = UpgradeType.UNSAFE_DOWNGRADE if self._request.unsafe else UpgradeType.SAFE_DOWNGRADE
        current = context.metadata.features
        updates = {
            name: (level, UpgradeType.UPGRADE if level >= current.get(name, 0) else downgrade)
            for name, level in self._request.levels.items()
        }
        try:
            self._controller.decide(lambda: update_features(context, updates))
        except RequestRefused as refusal:
            return refused(refusal)
        return accepted()
