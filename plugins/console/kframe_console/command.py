"""``kframe console``: open a cluster, serve its pages, and open them in the browser."""

from __future__ import annotations

import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from kframe.plugin.commands import (
    COMMAND_CONFIG,
    CONFIG_OPTION,
    SOURCE,
    DecimalNumber,
    NamedPath,
    PluginSettings,
    SnapshotReading,
    WholeNumber,
    awaited,
    check_racks,
    collected,
    is_url,
    opened_cluster,
    plugin_options,
    progress,
    read_racks,
    reading_options,
    weights_option,
)

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from kframe.plugin.live import ClusterHistory
    from kframe_console.launch import LaunchOptions, ListenAddress
    from kframe_console.pages.page import Page
    from kframe_console.plans.session import Sizes
    from kframe_console.sources.controllers import Controllers
    from kframe_console.sources.listed_bytes import ListDirectories
    from kframe_console.sources.reading import ClusterSource

#: A bundled example, relative to the package ``kframe``: the metadata log of a real cluster.
_EXAMPLE: Final = ("snapshot", "examples", "kafka-4.4-broker-failure")
_PORT: Final = 8642
#: With the pauses of pages, they show a change two seconds after the cluster has it.
REFRESH_S: Final = 0.5


class _ConsoleCommand(click.Command):
    """A command whose help names the bundled example."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the command that opens it."""
        with formatter.section("Example"):
            formatter.write(f"  kframe console {example()}\n")


def example() -> Path:
    """The path of the bundled example."""
    import kframe.plugin

    return Path(kframe.plugin.__file__).parents[1].joinpath(*_EXAMPLE)


def _new_user(ctx: click.Context, _option: click.Parameter, name: str | None) -> None:
    """Print the line of a users file, and end."""
    if name is None or ctx.resilient_parsing:
        return
    from kframe_console.security.identities import password_line

    password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    click.echo(password_line(name, password))
    ctx.exit()


_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


class _Watched(NamedTuple):
    """The options of what a console shows beside SOURCE, or in its place."""

    metrics: tuple[str, ...]
    demo: str | None
    partitions: int
    brokers: int


#: Adds options to the command, which receives them as ``watched``.
_watch_options: Final = collected(
    "watched",
    _Watched,
    click.option(
        "--metrics",
        multiple=True,
        metavar="URL",
        help="A controller, stand-by or shadow to watch, by its --metrics-listen, http://HOST:PORT; may be repeated.",
    ),
    click.option(
        "--demo",
        type=click.Choice(("kraft", "zookeeper")),
        is_flag=False,
        flag_value="kraft",
        help="In place of SOURCE, a cluster in this process that you can break, in KRaft mode by default.",
    ),
    click.option(
        "--partitions", type=WholeNumber(1, 2_000_000), default=120, show_default=True, help="Partitions of --demo."
    ),
    click.option("--brokers", type=WholeNumber(3, 1_000), default=6, show_default=True, help="Brokers of --demo."),
)


def _launch(**options: Any) -> LaunchOptions:
    from kframe_console.launch import LaunchOptions

    return LaunchOptions(**options)


#: Adds the options of ``LaunchOptions`` to the command, which receives them as ``launch``.
_launch_options: Final = collected(
    "launch",
    _launch,
    click.option(
        "--listen",
        metavar="[HOST:]PORT",
        default=str(_PORT),
        show_default=True,
        help="Address of the pages; without a host, this machine alone; port 0 is a free one.",
    ),
    click.option("--users", type=_FILE, metavar="FILE", help="Users with passwords, as --new-user prints them."),
    click.option("--tokens", type=_FILE, metavar="FILE", help="Bearer tokens: NAME:sha256:HASH."),
    click.option(
        "--oidc", type=_FILE, metavar="FILE", help="Properties: issuer, client.id and others of OpenID Connect."
    ),
    click.option("--tls-cert", type=_FILE, metavar="FILE", help="Certificate of the console, PEM."),
    click.option("--tls-key", type=_FILE, metavar="FILE", help="Key of the certificate, PEM."),
    click.option("--client-ca", type=_FILE, metavar="FILE", help="Require client certificates of these authorities."),
    click.option("--plain-http", is_flag=True, help="Allow --listen elsewhere without TLS: a proxy encrypts."),
    click.option("--audit-log", type=NamedPath(dir_okay=False), metavar="FILE", help="Append a line for each write."),
    click.option("--allow-execute", is_flag=True, help="Let users change the cluster; needs --audit-log."),
    click.option(
        "--execute-by",
        metavar="URL",
        help="Brokers that execute plans, kafka://HOST:PORT[,HOST:PORT]...; without it, those of SOURCE.",
    ),
)


