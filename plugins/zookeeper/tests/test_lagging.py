"""A server that lags behind its ensemble: a claim does not believe it before it has caught up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kframe_zookeeper import paths
from kframe_zookeeper.testing.proxy import Break, Link, Moment, Proxy
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.testing.stores import opened

from kframe.testing.store_world import ONE, small_cluster

#: The opcode by which a client asks its server to catch up with its leader.
SYNC: Final = 9


def test_who_has_gone_on_other_servers_stands_in_nobodys_way(
    worlds: Callable[..., ZooKeeperWorld], proxy: Proxy
) -> None:
    """What the ensemble has done is seen by our server only when it catches up: then the old controller is gone."""
    world = worlds(small_cluster())
    world.operator.create(paths.CONTROLLER, b'{"version":1,"brokerid":7,"timestamp":"0"}')

    def catch_up(_: Link) -> None:
        world.operator.delete(paths.CONTROLLER)

    caught_up = Break(Moment.BEFORE_REQUEST, opcode=SYNC, action=catch_up)
    proxy.script(caught_up)
    assert opened(world, proxy).claim(ONE) == 1
    assert caught_up.happened.is_set()
