"""Records below ``/kframe/instances``, and instances or brokers with the same id."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from typing import Any, Final

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl
from kframe_zookeeper.live.cluster import ZooKeeperCluster
from kframe_zookeeper.role.instances import read_instances
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture
from kframe_zookeeper.store.store import ZooKeeperStore
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.brokers import encode_broker
from kframe_zookeeper.znodes.cluster import encode_controller
from kframe_zookeeper.znodes.instances import ListenerAddress, RegisteredInstance, decode_instance, encode_instance

from kframe.errors import ConfigError, ZnodeError
from kframe.model.events import Event
from kframe.plugin.store import Claim, Load, ReadBrokers
from kframe.snapshot.instances import Instance
from kframe.testing.clusters import registration
from kframe.testing.store_fixture import FIRST_ID, small_cluster
from kframe.testing.waiting import until
from verification.zookeeper.commands import Start, kframe
from verification.zookeeper.sessions import FixtureFactory

RECORD_PATH: Final = paths.instance_path(FIRST_ID)
#: Timeout of sessions that tests let expire.
BRIEF_MS: Final = 1_000


def on_other_machine(controller_id: int = FIRST_ID) -> Instance:
    """An instance on another machine, whose process this machine cannot check."""
    return replace(Instance.of_this_process(controller_id), host="elsewhere", machine="another")


def ended(controller_id: int = FIRST_ID) -> Instance:
    """An instance on this machine whose process has ended."""
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    return replace(Instance.of_this_process(controller_id), pid=child.pid)


def registered_store(
    fixture: ZooKeeperFixture, instance: Instance, *, duplicate: bool = False, **settings: Any
) -> ZooKeeperStore:
    """An open store that has registered its instance."""
    store = fixture.connect(**settings)
    store.register_instance(instance, duplicate=duplicate)
    store.open(list[Event]().append)
    return store


def holder(fixture: ZooKeeperFixture) -> Instance:
    """The instance in the record."""
    return decode_instance(str(FIRST_ID), fixture.operator.get(RECORD_PATH)[0]).instance


# -- whether a process lives


def test_process_liveness() -> None:
    assert Instance.of_this_process(1).is_alive() is True
    assert on_other_machine().is_alive() is None
    assert replace(on_other_machine(), machine="").is_alive() is None
    assert ended().is_alive() is False


def test_reused_pid_is_another_process() -> None:
    ours = Instance.of_this_process(1)
    assert replace(ours, birth=str(int(ours.birth) - 1)).is_alive() is False


def test_stopped_process_is_alive_and_zombie_is_not() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    code = f"from kframe.snapshot.instances import _process_start; print(_process_start({child.pid}))"
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
        None,
        b"",
        b"[]",
        b'{"version":1}',
        b'{"version":1,"host":"h","pid":-1}',
        _RECORD % b"z" + b"}",
        _RECORD % (b"0" * 32) + b',"listener":{"host":"","port":1}}',
        _RECORD % (b"0" * 32) + b',"listener":{"host":"h","port":0}}',
    ],
)
def test_malformed_records_are_refused(data: bytes | None) -> None:
    with pytest.raises(ZnodeError, match=r"/kframe/instances/7"):
        decode_instance("7", data)


def test_record_is_ephemeral(make_fixture: FixtureFactory) -> None:
    fixture, instance = make_fixture(small_cluster()), Instance.of_this_process(FIRST_ID)
    store = registered_store(fixture, instance)
    assert holder(fixture) == instance
    assert store._connection is not None
    assert fixture.operator.get(RECORD_PATH)[1].owner_session_id == store._connection.session.session_id
    store.register_instance(replace(instance, metrics="h:1"))
    assert until(lambda: holder(fixture).metrics == "h:1")
    fixture.expire(store)
    assert until(lambda: holder(fixture).metrics == "h:1")
    assert fixture.operator.get(RECORD_PATH)[1].owner_session_id == store._connection.session.session_id
    store.close()
    assert fixture.operator.exists(RECORD_PATH) is None


def test_instances_are_listed_by_id(make_fixture: FixtureFactory) -> None:
    fixture = make_fixture(small_cluster())
    stores = [registered_store(fixture, Instance.of_this_process(number)) for number in (1001, 1000)]
    fixture.operator.create(paths.instance_path(999), b"not JSON")
    connection = stores[0]._connection
    assert connection is not None
    assert [instance.controller_id for instance, _ in read_instances(connection.session)] == [1000, 1001]


def test_capture_marks_instances_but_no_broker_with_the_same_id(make_fixture: FixtureFactory) -> None:
    fixture = make_fixture(small_cluster())
    for number in (1001, 1, 1000):
        registered_store(fixture, Instance.of_this_process(number))
    fixture.operator.create(f"{paths.INSTANCES}/x", b"")
    snapshot = ZooKeeperCluster(fixture.settings()).capture()
    assert snapshot.controllers == (1000, 1001)
    assert 1 in [broker.broker_id for broker in snapshot.brokers if broker.registered]


# -- a second instance with the same id


def test_id_of_a_live_process_is_refused_at_once(make_fixture: FixtureFactory) -> None:
    fixture, first = make_fixture(small_cluster()), Instance.of_this_process(FIRST_ID)
    registered_store(fixture, first)
    second = replace(first, token="2" * 32)
    with pytest.raises(ConfigError) as caught:
        registered_store(fixture, second)
    assert caught.value.where == "config key broker.id"
    assert caught.value.actual == f"{FIRST_ID}, which is the id of the live instance on {first}"
    assert f"{first.host} pid {os.getpid()}, started 20" in str(caught.value)
    assert holder(fixture) == first


def test_allowed_duplicate_starts(make_fixture: FixtureFactory, caplog: pytest.LogCaptureFixture) -> None:
    fixture, first = make_fixture(small_cluster()), Instance.of_this_process(FIRST_ID)
    registered_store(fixture, first)
    second = registered_store(fixture, replace(first, token="2" * 32), duplicate=True)
    assert second.connected()
    assert holder(fixture) == first
    assert f"id {FIRST_ID} is also the id of the live instance on {first}; duplicate ids are allowed" in caplog.text


def test_record_of_an_ended_process_is_replaced_at_once(make_fixture: FixtureFactory) -> None:
    """Its session still lives, and with it the role."""
    fixture, first, second = make_fixture(small_cluster()), ended(), Instance.of_this_process(FIRST_ID)
    before = registered_store(fixture, first)
    before.perform(Claim(FIRST_ID))
    store = registered_store(fixture, second)
    assert holder(fixture) == second
    assert store.perform(Claim(FIRST_ID, takeover=True)) == 2


def test_instance_waits_for_the_session_of_a_remote_predecessor(make_fixture: FixtureFactory) -> None:
    fixture, second = make_fixture(small_cluster()), Instance.of_this_process(FIRST_ID)
    before = registered_store(fixture, on_other_machine())
    waits = threading.Event()

    def close() -> None:
        waits.wait()
        before.close()

    end = threading.Thread(target=close)
    end.start()
    store = fixture.connect()
    store.register_instance(second)
    appear = store._instance
    assert appear is not None
    original = appear._other

    def other(*arguments: object) -> object:
        waits.set()
        return original(*arguments)  # type: ignore[arg-type]

    appear._other = other  # type: ignore[method-assign,assignment]
    store.open(list[Event]().append)
    end.join()
    assert holder(fixture) == second


def test_remote_instance_that_outlives_its_session_timeout_is_live(
    make_fixture: FixtureFactory, caplog: pytest.LogCaptureFixture
) -> None:
    fixture, first = make_fixture(small_cluster()), on_other_machine()
    registered_store(fixture, first, session_timeout_ms=BRIEF_MS)
    with pytest.raises(ConfigError, match="elsewhere pid"):
        registered_store(fixture, Instance.of_this_process(FIRST_ID))
    assert "waiting up to 1.5 s for its session to expire" in caplog.text
    assert holder(fixture) == first


def test_controller_with_our_id_and_no_record_is_a_live_instance(make_fixture: FixtureFactory) -> None:
    """Older releases register no instance."""
    fixture = make_fixture(small_cluster())
    fixture.operator.create(paths.CONTROLLER, encode_controller(FIRST_ID, 0), ephemeral=True)
    with pytest.raises(ConfigError, match="the present controller"):
        registered_store(fixture, Instance.of_this_process(FIRST_ID), session_timeout_ms=BRIEF_MS)


@pytest.mark.parametrize("data", [b"not JSON", None])
def test_malformed_record_counts_as_a_live_instance(make_fixture: FixtureFactory, data: bytes | None) -> None:
    fixture = make_fixture(small_cluster())
    fixture.operator.create(RECORD_PATH, data, ephemeral=True, makepath=True)
    with pytest.raises(ConfigError, match="cannot be read"):
        registered_store(fixture, Instance.of_this_process(FIRST_ID), session_timeout_ms=BRIEF_MS)


def test_instance_starts_without_write_access_to_records(
    make_fixture: FixtureFactory, caplog: pytest.LogCaptureFixture
) -> None:
    fixture = make_fixture(small_cluster())
    fixture.operator.create("/kframe")
    fixture.operator.create(paths.INSTANCES, acl=[make_acl("world", "anyone", read=True)])
    store = registered_store(fixture, Instance.of_this_process(FIRST_ID))
    assert store.perform(Claim(FIRST_ID)) == 1
    assert f"{RECORD_PATH} cannot be written, so other instances do not see this one" in caplog.text


# -- a broker that registers under the id of a running instance


@pytest.mark.parametrize("duplicate", [False, True])
def test_broker_with_the_id_of_this_instance_is_left_out(
    make_fixture: FixtureFactory, caplog: pytest.LogCaptureFixture, duplicate: bool
) -> None:
    fixture = make_fixture(small_cluster())
    store = registered_store(fixture, Instance.of_this_process(70), duplicate=duplicate)
    assert store.perform(Claim(70)) == 1
    path, broker = paths.broker_path(70), registration(70)
    fixture.operator.create(path, encode_broker(broker, 0), ephemeral=True)
    for _ in range(2):
        assert (70 in {broker.broker_id for broker in store.perform(ReadBrokers())}) == duplicate
    assert (70 in store.perform(Load()).brokers.registered_ids()) == duplicate
    errors = [entry.message for entry in caplog.records if entry.levelname == "ERROR"]
    assert len(errors) == (0 if duplicate else 1)
    for message in errors:
        address = f"{broker.endpoints[0].host}:{broker.endpoints[0].port}"
        for part in (f"{path} is left out", address, "id 70 is the id of this instance", "give it another id"):
            assert part in message
    assert (path in store.quarantined()) != duplicate
    fixture.operator.delete(path)
    store.perform(ReadBrokers())
    assert store.quarantined() == {}


# -- the command


def refused(address: str, number: int, *arguments: str) -> str:
    """The error of an instance that refuses to start."""
    done = kframe("controller", "run", "--zookeeper", address, "--id", number, "--transport", "recording:", *arguments)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("arguments", [(), ("--takeover",), ("--insist",)], ids=" ".join)
def test_second_instance_with_the_same_id_does_not_start(
    start: Start, address: str, client: KazooClient, arguments: tuple[str, ...]
) -> None:
    """It does not take the role either, whatever its arguments are."""
    first = start(1000)
    assert first.settle(), first.log
    error = refused(address, 1000, *arguments)
    pattern = r"error: option --id key broker\.id: found 1000, which is the id of the live instance on .+ pid (\d+), "
    match = re.match(pattern + r"started 20\S+, expected an id that no live instance has, or --allow-dup", error)
    assert match is not None, error
    assert int(match[1]) == first.pid
    assert client.get(paths.CONTROLLER_EPOCH)[0] == b"2"
    assert "Resigned" not in first.log


def test_second_instance_starts_with_allow_duplicate_id(start: Start, client: KazooClient) -> None:
    first = start(1000)
    assert first.settle(), first.log
    second = start(1000, "--allow-duplicate-id", "--takeover")
    assert second.settle(), second.log
    assert "id 1000 is also the id of the live instance on" in second.log
    assert client.get(paths.CONTROLLER_EPOCH)[0] == b"3"


@pytest.mark.parametrize("arguments", [(), ("--takeover",)], ids=" ".join)
def test_successor_of_a_killed_instance_starts(start: Start, client: KazooClient, arguments: tuple[str, ...]) -> None:
    first = start(1000)
    assert first.settle(), first.log
    first.kill()
    second = start(1000, *arguments)
    assert until(lambda: f'"pid":{second.pid},'.encode() in client.get(RECORD_PATH_OF_1000)[0])
    if arguments:
        assert second.settle(), second.log
    assert second.stop() == 0, second.log


RECORD_PATH_OF_1000: Final = paths.instance_path(1000)


def test_id_of_a_registered_broker_is_refused(start: Start, address: str, client: KazooClient) -> None:
    (endpoint,) = json.loads(client.get("/brokers/ids/3")[0])["endpoints"]
    error = refused(address, 3)
    assert f"key broker.id: found 3, which is the id of the registered broker at {endpoint}" in error
    assert "expected an id that no broker has, or --allow-duplicate-id" in error
    permitted = start(3, "--allow-duplicate-id")
    assert permitted.settle(), permitted.log
    assert "id 3 is that of a registered broker" in permitted.log