@click.command("console", cls=_ConsoleCommand)
@click.argument("source", metavar="SOURCE", type=SOURCE, required=False)
@reading_options
@_launch_options
@_watch_options
@click.option("--browser/--no-browser", default=True, help="Open the console in the browser (default), or do not.")
@CONFIG_OPTION
@COMMAND_CONFIG
@click.option(
    "--refresh",
    type=DecimalNumber(0.1),
    default=REFRESH_S,
    show_default=True,
    metavar="SECONDS",
    help="Read a live cluster, or the directory of a running node, this often; a large one less often.",
)
@weights_option
@click.option(
    "--new-user",
    metavar="NAME",
    callback=_new_user,
    expose_value=False,
    is_eager=True,
    help="Ask for a password, print the line of --users, and end.",
)
@plugin_options
def command(
    source: Any,
    reading: SnapshotReading,
    launch: LaunchOptions,
    watched: _Watched,
    browser: bool,
    config: Path | None,
    command_config: Path | None,
    refresh: float,
    weights: Any,
    plugins: PluginSettings,
) -> None:
    """Show a cluster in the browser: its brokers, topics and partitions, and why each partition has its leader.

    SOURCE is a snapshot, a dump or output of Kafka's tools; a fleet, the folder that kframe spark ingest wrote; or
    metadata.log.dir of a KRaft node, with all of its history. A live cluster is zookeeper://HOST:PORT[/chroot] with
    --config, or with --command-config kafka://HOST:PORT[,HOST:PORT]... or kraft://HOST:PORT[,HOST:PORT]... It is only
    read, unless --allow-execute lets users execute plans: each is confirmed, logged, and recorded in a journal beside
    the audit log.

    With --metrics and no SOURCE, or http://HOST:PORT as SOURCE, the only page is that of the running controllers.

    The pages are served on this machine alone, unless --listen names another address: then users log in, by --users,
    --tokens, --oidc or --client-ca.
    """
    source, watched = _checked(source, watched)
    from kframe_console.allocator import return_large_arrays
    from kframe_console.application import application
    from kframe_console.launch import checked_options, directories_of, executions_of, login_of, settings_of
    from kframe_console.security.audit import AuditLog

    address = checked_options(launch)
    login, oidc_login = login_of(launch)
    audit = AuditLog(launch.audit_log)
    return_large_arrays()
    directories = directories_of(source, command_config, plugins) if weights is None else None
    opened = None
    if source is not None:
        opened = _opened(source, reading, (config, command_config), plugins, refresh, directories)
    shown = _shown(opened, watched)
    sizes = _sizes(opened, weights)
    executions = executions_of(launch, source, command_config, plugins)
    app = application(
        shown.source,
        settings_of(launch, address),
        login,
        oidc_login,
        audit,
        shown.pages,
        sizes,
        executions,
        shown.controllers,
    )
    try:
        _serve(app, shown.source.name, launch, address, browser)
    finally:
        audit.close()


def _sizes(opened: ClusterSource | None, weights: Any) -> Sizes:
    """The sizes in a file, or those that brokers list. Refuses an unusable file now, not by the first plan: raises
    InputError, and UsageError for one of a fleet."""
    from kframe_console.plans.file_sizes import FileSizes
    from kframe_console.plans.session import no_sizes
    from kframe_console.sources.fleet import FleetSource
    from kframe_console.sources.live import LiveSource

    if weights is None:
        return opened.sizes if isinstance(opened, LiveSource) else no_sizes
    if isinstance(opened, FleetSource):
        raise click.UsageError("found --weights, which has the sizes of one cluster, expected none for a fleet")
    sizes = FileSizes(weights)
    if opened is not None:
        sizes(opened.reading("").snapshot)
    return sizes


