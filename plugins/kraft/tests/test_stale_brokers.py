"""The check that ends sessions, in time and after a pause of the process."""

from __future__ import annotations

from uuid import UUID

import pytest
from kframe_kraft.server.stale_brokers import StaleBrokerCheck

from kframe.core.kraft.random_source import JavaRandom
from kframe.plugin.kraft import ClusterMetadata, records
from kframe.plugin.kraft_controller import Heartbeats, KraftContext, KraftSettings

SESSION_MS = 8_000


def millis(number: int) -> int:
    return number * 1_000_000


@pytest.mark.parametrize(
    ("checks_ms", "contact_ms", "fenced"),
    [
        pytest.param([0, 1000, 2000, 8000], 0, False, id="the session lasts"),
        pytest.param([*range(0, 9000, 1000), 9000], 0, True, id="it has expired"),
        pytest.param([0, 20_000], 0, False, id="after a pause"),
        pytest.param([0, 20_000, *range(21_000, 28_000, 1000)], 0, False, id="as long as without the pause"),
        pytest.param([0, 20_000, *range(21_000, 30_000, 1000)], 0, True, id="a dead broker after a pause"),
        pytest.param([0, 4000, 8000, 12_000], 0, True, id="late by less than half a session"),
        pytest.param([0, 20_000, *range(21_000, 27_000, 1000)], 19_500, False, id="a contact in the pause"),
    ],
)
def test_sessions_end(checks_ms: list[int], contact_ms: int, fenced: bool) -> None:
    context = KraftContext(ClusterMetadata(), Heartbeats(millis(SESSION_MS)), KraftSettings(), JavaRandom(0))
    registered = records.RegisterBrokerRecord(
        broker_id=1,
        is_migrating_zk_broker=False,
        incarnation_id=UUID(int=1),
        broker_epoch=5,
        end_points=(),
        features=(),
        rack=None,
        fenced=False,
        in_controlled_shutdown=False,
        log_dirs=(),
        cordoned_log_dirs=None,
    )
    context.replay(registered, 5)
    context.heartbeats.contact_ns[1, 5] = millis(contact_ms)
    check = StaleBrokerCheck(millis(SESSION_MS))
    assert check.period_ms == 80
    written: list[object] = []
    for now_ms in checks_ms:
        context.now_ns = millis(now_ms)
        written += check.check(context).parts
    assert bool(written) is fenced
