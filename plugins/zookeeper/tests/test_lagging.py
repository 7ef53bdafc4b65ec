"""A claim at a server that lags behind its ensemble syncs first."""

from __future__ import annotations

from typing import Final

from kframe_zookeeper import paths
from kframe_zookeeper.testing.proxy import Break, BreakPoint, Link, Proxy
from kframe_zookeeper.testing.stores import opened
from kframe_zookeeper.testing.zookeeper_fixture import FixtureFactory

from kframe.testing.store_fixture import FIRST_ID, small_cluster

#: Opcode of a sync: the server catches up with its leader.
SYNC: Final = 9


def test_claim_syncs_with_a_lagging_server(make_fixture: FixtureFactory, proxy: Proxy) -> None:
    """The server shows a deleted ``/controller`` until it syncs."""
    fixture = make_fixture(small_cluster())
    fixture.operator.create(paths.CONTROLLER, b'{"version":1,"brokerid":7,"timestamp":"0"}')

    def catch_up(_: Link) -> None:
        fixture.operator.delete(paths.CONTROLLER)

    caught_up = Break(BreakPoint.BEFORE_REQUEST, opcode=SYNC, action=catch_up)
    proxy.script(caught_up)
    assert opened(fixture, proxy).claim(FIRST_ID) == 1
    assert caught_up.happened.is_set()
