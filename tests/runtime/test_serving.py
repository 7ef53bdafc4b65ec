"""Servers. The tests check the configuration that they receive, and when they start and stop."""

from __future__ import annotations

from typing import Any

import pytest

import kframe
from kframe.errors import ConfigError, PluginError
from kframe.model.config import ControllerConfig
from kframe.plugin import ServerSpec, TransportSpec, hookimpl


class Recorder:
    """Servers and a transport that record their calls."""

    def __init__(self, broken: bool = False) -> None:
        self.calls: list[Any] = []
        self.connected: list[bool] = []
        """Whether the store was connected at each start and stop."""
        self.broken = broken

    def make(self, url: str, config: dict[str, str]) -> Any:
        self.calls.append((url, config))
        return RecordedServer(self, url)

    @hookimpl
    def kframe_servers(self) -> list[ServerSpec]:
        return [ServerSpec("door", self.make, "A door.")]

    @hookimpl
    def kframe_transports(self) -> list[TransportSpec]:
        return [TransportSpec("post", self.make, "A letter box.")]

    def builder(self, *servers: str, **options: Any) -> kframe.ControllerBuilder:
        registry = kframe.build_registry(extra=[self], allowed=())
        return kframe.ControllerBuilder(7, "memory:", "recording:", servers=servers, registry=registry, **options)


class RecordedServer:
    def __init__(self, recorder: Recorder, url: str) -> None:
        self.recorder, self.url, self.addresses = recorder, url, dict[str, str]()
        self.controller: kframe.Controller | None = None

    def start(self, controller: kframe.Controller) -> None:
        self.controller = controller
        self.recorder.connected.append(controller.store.connected())
        self.recorder.calls.append(("start", self.url, controller.status().active))
        if self.recorder.broken and self.url == "door:2":
            raise ConfigError("config key listeners", "a port in use", "a free one")

    def stop(self) -> None:
        assert self.controller is not None
        self.recorder.connected.append(self.controller.store.connected())
        self.recorder.calls.append(("stop", self.url))


@pytest.mark.parametrize("wrap", [dict, ControllerConfig])
def test_transport_and_servers_by_url_receive_all_settings(wrap: Any) -> None:
    recorder = Recorder()
    builder = recorder.builder(
        "door:1",
        settings={"broker.rack": "a", "num.partitions": "2", "broker.id": "9"},
        config=wrap({"num.partitions": 3, "delete.topic.enable": True}),
    )
    builder.transport = "post:x"
    builder.build()
    settings = {"broker.rack": "a", "num.partitions": "3", "delete.topic.enable": "True", "broker.id": "7"}
    assert recorder.calls == [("post:x", settings), ("door:1", settings)]


def test_servers_start_before_the_controller_is_active_and_stop_after_it() -> None:
    recorder = Recorder()
    controller = recorder.builder("door:1", "door:2").build()
    assert [server.addresses for server in controller.servers] == [{}, {}]
    recorder.calls.clear()
    controller.open()
    controller.run_until_idle()
    assert controller.status().active
    controller.stop()
    assert recorder.calls == [
        ("start", "door:1", False),
        ("start", "door:2", False),
        ("stop", "door:1"),
        ("stop", "door:2"),
    ]


def test_store_is_open_during_server_lifetime() -> None:
    recorder = Recorder()
    controller = recorder.builder("door:1", "door:2").build()
    with controller:
        pass
    assert recorder.connected == [True] * 4
    assert not controller.store.connected()


def test_failed_server_start_closes_everything() -> None:
    recorder = Recorder(broken=True)
    controller = recorder.builder("door:1", "door:2", "door:3").build()
    recorder.calls.clear()
    with pytest.raises(ConfigError, match="a port in use"):
        controller.open()
    assert recorder.calls == [("start", "door:1", False), ("start", "door:2", False), ("stop", "door:1")]
    assert not controller.store.connected()


def test_unknown_server_scheme_is_refused() -> None:
    with pytest.raises(PluginError, match="no server for the URL scheme 'window'; there are: door"):
        Recorder().builder("window:").build()
