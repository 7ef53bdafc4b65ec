"""Every command and the store refuse a chroot that does not exist or holds no cluster."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from kazoo.client import KazooClient
from kframe_zookeeper.loading.chroot import MARKS
from kframe_zookeeper.session.settings import settings_of_url
from kframe_zookeeper.store.store import ZooKeeperStore, open_store
from kframe_zookeeper.znodes import paths

from kframe.errors import ConfigError
from kframe.testing.waiting import until
from verification.zookeeper.commands import ControllerRun, invoke
from verification.zookeeper.servers import ServerHandle
from verification.zookeeper.sessions import session

_numbers = itertools.count()
#: Every command that connects to a cluster, without the connect string.
COMMANDS: Final = {
    "run": ("controller", "run", "--id", "1000", "--transport", "recording:", "--zookeeper"),
    "shadow": ("controller", "shadow", "--for", "0", "--zookeeper"),
    "status": ("controller", "status", "--zookeeper"),
    "resign": ("controller", "resign", "--zookeeper"),
}


@pytest.fixture
def root(zookeeper: ServerHandle) -> Iterator[KazooClient]:
    with session(zookeeper.address) as client:
        yield client


@pytest.fixture
def parent(root: KazooClient) -> str:
    """A node with a cluster in its child ``kafka``, and a child ``other`` without one."""
    path = f"/parent-{next(_numbers)}-{time.time_ns()}"
    for name in (paths.BROKER_IDS, paths.TOPICS):
        root.ensure_path(f"{path}/kafka{name}")
    root.ensure_path(f"{path}/other/something")
    return path


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_missing_chroot_is_refused(
    command: tuple[str, ...], zookeeper: ServerHandle, root: KazooClient, parent: str
) -> None:
    done = invoke(*command, f"{zookeeper.address}{parent}/kafak")
    assert (done.returncode, done.stdout) == (2, "")
    # Other tests leave clusters at the root of the same server.
    assert re.sub(rf"{parent}/kafka or .+\?\)", f"{parent}/kafka?)", done.stderr) == (
        f"error: option --zookeeper key zookeeper.connect: found {zookeeper.address}{parent}/kafak, where the chroot "
        f"{parent}/kafak does not exist, expected the chroot of a Kafka cluster (did you mean {parent}/kafka?); for a "
        "cluster whose brokers have not started yet, controller run --create-chroot creates it\n"
    )
    assert sorted(root.get_children(parent)) == ["kafka", "other"]


def test_capture_refuses_a_missing_chroot(zookeeper: ServerHandle, parent: str, tmp_path: Path) -> None:
    done = invoke("snapshot", "capture", f"zookeeper://{zookeeper.address}{parent}/kafka/", tmp_path / "whole")
    assert done.returncode == 0, done.stderr
    done = invoke("snapshot", "capture", f"zookeeper://{zookeeper.address}{parent}/kafak", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"the chroot {parent}/kafak does not exist" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_chroot_without_a_cluster_is_refused(
    command: tuple[str, ...], zookeeper: ServerHandle, root: KazooClient, parent: str
) -> None:
    done = invoke(*command, f"{zookeeper.address}{parent}/other")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{parent}/other holds no cluster: there is none of {', '.join(MARKS)}" in done.stderr
    assert f"did you mean {parent}/kafka" in done.stderr
    assert root.get_children(f"{parent}/other") == ["something"]


def test_error_names_clusters_below_the_root(zookeeper: ServerHandle, parent: str) -> None:
    """The connect string has no chroot."""
    done = invoke("controller", "status", "--zookeeper", f"{zookeeper.address}{parent}")
    assert done.returncode == 2
    with pytest.raises(ConfigError, match="holds no cluster"):
        open_store(f"zookeeper://{zookeeper.address}{parent}").open(lambda event: None)


@pytest.mark.parametrize("mark", MARKS)
def test_chroot_with_any_znode_of_a_cluster_is_accepted(
    mark: str, zookeeper: ServerHandle, root: KazooClient, parent: str
) -> None:
    root.ensure_path(f"{parent}/young{mark}")
    store = open_store(f"zookeeper://{zookeeper.address}{parent}/young")
    store.open(lambda event: None)
    store.close()


def test_store_creates_the_chroot_only_with_create_chroot(
    zookeeper: ServerHandle, root: KazooClient, parent: str
) -> None:
    url = f"zookeeper://{zookeeper.address}{parent}/deeper/new"
    with pytest.raises(ConfigError, match="does not exist"):
        open_store(url).open(lambda event: None)
    with pytest.raises(ConfigError, match="does not exist"):
        ZooKeeperStore(settings_of_url(f"{url}?kframe.create.chroot=true"), creates=False).open(lambda event: None)
    assert root.exists(f"{parent}/deeper") is None
    creating, reopened = open_store(f"{url}?kframe.create.chroot=true"), open_store(url)
    for store in (creating, reopened):
        store.open(lambda event: None)
    assert root.exists(f"{parent}/deeper/new{paths.BROKER_IDS}")
    creating.close()
    reopened.close()


def test_new_session_does_not_check_the_chroot_again(zookeeper: ServerHandle, root: KazooClient, parent: str) -> None:
    """Only ``open`` checks the chroot; a later session is retried."""
    store = open_store(f"zookeeper://{zookeeper.address}{parent}/kafka")
    store.open(lambda event: None)
    before = store._connection
    assert before is not None
    store._put(lambda: store._expire(before))
    assert until(lambda: store._connection is not before)
    store.close()


def test_create_chroot_is_needed_at_the_first_start_only(
    zookeeper: ServerHandle, root: KazooClient, parent: str, tmp_path: Path
) -> None:
    connect_string = f"{zookeeper.address}{parent}/fresh"
    for number, arguments in enumerate((["--create-chroot"], [])):
        run = ControllerRun(1000, connect_string, tmp_path / f"run-{number}", *arguments, timeout_ms=6_000)
        run.start()
        try:
            assert run.settle(), run.log
            assert run.stop() == 0
        finally:
            run.kill()
    assert root.get(f"{parent}/fresh{paths.CONTROLLER_EPOCH}")[0] == b"2"
