"""An example of a transport: it writes every request as a line of JSON, for a log, a pipe or another process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from kframe.plugin import TransportSpec, hookimpl
from kframe.plugin.cluster import ClusterState
from kframe.plugin.memory import describe_requests
from kframe.plugin.transport import BrokerQueue, ControlRequests, MayAct, Notify


class JsonLinesTransport:
    """Implements ``kframe.ports.transport.Transport``: writes the requests to connected brokers. No broker responds."""

    def __init__(self, path: str | Path) -> None:
        """Append to the file at ``path``."""
        self._path = path
        self._lines: TextIO | None = None
        self._connected: set[int] = set()

    def open(self, notify: Notify, may_act: MayAct) -> None:
        """Open the file.

        A transport whose brokers respond passes each response to ``notify``. A transport with queues calls ``may_act``
        before it sends a request, and drops the request if the result is False.
        """
        self._lines = Path(self._path).open("a", encoding="utf-8")  # noqa: SIM115  # close closes it

    def close(self) -> None:
        """Drop every connection. The controller may open the transport again after it has resigned."""
        self._connected.clear()
        if self._lines is not None:
            self._lines.close()
            self._lines = None

    def connect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """Send to these brokers from now on. ``brokers`` are indexes; the ids stay valid longer than the columns."""
        self._connected.update(cluster.brokers.ids_of(brokers))

    def disconnect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """Stop sending to these brokers."""
        self._connected.difference_update(cluster.brokers.ids_of(brokers))

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        """Write a batch. The columns may change as soon as this returns."""
        if self._lines is None:
            return
        for request in describe_requests(cluster, requests):
            if request["broker"] in self._connected:
                self._lines.write(json.dumps(request) + "\n")
        self._lines.flush()

    def queues(self) -> Mapping[int, BrokerQueue]:
        """Return no queues. A transport with queues returns their sizes, for metrics."""
        return {}


@hookimpl
def kframe_transports() -> list[TransportSpec]:
    """Register the transport for URLs such as ``jsonl:requests.jsonl``."""
    return [TransportSpec("jsonl", _make, "Appends each request to a file, as a line of JSON.")]


def _make(url: str, config: Mapping[str, str]) -> JsonLinesTransport:
    return JsonLinesTransport(url.partition(":")[2])
