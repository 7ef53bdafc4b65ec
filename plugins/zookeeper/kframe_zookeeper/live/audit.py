"""An audit of the ACLs of the znodes that a controller writes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.security import ACL, Permissions

from kframe_zookeeper.znodes.acls import is_below
from kframe_zookeeper.znodes.paths import (
    CONSUMERS,
    INSTANCES,
    KFRAME,
    PERSISTENT,
    PREFERRED_ELECTION,
    REASSIGN_PARTITIONS,
    SECURED,
    SENSITIVE,
    TOPICS,
    config_path,
    state_path,
    topic_path,
)

_log = logging.getLogger("kframe.zookeeper")

_CHANGE: Final = Permissions.ALL & ~Permissions.READ
#: Topics that the audit covers; each costs three small requests.
TOPICS_MAX: Final = 1_000
#: Operators create these nodes, and controllers write them.
_REQUEST_NODES: Final = (REASSIGN_PARTITIONS, PREFERRED_ELECTION)


@dataclass(frozen=True, slots=True)
class Exposed:
    """A node that any client may change, or read although it holds secrets."""

    path: str
    changeable: bool


def find_exposed(acls: Mapping[str, Iterable[ACL]]) -> tuple[Exposed, ...]:
    """Which of these nodes are open to the world."""
    exposed = []
    for path, acl in sorted(acls.items()):
        permissions = 0
        for entry in acl:
            permissions |= entry.perms if entry.id.scheme == "world" else 0
        if permissions & _CHANGE or (
            permissions & Permissions.READ and any(is_below(path, root) for root in SENSITIVE)
        ):
            exposed.append(Exposed(path, bool(permissions & _CHANGE)))
    return tuple(exposed)


def audit(client: KazooClient) -> tuple[Exposed, ...]:
    """Return the nodes written by a controller that are open to the world. Log them in one warning.

    The audit covers the chroot, whose ACL governs the deletion of ``/controller``, every root, ``/kframe`` with the
    records of instances, and the nodes of up to TOPICS_MAX topics. ZooKeeper does not inherit ACLs, so topics are
    checked even below a closed root. ``/consumers`` is open by design. Nodes that do not exist or refuse the read are
    skipped. Raises what kazoo raises when the connection fails.
    """
    roots = {"/", *SECURED, *SENSITIVE, *PERSISTENT, *_REQUEST_NODES, KFRAME, INSTANCES} - {CONSUMERS}
    acls = _read_acls(client, sorted(roots))
    acls |= _read_acls(client, [f"{INSTANCES}/{name}" for name in _children(client, INSTANCES)])
    exposed = find_exposed(acls)
    if TOPICS in acls and all(node.path != TOPICS for node in exposed):
        topic_acls = _read_acls(client, _topic_paths(client))
        acls |= topic_acls
        exposed += find_exposed(topic_acls)
    if exposed:
        changeable = sum(node.changeable for node in exposed)
        examples = ", ".join(node.path for node in exposed[:5]) + (", ..." if len(exposed) > 5 else "")
        _log.warning(
            "any ZooKeeper client may change %d of %d checked znodes and read %d that contain secrets (%s); "
            "set zookeeper.set.acl=true and run Kafka's zookeeper-security-migration%s",
            changeable,
            len(acls),
            len(exposed) - changeable,
            examples,
            ", and zkCli's setAcl -R on /kframe" if any(is_below(node.path, KFRAME) for node in exposed) else "",
        )
    return exposed


def _read_acls(client: KazooClient, nodes: Iterable[str]) -> dict[str, list[ACL]]:
    results = [(path, client.get_acls_async(path)) for path in nodes]
    acls = {}
    for path, result in results:
        with suppress(NoNodeError, NoAuthError):
            acls[path], _ = result.get()
    return acls


def _children(client: KazooClient, path: str) -> list[str]:
    try:
        return sorted(client.get_children(path))
    except (NoNodeError, NoAuthError):
        return []


def _topic_paths(client: KazooClient) -> Iterator[str]:
    """The nodes of up to TOPICS_MAX topics, spread over all; the state of partition 0 represents all partitions."""
    names = _children(client, TOPICS)
    for name in names[:: -(-len(names) // TOPICS_MAX) or 1]:
        yield from (topic_path(name), state_path(name, 0), config_path("topics", name))
