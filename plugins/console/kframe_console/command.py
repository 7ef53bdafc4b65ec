"""``kframe console``: open a cluster, serve its pages, and open them in the browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.plugin.commands import SOURCE, SnapshotReading, WholeNumber, reading_options

if TYPE_CHECKING:
    from kframe_console.sources.reading import ClusterSource

#: A bundled example, relative to the package ``kframe``: the metadata log of a real cluster.
_EXAMPLE: Final = ("snapshot", "examples", "kafka-4.4-broker-failure")
_PORT: Final = 8642


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


@click.command("console", cls=_ConsoleCommand)
@click.argument("source", metavar="SOURCE", type=SOURCE, required=False)
@reading_options
@click.option(
    "--port",
    type=WholeNumber(0, 65_535),
    default=_PORT,
    show_default=True,
    help="Port on this machine; 0 takes a free one.",
)
@click.option("--browser/--no-browser", default=True, help="Open the console in the browser (default), or do not.")
def command(source: Any, reading: SnapshotReading, port: int, browser: bool) -> None:
    """Show a cluster in the browser: its brokers, topics and partitions, and why each partition has its leader.

    SOURCE is a snapshot, a dump or output of Kafka's tools, or metadata.log.dir of a KRaft node. The pages are served
    on this machine alone.
    """
    if source is None:
        raise click.UsageError(
            f"found no SOURCE, expected a snapshot or metadata.log.dir of a KRaft node, such as the bundled {example()}"
        )
    from kframe_console.application import application
    from kframe_console.serving import listening_socket, serve

    listener = listening_socket("127.0.0.1", port)
    opened = _opened(source, reading)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    click.echo(f"kframe console of {opened.name}: {url} (Ctrl-C ends it)")
    if browser:
        webbrowser.open(url)  # The socket listens already, so the browser waits for the first page.
    serve(application(opened), listener)


def _opened(source: Any, reading: SnapshotReading) -> ClusterSource:
    """The source that a user named. Raises InputError."""
    from kframe.plugin.snapshot import open_history
    from kframe_console.sources.logged import LoggedSource
    from kframe_console.sources.saved import SavedSource

    history = open_history(source, reading.source_format)
    if history is None:
        return SavedSource.of(reading.read(source), str(source))
    opened = LoggedSource(str(source), history, reading.complete)
    opened.reading("")
    return opened
