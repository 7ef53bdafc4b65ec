"""An id belongs to one live instance: records below ``/kframe/instances``, and what happens when two have one id."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl
from kframe_zookeeper import paths
from kframe_zookeeper.instances import read_instances
from kframe_zookeeper.store import ZooKeeperStore
from kframe_zookeeper.testing.commands import ControllerRun, kframe
from kframe_zookeeper.testing.process import until
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.znodes import (
    ListenerAddress,
    RegisteredInstance,
    decode_instance,
    encode_broker,
    encode_controller,
    encode_instance,
)

from kframe.errors import ConfigError, ZnodeError
from kframe.model.events import Event
from kframe.snapshot.instances import Instance
from kframe.testing.clusters import registration
from kframe.testing.store_world import ONE, small_cluster

OURS: Final = paths.instance_path(ONE)
#: Of sessions whose end a test waits for.
BRIEF_MS: Final = 1_000
Worlds = Callable[..., ZooKeeperWorld]


def elsewhere(controller_id: int = ONE) -> Instance:
    """An instance on another machine, of which this one cannot tell whether it lives."""
    return replace(Instance.of_this_process(controller_id), host="elsewhere", machine="another")


def ended(controller_id: int = ONE) -> Instance:
    """An instance on this machine whose process has ended."""
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    return replace(Instance.of_this_process(controller_id), pid=child.pid)


def enlisted(world: ZooKeeperWorld, instance: Instance, *, duplicate: bool = False, **settings: Any) -> ZooKeeperStore:
    """A store that shows an instance, open."""
    store = world.connect(**settings)
    store.enlist(instance, duplicate=duplicate)
    store.open(list[Event]().append)
    return store


def holder(world: ZooKeeperWorld) -> Instance:
    """The instance in the record."""
    return decode_instance(str(ONE), world.operator.get(OURS)[0]).instance


# -- whether a process lives


def test_a_process_tells_whether_another_lives() -> None:
    assert Instance.of_this_process(1).is_alive() is True
    assert elsewhere().is_alive() is None
    assert replace(elsewhere(), machine="").is_alive() is None
    assert ended().is_alive() is False


def test_another_process_with_the_same_number_is_another() -> None:
    ours = Instance.of_this_process(1)
    assert replace(ours, birth=str(int(ours.birth) - 1)).is_alive() is False


def test_a_frozen_process_lives_and_a_zombie_does_not() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    code = f"from kframe.snapshot.instances import _birth; print(_birth({child.pid}))"
    birth = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    instance = replace(Instance.of_this_process(1), pid=child.pid, birth=birth)
    child.send_signal(signal.SIGSTOP)
    assert instance.is_alive() is True
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert instance.is_alive() is False
    child.communicate()


# -- records


@pytest.mark.parametrize("listener", [None, ListenerAddress("::1", 40_000)])
def test_record_round_trip(listener: ListenerAddress | None) -> None:
    instance = replace(Instance.of_this_process(7), metrics="127.0.0.1:9108")
    registered = RegisteredInstance(instance, 6_000, listener)
    assert decode_instance("7", encode_instance(registered)) == registered


_RECORD: Final = b'{"version":1,"host":"h","pid":1,"started_ms":1,"session_timeout_ms":1,"token":"%s"'


@pytest.mark.parametrize(
    "data",
    [
        None, b"", b"[]", b'{"version":1}', b'{"version":1,"host":"h","pid":-1}',
        _RECORD % b"z" + b"}",
        _RECORD % (b"0" * 32) + b',"listener":{"host":"","port":1}}',
        _RECORD % (b"0" * 32) + b',"listener":{"host":"h","port":0}}',
    ],
)  # fmt: skip
def test_what_is_no_record_is_refused(data: bytes | None) -> None:
    with pytest.raises(ZnodeError, match=r"/kframe/instances/7"):
        decode_instance("7", data)


def test_the_record_lives_as_long_as_the_session(worlds: Worlds) -> None:
    world, instance = worlds(small_cluster()), Instance.of_this_process(ONE)
    store = enlisted(world, instance)
    assert holder(world) == instance
    assert store._connection is not None
    assert world.operator.get(OURS)[1].owner_session_id == store._connection.session.session_id
    store.enlist(replace(instance, metrics="h:1"))
    assert until(lambda: holder(world).metrics == "h:1")
    world.expire(store)
    assert until(lambda: holder(world).metrics == "h:1")
    assert world.operator.get(OURS)[1].owner_session_id == store._connection.session.session_id
    store.close()
    assert world.operator.exists(OURS) is None


def test_instances_are_listed_by_id(worlds: Worlds) -> None:
    world = worlds(small_cluster())
    stores = [enlisted(world, Instance.of_this_process(number)) for number in (1001, 1000)]
    world.operator.create(paths.instance_path(999), b"not JSON")
    connection = stores[0]._connection
    assert connection is not None
    assert [instance.controller_id for instance, _ in read_instances(connection.session)] == [1000, 1001]


# -- a second instance with the same id


def test_the_id_of_a_live_process_is_refused_at_once(worlds: Worlds) -> None:
    world, first = worlds(small_cluster()), Instance.of_this_process(ONE)
    enlisted(world, first)
    second = replace(first, token="2" * 32)
    with pytest.raises(ConfigError) as caught:
        enlisted(world, second)
    assert caught.value.where == "config key broker.id"
    assert caught.value.found == f"{ONE}, which is the id of the live instance on {first}"
    assert f"{first.host} pid {os.getpid()}, started 20" in str(caught.value)
    assert holder(world) == first


def test_a_duplicate_that_is_told_to_goes_on(worlds: Worlds, caplog: pytest.LogCaptureFixture) -> None:
    world, first = worlds(small_cluster()), Instance.of_this_process(ONE)
    enlisted(world, first)
    second = enlisted(world, replace(first, token="2" * 32), duplicate=True)
    assert second.connected()
    assert holder(world) == first
    assert f"id {ONE} is also the id of the live instance on {first}; told to go on" in caplog.text


def test_the_record_of_a_process_that_has_ended_is_replaced_at_once(worlds: Worlds) -> None:
    """Though its session lives on, and with it the role that it had."""
    world, first, second = worlds(small_cluster()), ended(), Instance.of_this_process(ONE)
    before = enlisted(world, first)
    before.claim(ONE)
    store = enlisted(world, second)
    assert holder(world) == second
    assert store.take_over(ONE) == 2


def test_an_instance_waits_for_the_session_of_one_that_may_have_ended(worlds: Worlds) -> None:
    world, second = worlds(small_cluster()), Instance.of_this_process(ONE)
    before = enlisted(world, elsewhere())
    waits = threading.Event()

    def close() -> None:
        waits.wait()
        before.close()

    end = threading.Thread(target=close)
    end.start()
    store = world.connect()
    store.enlist(second)
    appear = store._instance
    assert appear is not None
    original = appear._other

    def seen(*arguments: object) -> object:
        waits.set()
        return original(*arguments)  # type: ignore[arg-type]

    appear._other = seen  # type: ignore[method-assign,assignment]
    store.open(list[Event]().append)
    end.join()
    assert holder(world) == second


def test_an_instance_that_outlives_a_session_timeout_is_taken_for_live(
    worlds: Worlds, caplog: pytest.LogCaptureFixture
) -> None:
    world, first = worlds(small_cluster()), elsewhere()
    enlisted(world, first, session_timeout_ms=BRIEF_MS)
    with pytest.raises(ConfigError, match="elsewhere pid"):
        enlisted(world, Instance.of_this_process(ONE))
    assert "waiting up to 1.5 s in case it has ended" in caplog.text
    assert holder(world) == first


def test_a_controller_of_our_id_without_a_record_is_a_live_instance(worlds: Worlds) -> None:
    """As an instance of an older release."""
    world = worlds(small_cluster())
    world.operator.create(paths.CONTROLLER, encode_controller(ONE, 0), ephemeral=True)
    with pytest.raises(ConfigError, match="the present controller"):
        enlisted(world, Instance.of_this_process(ONE), session_timeout_ms=BRIEF_MS)


@pytest.mark.parametrize("data", [b"not JSON", None])
def test_a_record_that_cannot_be_read_counts_as_a_live_instance(worlds: Worlds, data: bytes | None) -> None:
    world = worlds(small_cluster())
    world.operator.create(OURS, data, ephemeral=True, makepath=True)
    with pytest.raises(ConfigError, match="cannot be read"):
        enlisted(world, Instance.of_this_process(ONE), session_timeout_ms=BRIEF_MS)


def test_records_that_may_not_be_written_are_no_reason_to_stop(
    worlds: Worlds, caplog: pytest.LogCaptureFixture
) -> None:
    world = worlds(small_cluster())
    world.operator.create("/kframe")
    world.operator.create(paths.INSTANCES, acl=[make_acl("world", "anyone", read=True)])
    store = enlisted(world, Instance.of_this_process(ONE))
    assert store.claim(ONE) == 1
    assert f"{OURS} cannot be written, so other instances do not see this one" in caplog.text


# -- a broker that registers under the id of a running instance


@pytest.mark.parametrize("duplicate", [False, True])
def test_broker_with_the_id_of_this_instance_is_left_out(
    worlds: Worlds, caplog: pytest.LogCaptureFixture, duplicate: bool
) -> None:
    world = worlds(small_cluster())
    store = enlisted(world, Instance.of_this_process(70), duplicate=duplicate)
    assert store.claim(70) == 1
    path, broker = paths.broker_path(70), registration(70)
    world.operator.create(path, encode_broker(broker, 0), ephemeral=True)
    for _ in range(2):
        assert (70 in {broker.broker_id for broker in store.read_brokers()}) == duplicate
    assert (70 in store.load().brokers.registered_ids()) == duplicate
    errors = [entry.message for entry in caplog.records if entry.levelname == "ERROR"]
    assert len(errors) == (0 if duplicate else 1)
    for message in errors:
        address = f"{broker.endpoints[0].host}:{broker.endpoints[0].port}"
        for part in (f"{path} is left out", address, "id 70 is the id of this instance", "give it another id"):
            assert part in message
    assert (path in store.quarantined()) != duplicate
    world.operator.delete(path)
    store.read_brokers()
    assert store.quarantined() == {}


# -- the command

Start = Callable[..., ControllerRun]


def refused(address: str, number: int, *arguments: str) -> str:
    """What an instance says that refuses to start."""
    done = kframe("controller", "run", "--zookeeper", address, "--id", number, "--transport", "recording:", *arguments)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("arguments", [(), ("--takeover",), ("--insist",)], ids=" ".join)
def test_a_second_instance_of_one_id_does_not_start(
    start: Start, address: str, client: KazooClient, arguments: tuple[str, ...]
) -> None:
    """Nor does it take the role, however it is asked to."""
    first = start(1000)
    assert first.settle(), first.log
    said = refused(address, 1000, *arguments)
    pattern = r"error: option --id key broker\.id: found 1000, which is the id of the live instance on .+ pid (\d+), "
    match = re.match(pattern + r"started 20\S+, expected an id that no live instance has, or --allow-dup", said)
    assert match is not None, said
    assert int(match[1]) == first.pid
    assert client.get(paths.CONTROLLER_EPOCH)[0] == b"2"
    assert "Resigned" not in first.log


def test_a_second_instance_of_one_id_starts_if_told(start: Start, client: KazooClient) -> None:
    first = start(1000)
    assert first.settle(), first.log
    second = start(1000, "--allow-duplicate-id", "--takeover")
    assert second.settle(), second.log
    assert "id 1000 is also the id of the live instance on" in second.log
    assert client.get(paths.CONTROLLER_EPOCH)[0] == b"3"


@pytest.mark.parametrize("arguments", [(), ("--takeover",)], ids=" ".join)
def test_an_instance_that_was_killed_is_followed_by_its_successor(
    start: Start, client: KazooClient, arguments: tuple[str, ...]
) -> None:
    first = start(1000)
    assert first.settle(), first.log
    first.kill()
    second = start(1000, *arguments)
    assert until(lambda: f'"pid":{second.pid},'.encode() in client.get(OURS_OF_1000)[0])
    if arguments:
        assert second.settle(), second.log
    assert second.stop() == 0, second.log


OURS_OF_1000: Final = paths.instance_path(1000)


def test_the_id_of_a_registered_broker_is_refused(start: Start, address: str, client: KazooClient) -> None:
    (endpoint,) = json.loads(client.get("/brokers/ids/3")[0])["endpoints"]
    said = refused(address, 3)
    assert f"key broker.id: found 3, which is the id of the registered broker at {endpoint}" in said
    assert "expected an id that no broker has, or --allow-duplicate-id" in said
    told = start(3, "--allow-duplicate-id")
    assert told.settle(), told.log
    assert "id 3 is that of a registered broker" in told.log
