"""UpdateFeatures (``controller.md`` section 14): brokers of a ZooKeeper-mode cluster support no feature."""

from __future__ import annotations

import pytest

from kframe.errors import ErrorCode
from kframe.model.admin import FeatureUpdate
from kframe.model.events import UpdateFeaturesRequested
from kframe.testing.clusters import healthy
from tests.core.driver import quiet

REFUSED = ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "protocol, error, codes", [("3.9", ErrorCode.NONE, {"a": REFUSED, "b": REFUSED}), ("2.6", REFUSED, {})]
)
def test_feature_update_is_refused(protocol: str, error: ErrorCode, codes: dict[str, ErrorCode]) -> None:
    """controller 14: zk brokers support no features, and before inter-broker protocol 2.7 the request is refused."""
    driver = quiet({"t": [healthy(1)]}, inter_broker_protocol_version=protocol)
    updates = (FeatureUpdate("a", 1), FeatureUpdate("b", 2))
    response = driver.ask(UpdateFeaturesRequested(updates, token=1))
    assert (response.error, dict(response.codes)) == (error, codes)
    assert driver.writes() == []
