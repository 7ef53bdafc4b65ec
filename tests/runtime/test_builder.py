"""The builder creates a controller from its arguments. It rejects invalid ones before anything starts."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from kframe.embedded import CountingTransport, MemoryEnsemble, MemoryStore, RecordingTransport
from kframe.errors import ConfigError, PluginError
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.model.events import EffectResult, Event
from kframe.model.ids import ElectionKind
from kframe.plugin import NO_LEADER, ElectionBatch, Int32, Observer, ObserverSpec, SelectorSpec, Tier, hookimpl
from kframe.ports.store_requests import ReadController
from kframe.registry.registry import Registry, build_registry
from kframe.runtime.builder import ControllerBuilder
from kframe.testing.clusters import PartitionSpec, cluster_of


class Last:
    """Elects the last eligible in-sync candidate."""

    name = "last"

    def __init__(self, only: int = 0) -> None:
        self.only = only

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        for position in range(len(batch)):
            first, stop = batch.candidates.offsets[position : position + 2]
            able = [slot for slot in range(first, stop) if batch.eligible[slot] and batch.in_sync[slot]]
            leader[position] = batch.candidates.values[able[-1]] if able else NO_LEADER


class Steps:
    """Counts steps."""

    instances: ClassVar[list[Steps]] = []

    def __init__(self) -> None:
        self.steps = 0
        self.instances.append(self)

    def stepped(self, cause: Event | EffectResult, effects: Any) -> None:
        self.steps += 1


class Plugin:
    """Provides both."""

    @hookimpl
    def kframe_leader_selectors(self) -> list[SelectorSpec]:
        return [SelectorSpec("last", Tier.BULK, Last, (ElectionKind.OFFLINE,), "The last.")]

    @hookimpl
    def kframe_observers(self) -> list[ObserverSpec]:
        return [ObserverSpec("steps", Steps, "Counts.")]


@pytest.fixture
def registry() -> Registry:
    return build_registry(extra=[Plugin()], allowed=())


def ensemble() -> MemoryEnsemble:
    spec = PartitionSpec((1, 2, 3), 1, (1, 2, 3))
    return MemoryEnsemble.from_cluster(cluster_of({"t": [spec]}, (1, 2, 3)))


def leader_after_1_dies(builder: ControllerBuilder, storage: MemoryEnsemble) -> int | None:
    controller = builder.build()
    controller.open()
    controller.run_until_idle()
    storage.unregister_brokers([1])
    controller.run_until_idle()
    controller.stop()
    leader: int | None = storage.states.cluster["t", 0].leader
    return leader


@pytest.mark.parametrize(
    "selectors",
    [["last"], {ElectionKind.OFFLINE: "last"}, {ElectionKind.OFFLINE: Last()}],
    ids=["name", "kind", "object"],
)
def test_selector_by_name_kind_or_object(registry: Registry, selectors: Any) -> None:
    storage = ensemble()
    builder = ControllerBuilder(9, storage.connect(), RecordingTransport(), selectors=selectors, registry=registry)
    assert leader_after_1_dies(builder, storage) == 3


def test_ports_are_objects_or_urls(registry: Registry) -> None:
    built = ControllerBuilder(9, store="memory:", transport="counting:", registry=registry).build()
    assert isinstance(built.store, MemoryStore)
    assert isinstance(built.transport, CountingTransport)
    store, transport = ensemble().connect(), RecordingTransport()
    built = ControllerBuilder(9, store=store, transport=transport).build()
    assert (built.store, built.transport) == (store, transport)


@pytest.mark.parametrize("as_object", [False, True])
def test_config_is_read_by_kafkas_keys(as_object: bool) -> None:
    values = {"unclean.leader.election.enable": "true"}
    storage = MemoryEnsemble.from_cluster(cluster_of({"t": [PartitionSpec((1, 2), 1, (1,))]}, (1, 2)))
    config = ControllerConfig(values) if as_object else values
    builder = ControllerBuilder(9, storage.connect(), RecordingTransport(), config=config)
    assert leader_after_1_dies(builder, storage) == 2


def test_observers_by_name_and_as_objects(registry: Registry) -> None:
    mine: Observer = Steps()
    builder = ControllerBuilder(
        9, ensemble().connect(), RecordingTransport(), observers=["steps", mine], registry=registry
    )
    controller = builder.build()
    controller.open()
    controller.run_until_idle()
    by_name = Steps.instances[-1]
    assert by_name is not mine
    assert by_name.steps > 0
    assert isinstance(mine, Steps)
    assert mine.steps == by_name.steps
    controller.stop()


WRONG: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("key", {"config": {"unclean.leader.elections": True}}, ConfigError, "unknown key"),
    ("value", {"config": {"num.partitions": "many"}}, ConfigError, "num.partitions"),
    ("store", {"store": "etcd:here"}, PluginError, "no store for the URL scheme 'etcd'"),
    ("transport", {"transport": "smoke:"}, PluginError, "no transport for the URL scheme 'smoke'"),
    ("selector", {"selectors": ["lost"]}, PluginError, "did you mean 'last'"),
    ("kind", {"selectors": {ElectionKind.PREFERRED: "last"}}, PluginError, "not for PREFERRED elections"),
    ("option", {"selectors": ["last"], "selector_options": {"last": {"x": 1}}}, ConfigError, "option 'x'"),
    ("observer", {"observers": ["nobody"]}, PluginError, "no observer 'nobody'"),
]


@pytest.mark.parametrize("arguments, error, message", [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_invalid_arguments_are_refused(
    registry: Registry, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    parts: dict[str, Any] = {"store": ensemble().connect(), "transport": RecordingTransport(), "registry": registry}
    with pytest.raises(error, match=message):
        ControllerBuilder(9, **parts | arguments).build()


def test_building_starts_nothing() -> None:
    storage = ensemble()
    store = storage.connect()
    controller = ControllerBuilder(9, store, RecordingTransport()).build()
    assert controller.run_until_idle() == 0
    watcher = storage.connect()
    watcher.open(lambda _event: None)
    assert watcher.perform(ReadController()).controller_id == -1
    controller.stop()


def test_two_controllers_of_one_process_share_nothing() -> None:
    ensembles = [MemoryEnsemble.from_cluster(ClusterState()) for _ in range(2)]
    controllers = [ControllerBuilder(7, ensemble.connect(), RecordingTransport()).build() for ensemble in ensembles]
    for controller in controllers:
        controller.open()
        controller.run_until_idle()
    assert [controller.status().controller_epoch for controller in controllers] == [1, 1]
    controllers[0].stop()
    assert [controller.status().active for controller in controllers] == [False, True]
    assert [
        controller.metrics()["kafka_controller_kafkacontroller_activecontrollercount"] for controller in controllers
    ] == [0, 1]
    controllers[1].stop()
