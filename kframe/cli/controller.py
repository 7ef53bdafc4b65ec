"""``kframe controller``: run a controller of a live cluster, show the active controller, or make it resign."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kframe.cli.live import (
    COMMAND_CONFIG,
    CONFIG_OPTION,
    CONNECT,
    KAFKA,
    KRAFT,
    ZOOKEEPER_OPTION,
    awaited,
    cluster_of,
    cluster_of_brokers,
    connect_url,
    gather,
    live_options,
)
from kframe.cli.numbers import DecimalNumber, WholeNumber
from kframe.cli.output import ReportingGroup, emit_record, output_option
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.progress import progress
from kframe.cli.studies import selector_option

if TYPE_CHECKING:
    from kframe.settings.settings import Settings


@click.group("controller", cls=ReportingGroup)
def group() -> None:
    """Run a controller of a live cluster, report the active controller, make it resign."""


@group.command()
@ZOOKEEPER_OPTION
@click.option("--id", "controller_id", metavar="N", help="Controller id (broker.id).")
@CONFIG_OPTION
@click.option(
    "--listener",
    "listeners",
    multiple=True,
    metavar="NAME://HOST:PORT",
    help="Listener for brokers and clients (listeners); may be repeated.",
)
@click.option(
    "--transport", metavar="URL", help="Transport of requests to brokers.  [default: kafka:, else recording:]"
)
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="URL",
    help="Server for requests to the controller; may be repeated.  [default: kafka: with the default transport]",
)
@click.option("--metrics-listen", metavar="[HOST:]PORT", help="Serve /metrics, /healthz and /readyz here.")
@click.option(
    "--create-chroot", is_flag=True, help="Create the chroot of a cluster whose brokers have not started yet."
)
@click.option("--takeover", is_flag=True, help="Take over from the active controller, once.")
@click.option("--allow-duplicate-id", is_flag=True, help="Start although an instance or a broker has the same id.")
@click.option(
    "--insist/--no-insist",
    default=None,
    help="Take precedence over brokers: claim the role first when it is free, take it from a broker, never "
    "from another instance.  [default: on if kframe.never.replicas names another instance]",
)
@click.option("--log-dir", type=click.Path(path_type=Path), help="Write controller.log and state-change.log here.")
@click.option(
    "--log-level",
    type=click.Choice(("DEBUG", "INFO", "WARN", "ERROR")),
    default="INFO",
    show_default=True,
    help="Least severity that is logged.",
)
@selector_option
@plugin_options
def run(
    zookeeper: str | None,
    controller_id: str | None,
    config: Path | None,
    listeners: tuple[str, ...],
    transport: str | None,
    servers: tuple[str, ...],
    metrics_listen: str | None,
    create_chroot: bool,
    takeover: bool,
    allow_duplicate_id: bool,
    insist: bool | None,
    log_dir: Path | None,
    log_level: str,
    selectors: tuple[str, ...],
    plugins: PluginSettings,
) -> None:
    """Run a controller, active or standby, until SIGTERM or SIGINT.

    With process.roles=controller in --config it leads a KRaft quorum as its only voter, in the directory that kframe
    kraft format or kafka-storage has formatted.

    An id that a live instance or a registered broker has is refused, with exit code 2.

    The transport recording keeps requests to brokers in memory and sends none; counting only counts them.
    """
    from kframe.cli import run_keys, run_quorum

    options = {
        CONNECT: (zookeeper, "--zookeeper"),
        run_keys.ID_KEYS[0]: (controller_id, "--id"),
        run_keys.LISTENERS: (",".join(listeners) or None, "--listener"),
        run_keys.CREATE_CHROOT: ("true" if create_chroot else None, "--create-chroot"),
    }
    settings = gather(config, {key: (value, name) for key, (value, name) in options.items() if value is not None})
    registry = plugins.registry()
    if run_quorum.ROLES in settings:
        run_quorum.run(settings, registry, selectors, metrics_listen, log_dir, log_level)
        return
    from kframe.cli import run as running
    from kframe.cli.logs import start_logs
    from kframe.cli.selectors import configured_selectors
    from kframe.runtime.memory import preallocate
    from kframe.snapshot.instances import Instance, InstanceRegistration

    own_id, cluster = running.own_id(settings), cluster_of(settings, plugins)
    network = running.network_settings(registry, transport, servers, metrics_listen)
    chosen = configured_selectors(settings, registry, selectors)
    preallocate()
    store, instance = cluster.store(), Instance.of_this_process(own_id)
    if isinstance(store, InstanceRegistration):
        store.register_instance(instance, duplicate=allow_duplicate_id)
    controller = running.assemble(settings, store, network, registry, instance, insist, chosen)
    start_logs(own_id, log_dir, log_level)
    with settings.located():
        addresses = cluster.broker_addresses()
        running.refuse_id_of_broker(settings, addresses, allow_duplicate_id)
        cluster.audit()
        for risk in running.risks(settings, network, addresses):
            logging.getLogger("kframe.config").warning("%s", risk)
        running.serve(controller, settings, network, chosen, store, instance, takeover=takeover)


@group.command()
@click.argument("url", required=False)
@live_options
@COMMAND_CONFIG
@click.option(
    "--settle",
    "settle_s",
    type=DecimalNumber(0.1),
    metavar="SECONDS",
    help="Compare after this time without a change, in ZooKeeper mode.  [default: 5]",
)
@click.option("--for", "for_s", type=DecimalNumber(), metavar="SECONDS", help="End after this time.")
@click.option("--from-start", is_flag=True, help="Also compare what a KRaft log has, from its newest snapshot on.")
@click.option("--metrics-listen", metavar="[HOST:]PORT", help="Serve /metrics, /healthz and /readyz here.")
@plugin_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(("table", "json", "jsonl")),
    default="table",
    show_default=True,
    help="Output format.",
)
def shadow(
    url: str | None,
    settings: Settings,
    command_config: Path | None,
    settle_s: float | None,
    for_s: float | None,
    from_start: bool,
    metrics_listen: str | None,
    plugins: PluginSettings,
    output: str,
) -> None:
    """Compare the decisions of a running controller with those of kframe.

    In ZooKeeper mode, the same events are played to the engine on a copy, and once both are quiescent, leaders, leader
    epochs, ISRs and missing states are compared. URL kraft://HOST:PORT[,HOST:PORT]... is a KRaft quorum, by the
    listener of its controllers: for each committed batch, the rules predict the records of the event that it shows.
    --config then has the static settings of the controllers.

    Only reads. Ends on SIGTERM, SIGINT or after --for; exit code 3 if any decision differs.
    """
    follow: dict[str, Any] = {"for_s": for_s, "metrics_listen": metrics_listen, "output": output}
    with settings.located():
        if url is not None and url.startswith(f"{KRAFT}:"):
            from kframe.cli import log_shadow

            if settle_s is not None or settings.origin(CONNECT) == "option --zookeeper":
                raise click.UsageError("--settle and --zookeeper are for ZooKeeper mode, not for a kraft:// URL")
            code = log_shadow.run(url, command_config, settings, plugins, from_start=from_start, **follow)
        else:
            from kframe.cli import shadow as shadowing

            if from_start or command_config is not None:
                raise click.UsageError("--from-start and --command-config are for kraft:// URLs")
            if url is not None and url.startswith(f"{KAFKA}:"):
                raise click.UsageError(f"found {url}, expected kraft://HOST:PORT, the listener of controllers")
            settle_s = 5.0 if settle_s is None else settle_s
            code = shadowing.run(cluster_of(settings, plugins, url), settings, settle_s=settle_s, **follow)
    click.get_current_context().exit(code)


@group.command()
@click.argument("url", required=False)
@live_options
@COMMAND_CONFIG
@click.option("--quick", is_flag=True, help="Do not read topics: neither count partitions nor look for broken ones.")
@plugin_options
@output_option
def status(
    url: str | None,
    settings: Settings,
    command_config: Path | None,
    quick: bool,
    plugins: PluginSettings,
    output: str,
) -> None:
    """Report the controller, its standbys, the health of partitions, unreadable znodes, and znodes open to all clients.

    Reads the whole tree, which is the only way to find unreadable znodes, and writes nothing. With --quick it reads a
    handful of znodes, however large the cluster is. Request queues come from the HTTP pages of the active kframe.

    URL is kraft://HOST:PORT[,HOST:PORT]..., the listener of controllers, or zookeeper://HOST:PORT[/CHROOT]. Of a KRaft
    cluster the metadata log is read.
    """
    from kframe.cli import status as reporting

    config = settings.controller_config()
    if url is not None and url.startswith(f"{KAFKA}:"):
        raise click.UsageError(f"found {url}, expected kraft://HOST:PORT, the listener of controllers")
    if url is not None and url.startswith(f"{KRAFT}:"):
        if quick or settings.origin(CONNECT) == "option --zookeeper":
            raise click.UsageError("--quick and --zookeeper are for ZooKeeper mode, not for a kraft:// URL")
        cluster = cluster_of_brokers(url, command_config, plugins)
    else:
        if command_config is not None:
            raise click.UsageError("--command-config is for kraft:// URLs")
        cluster = cluster_of(settings, plugins, url)
    with progress("reading", awaited=awaited(url or connect_url(settings))) as tick, settings.located():
        report = cluster.status(tick, quick=quick)
    reporting.show(reporting.report(report, reporting.fetch_page(report), config), output)


@group.command()
@live_options
@click.option("--id", "controller_id", type=WholeNumber(), help="Only if this id is the active controller.")
@plugin_options
@output_option
def resign(settings: Settings, controller_id: int | None, plugins: PluginSettings, output: str) -> None:
    """Make the active controller resign. The election that follows may elect it again.

    Exit code 5 if there is no controller, if it is not --id, or if it was elected just now.
    """
    from kframe.cli.documents.cluster import ResignationRecord

    with progress("reading", awaited=awaited(connect_url(settings))), settings.located():
        ended = cluster_of(settings, plugins).depose(controller_id)
    record = ResignationRecord(ended.controller_id, ended.controller_epoch)
    emit_record("kframe.controller-resignation/v1", record, output)
