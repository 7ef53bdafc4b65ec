"""Load dumps of ZooKeeper trees (the format ``zookeeper`` of ``kframe.snapshot``) into a real server."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Final

from kframe_zookeeper.testing.sessions import session

#: Operations in one transaction.
_TOGETHER: Final = 500


def load_dump(hosts: str, path: Path) -> None:
    """Create the nodes of a gzipped dump below the chroot of ``hosts``, each at its version, except ``/controller``.

    Ephemeral nodes become persistent. In the dump, parents precede their children.
    """
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        nodes = sorted((json.loads(line) for line in lines), key=lambda node: str(node["path"]))
    operations: list[tuple[str, Any]] = []
    for node in nodes:
        name, data = node["path"], (node["data"] or "").encode()
        if name in ("/", "/controller") or name.startswith("/zookeeper"):
            continue
        operations.append(("create", (name, data)))
        operations += [("set_data", (name, data))] * node["version"]
    address, _, chroot = hosts.partition("/")
    with session(address) as client:
        client.ensure_path(f"/{chroot}")
    with session(hosts) as client:
        for first in range(0, len(operations), _TOGETHER):
            transaction = client.transaction()
            for kind, arguments in operations[first : first + _TOGETHER]:
                getattr(transaction, kind)(*arguments)
            for result in transaction.commit():
                if isinstance(result, Exception):
                    raise result
