"""``kframe controller``: run a controller of a live cluster, look at the one at work, have it resign."""

from __future__ import annotations

import signal
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.live import CONFIG_OPTION, CONNECT, cluster_of, gather, live_options
from kframe.cli.output import BadInput, ReportingGroup, emit_heading, emit_record, output_option
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.progress import progress

if TYPE_CHECKING:
    from kframe.api.controller import Controller
    from kframe.api.settings import Settings
    from kframe.model.ports import Store

#: Where a controller's id stands unless it is given.
_ID: Final = "broker.id"
_INT32_MAX: Final = 2**31 - 1


@click.group("controller", cls=ReportingGroup)
def group() -> None:
    """Run a controller of a live cluster, look at the one at work, have it resign."""


@group.command()
@click.option("--zookeeper", metavar="HOST:PORT[/CHROOT]", help=f"Where ZooKeeper is ({CONNECT}).")
@click.option("--id", "controller_id", metavar="N", help="Under which id to stand for election (broker.id).")
@CONFIG_OPTION
@click.option("--transport", default="recording:", show_default=True, metavar="URL", help="How requests reach brokers.")
@click.option("--server", "servers", multiple=True, metavar="URL", help="How others reach the controller; repeatable.")
@click.option("--takeover", is_flag=True, help="Take the role from the present controller, once.")
@click.option("--log-dir", type=click.Path(path_type=Path), help="Write controller.log and state-change.log here.")
@plugin_options
def run(
    zookeeper: str | None, controller_id: str | None, config: Path | None, transport: str, servers: tuple[str, ...],
    takeover: bool, log_dir: Path | None, plugins: PluginSettings,
) -> None:  # fmt: skip
    """Be the controller, or stand by until there is none, until SIGTERM or SIGINT.

    The recording transport keeps in memory what brokers would be sent, and sends nothing; counting: only counts it.
    """
    options = {CONNECT: (zookeeper, "--zookeeper"), _ID: (controller_id, "--id")}
    settings = gather(config, {key: (value, name) for key, (value, name) in options.items() if value is not None})
    own_id = _own_id(settings)
    cluster = cluster_of(settings, plugins)
    controller = _controller(settings, own_id, cluster.store(), transport, servers, plugins)
    from kframe.cli.logs import start_logs

    start_logs(own_id, log_dir)
    with settings.located():
        cluster.audit()
        _serve(controller, takeover)


@group.command()
@live_options
@click.option("--quick", is_flag=True, help="Do not read topics: neither count partitions nor look for broken ones.")
@plugin_options
@output_option
def status(settings: Settings, quick: bool, plugins: PluginSettings, output: str) -> None:
    """Say who is controller, which brokers are registered, what cannot be read and what anybody may change.

    Reads the whole tree, because only that tells what cannot be read, and writes nothing. With --quick it reads a
    handful of nodes, however large the cluster is.
    """
    with progress("reading") as tick, settings.located():
        found = cluster_of(settings, plugins).standing(tick, quick=quick)
    record: dict[str, Any] = {
        "controller_id": found.controller_id,
        "controller_epoch": found.controller_epoch,
        "elected": None if found.elected_ms is None else _moment(found.elected_ms),
        "cluster_id": found.cluster_id,
        "brokers": list(found.broker_ids),
        "topics": found.topics,
        "partitions": found.partitions,
        "quick": quick,
        "quarantined": [{"path": path, "reason": reason} for path, reason in found.quarantined.items()],
        "warnings": list(found.warnings),
    }
    if output not in ("table", "wide"):
        emit_record("kframe.controller-status/v1", record, output)
        return
    lists = {key: record.pop(key) for key in ("quarantined", "warnings")}
    emit_record("kframe.controller-status/v1", record | {key: len(one) for key, one in lists.items()}, output)
    print_quarantined(found.quarantined)
    if found.warnings:
        emit_heading("warnings")
        for warning in found.warnings:
            click.echo(f"  {warning}")


@group.command()
@live_options
@click.option("--id", "controller_id", type=click.IntRange(0, _INT32_MAX), help="Only if this one is controller.")
@plugin_options
@output_option
def resign(settings: Settings, controller_id: int | None, plugins: PluginSettings, output: str) -> None:
    """Take the role from the present controller, so that another is elected; it may be the same one again.

    Exit code 5 if there is no controller, another one than --id, or one that was elected just now.
    """
    with settings.located():
        ended = cluster_of(settings, plugins).depose(controller_id)
    record = {"controller_id": ended.controller_id, "controller_epoch": ended.controller_epoch}
    emit_record("kframe.controller-resignation/v1", record, output)


def print_quarantined(quarantined: Any) -> None:
    """List what cannot be read, if there is anything."""
    from kframe.cli.output import cell

    if quarantined:
        emit_heading("quarantined")
    for path, reason in quarantined.items():
        click.echo(f"  {cell(path)}: {cell(reason)}")


def _own_id(settings: Settings) -> int:
    from kframe.errors import ConfigError

    text = settings.get(_ID)
    if text is None:
        raise BadInput(f"no id for the controller: give --id, or a file with {_ID} by --config")
    if not (text.strip().isascii() and text.strip().isdecimal() and int(text) <= _INT32_MAX):
        raise ConfigError(f"{settings.origin(_ID)} key {_ID}", repr(text[:80]), f"a number from 0 to {_INT32_MAX}")
    return int(text)


def _controller(
    settings: Settings, controller_id: int, store: Store, transport: str, servers: tuple[str, ...],
    plugins: PluginSettings,
) -> Controller:  # fmt: skip
    """A controller, not started."""
    from kframe.api.builder import ControllerBuilder
    from kframe.errors import PluginError

    builder = ControllerBuilder(
        controller_id, store, transport, settings.controller_config(), settings=settings.values, servers=servers,
        registry=plugins.registry(),
    )  # fmt: skip
    try:
        with settings.located():
            return builder.build()
    except PluginError as error:
        raise BadInput(f"--transport or --server: {error}") from error


def _serve(controller: Controller, takeover: bool) -> None:
    """Run until a signal asks us to stop; a second one ends the process as if nobody handled it."""
    asked = threading.Event()

    def stop(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        asked.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    controller.start(takeover=takeover)
    try:
        asked.wait()
    finally:
        controller.stop()


def _moment(milliseconds: int) -> str:
    """A moment in UTC, as ISO 8601 has it; the bare number where no calendar goes so far."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