def _serve(app: Starlette, name: str, launch: LaunchOptions, address: ListenAddress, browser: bool) -> None:
    """Serve until a signal; ``browser``: open the pages there. Raises ConfigError."""
    from kframe_console.launch import url_of
    from kframe_console.serving import listening_socket, serve

    listener = listening_socket(address.host, address.port)
    url = url_of(launch, address.host, listener.getsockname()[1])
    click.echo(f"kframe console of {name}: {url} (Ctrl-C ends it)")
    if browser:
        webbrowser.open(url)  # The socket listens already, so the browser waits for the first page.
    serve(app, listener, launch.tls)


def _checked(source: Any, watched: _Watched) -> tuple[Any, _Watched]:
    """SOURCE and the options, with pages of a controller among these. Raises UsageError unless there is one cluster."""
    if isinstance(source, str) and source.startswith("http://"):
        source, watched = None, watched._replace(metrics=(source, *watched.metrics))
    if (source is not None or watched.metrics) and watched.demo is not None:
        raise click.UsageError("found --demo beside SOURCE or --metrics, expected one of them")
    if source is None and watched.demo is None and not watched.metrics:
        raise click.UsageError(
            f"found no SOURCE, expected a snapshot, a directory or a URL, such as the bundled {example()}"
        )
    return source, watched


class _Shown(NamedTuple):
    """What a console shows."""

    source: ClusterSource
    pages: tuple[Page, ...]
    controllers: Controllers | None


def _shown(opened: ClusterSource | None, watched: _Watched) -> _Shown:
    """What a console of a source shows, or one of a demo, or of controllers alone. Raises ConfigError."""
    from kframe_console.pages import live
    from kframe_console.routes import FLEET_PAGES, PAGES
    from kframe_console.sources.controllers import ServedControllers
    from kframe_console.sources.demo.start import demo_source
    from kframe_console.sources.fleet import FleetSource
    from kframe_console.sources.no_cluster import no_cluster

    if watched.demo is not None:
        demo = demo_source(watched.demo, watched.partitions, watched.brokers)
        return _Shown(demo, PAGES, demo)
    controllers = ServedControllers(watched.metrics) if watched.metrics else None
    if opened is None:
        return _Shown(no_cluster(", ".join(watched.metrics)), (replace(live.live_page, path="/"),), controllers)
    return _Shown(opened, FLEET_PAGES if isinstance(opened, FleetSource) else PAGES, controllers)


def _opened(
    source: Any,
    reading: SnapshotReading,
    configs: tuple[Path | None, Path | None],
    plugins: PluginSettings,
    interval_s: float,
    directories: ListDirectories | None,
) -> ClusterSource:
    """The source that a user named; ``configs`` are those of a server and of a client, ``directories`` asks brokers.

    Raises UsageError, InputError, and for a live cluster StoreError.
    """
    from kframe.plugin import InputError
    from kframe.plugin.fleet import is_fleet
    from kframe.plugin.live import GroupedCluster
    from kframe.plugin.snapshot import open_history
    from kframe_console.sources.fleet import FleetSource
    from kframe_console.sources.live import LiveSource, reader_of
    from kframe_console.sources.logged import LoggedSource
    from kframe_console.sources.saved import SavedSource

    if is_url(source):
        cluster, located = opened_cluster(source, *configs, plugins)
        with progress("reading", awaited=awaited(source)), located:
            groups = cluster if isinstance(cluster, GroupedCluster) else None
            return LiveSource(source, reader_of(cluster), reading.complete, interval_s, groups, directories)
    if any(configs):
        raise click.UsageError("--config and --command-config are for the URL of a live cluster")

    if isinstance(source, Path) and is_fleet(source):
        racks = read_racks(reading.rack_map)
        fleet = FleetSource(source, replace(reading, rack_map=None).complete, racks)
        check_racks(racks, set(fleet.clusters), str(source))
        return fleet
    if isinstance(source, Path) and source.is_file() and source.suffix == ".parquet":
        raise InputError(str(source), "a Parquet file", "a fleet: the folder that kframe spark ingest wrote")

    def history() -> ClusterHistory | None:
        return open_history(source, reading.source_format)

    opened = history()
    if opened is None:
        return SavedSource.of(reading.read(source), str(source))
    folder = source if isinstance(source, Path) and source.is_dir() else None
    return LoggedSource(str(source), opened, reading.complete, folder, history, interval_s)
