"""``kframe console``: open a cluster, serve its pages, and open them in the browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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
    collected,
    plugin_options,
    reading_options,
    weights_option,
)

if TYPE_CHECKING:
    from kframe_console.launch import LaunchOptions

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


def _launch(**options: Any) -> LaunchOptions:
    from kframe_console.launch import LaunchOptions

    return LaunchOptions(**options)


#: Adds the options of ``LaunchOptions`` to the command, which receives them as ``options``.
_launch_options: Final = collected(
    "options",
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
    click.option("--browser/--no-browser", default=True, help="Open the console in the browser (default), or do not."),
    CONFIG_OPTION,
    COMMAND_CONFIG,
    click.option(
        "--refresh",
        type=DecimalNumber(0.1),
        default=REFRESH_S,
        show_default=True,
        metavar="SECONDS",
        help="Read a live cluster, or the directory of a running node, this often; a large one less often.",
    ),
    weights_option,
    click.option(
        "--state-change-log",
        type=_FILE,
        metavar="FILE",
        help="The state-change.log of a controller: the page of a partition shows its lines.",
    ),
)


@click.command("console", cls=_ConsoleCommand)
@click.argument("source", metavar="SOURCE", type=SOURCE, required=False)
@reading_options
@_launch_options
@click.option(
    "--new-user",
    metavar="NAME",
    callback=_new_user,
    expose_value=False,
    is_eager=True,
    help="Ask for a password, print the line of --users, and end.",
)
@plugin_options
def command(source: Any, reading: SnapshotReading, options: LaunchOptions, plugins: PluginSettings) -> None:
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
    if isinstance(source, str) and source.startswith("http://"):
        source, options = None, replace(options, metrics=(source, *options.metrics))
    if (source is not None or options.metrics) and options.demo is not None:
        raise click.UsageError("found --demo beside SOURCE or --metrics, expected one of them")
    if source is None and options.demo is None and not options.metrics:
        raise click.UsageError(
            f"found no SOURCE, expected a snapshot, a directory or a URL, such as the bundled {example()}"
        )
    from kframe_console.start import start

    start(source, reading, options, plugins)
