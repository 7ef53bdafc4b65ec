"""Invariants of the tree after a controller has replaced a dead one (``docs/reference/invariants.md``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import ZnodeStat
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.cluster import decode_controller_epoch
from kframe_zookeeper.znodes.topics import decode_state, decode_topic

#: The path of a partition's state.
STATE_PATH: Final = re.compile(r"/brokers/topics/[^/]+/partitions/[0-9]+/state")
#: Parents that are empty after all requests have completed.
_TRANSIENT: Final = (paths.DELETE_TOPICS, paths.ISR_CHANGES, paths.LOG_DIR_EVENTS)
_REQUEST_NODES: Final = (paths.REASSIGN_PARTITIONS, paths.PREFERRED_ELECTION)


class StoredNode(NamedTuple):
    """A node."""

    data: bytes
    stat: ZnodeStat


Tree = Mapping[str, StoredNode]


def read_tree(client: KazooClient) -> Tree:
    """All nodes below the chroot by path. Nodes that vanish meanwhile are left out."""
    tree: dict[str, StoredNode] = {}
    level = [""]
    while level:
        pending = [(path, client.get_async(path or "/"), client.get_children_async(path or "/")) for path in level]
        level = []
        for path, node, children in pending:
            try:
                tree[path], names = StoredNode(*node.get()), children.get()
            except NoNodeError:
                tree.pop(path, None)
                continue
            level += [f"{path}/{name}" for name in sorted(names)]
    return tree


def children(tree: Tree, parent: str) -> list[str]:
    """Names of the children of a node."""
    return [path.rpartition("/")[2] for path in tree if path.rpartition("/")[0] == parent]


def changes(before: Tree, after: Tree) -> list[str]:
    """Paths of created, deleted and changed nodes."""
    return sorted(
        path
        for path in before.keys() | after.keys()
        if path not in before or path not in after or before[path].stat.mzxid != after[path].stat.mzxid
    )


def live_brokers(tree: Tree) -> set[int]:
    """The registered brokers."""
    return {int(name) for name in children(tree, paths.BROKER_IDS)}


def faults(before: Tree, after: Tree) -> list[str]:
    """The faults of ``after``, one line each. A new controller has changed ``before`` into it.

    Every partition has a valid state. Ids and epochs never decrease or change. No request of an operator or
    notification of a broker is left. States written since the election have its controller epoch.
    """
    return [*_left_over(after), *_illegal(after), *_lost(before, after), *_unfenced(after)]


def _left_over(tree: Tree) -> Iterator[str]:
    yield from (f"{path} is left" for path in _REQUEST_NODES if path in tree)
    yield from (f"{parent}/{name} is left" for parent in _TRANSIENT for name in children(tree, parent))
    deleted_topics = set(children(tree, paths.config_path("topics", "").rstrip("/"))) - set(
        children(tree, paths.TOPICS)
    )
    yield from (f"settings of the deleted topic {name} are left" for name in sorted(deleted_topics))


def _illegal(tree: Tree) -> Iterator[str]:
    live = live_brokers(tree)
    for name in children(tree, paths.TOPICS):
        topic = decode_topic(name, tree[paths.topic_path(name)].data)
        if topic.topic_id is None:
            yield f"{name} has no id"
        if any(topic.adding.values()) or any(topic.removing.values()):
            yield f"{name} is still being reassigned"
        numbers = {str(number) for number in range(len(topic.replicas))}
        if set(children(tree, paths.partitions_path(name))) != numbers:
            yield f"{name} has not the partitions {sorted(numbers)}"
        for number, replicas in enumerate(topic.replicas):
            yield from (f"{name}-{number} {fault}" for fault in _illegal_state(tree, name, number, replicas, live))


def _illegal_state(tree: Tree, topic: str, number: int, replicas: list[int], live: set[int]) -> Iterator[str]:
    path = paths.state_path(topic, number)
    if path not in tree:
        yield "has no state"
        return
    state = decode_state(tree[path].data, path)
    isr = set(state.isr)
    if not isr or len(isr) < len(state.isr) or not isr <= set(replicas):
        yield f"has the ISR {state.isr} of the replicas {replicas}"
    if state.leader == -1 and isr & live:
        yield f"has no leader, though of its ISR {sorted(isr & live)} live"
    if state.leader != -1 and state.leader not in isr & live:
        yield f"is led by {state.leader}, of the ISR {state.isr}, live {sorted(live)}"


def _lost(before: Tree, after: Tree) -> Iterator[str]:
    """Values that must not decrease or change. They are topic ids, partition counts, epochs and versions."""
    for name in set(children(before, paths.TOPICS)) & set(children(after, paths.TOPICS)):
        old, new = (decode_topic(name, tree[paths.topic_path(name)].data) for tree in (before, after))
        if old.topic_id not in (None, new.topic_id):
            yield f"{name} has another id"
        if len(new.replicas) < len(old.replicas):
            yield f"{name} has lost partitions"
        for number in range(len(old.replicas)):
            path = paths.state_path(name, number)
            if path in before and path in after and any(map(int.__gt__, _epochs(before, path), _epochs(after, path))):
                yield f"{name}-{number} has gone back from {_epochs(before, path)} to {_epochs(after, path)}"


def _epochs(tree: Tree, path: str) -> tuple[int, int, int]:
    """Leader epoch, controller epoch, version."""
    state = decode_state(tree[path].data, path)
    return state.leader_epoch, state.controller_epoch, tree[path].stat.version


def _unfenced(tree: Tree) -> Iterator[str]:
    """States with a controller epoch other than that of the controller at the time of the write."""
    record = tree[paths.CONTROLLER_EPOCH]
    now = decode_controller_epoch(record.data)
    for path, node in tree.items():
        if STATE_PATH.fullmatch(path):
            epoch, since = decode_state(node.data, path).controller_epoch, node.stat.mzxid > record.stat.mzxid
            if epoch > now or since != (epoch == now):
                yield f"{path} bears epoch {epoch}, written {'after' if since else 'before'} the election of {now}"
