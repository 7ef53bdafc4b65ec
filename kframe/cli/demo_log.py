"""``kframe demo``: the bundled metadata log of a KRaft cluster, by the commands of the plugin that reads it."""

from __future__ import annotations

import io
import shlex
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

import kframe
from kframe.registry.known_plugins import plugin_of_command

if TYPE_CHECKING:
    from rich.console import Console

    from kframe.cli.stopwatch import Stopwatch
    from kframe.pages.parts import Part

#: The bundled log, a folder of the package.
BUNDLED_LOG: Final = Path(kframe.__file__).parent / "snapshot" / "examples" / "kafka-4.4-broker-failure"
#: What each command shows, its name, and its arguments after the log.
_COMMANDS: Final = (
    (
        "Broker 2 is stopped, broker 3 is killed, then both return:",
        "show",
        ("--type", "BrokerRegistrationChange", "--from", "272"),
    ),
    ("Broker 3 is fenced: leaders, ISRs and ELRs that change, by topic:", "diff", ("453", "632", "--by", "topic")),
    ("The cluster then, with its offline partitions:", "at", ("--offset", "632")),
    ("A partition without leader:", "why", ("invoices-1", "--offset", "632")),
    (
        "Broker 2 returns after a clean shutdown, so it is still in the ELR and may lead:",
        "why",
        ("invoices-1", "--offset", "800"),
    ),
    (
        "Broker 3 returns after an unclean shutdown; a partition without ISR and ELR gets its last-known leader:",
        "why",
        ("page-views-2", "--offset", "900"),
    ),
)


def show_log(console: Console, watch: Stopwatch, *, captured: bool = False) -> list[Part]:
    """Run commands of ``kframe log`` on the bundled log. Name the plugin if it is not installed.

    Returns what they have printed, if it is ``captured``.
    """
    from kframe.cli.app import cli
    from kframe.pages.parts import NotesPart, TextPart

    log = cli.get_command(click.get_current_context(), "log")
    if log is None:
        plugin = plugin_of_command("log")
        hint = "" if plugin is None else plugin.hint()
        console.print(f"  kframe log reads it. {hint}", markup=False, highlight=False, soft_wrap=True)
        return [NotesPart((f"kframe log reads it. {hint}",))]
    parts: list[Part] = []
    start_ms = watch.clock.now_ms()
    for title, name, arguments in _COMMANDS:
        command = [name, str(BUNDLED_LOG), *arguments]
        console.print(f"\n{title}", highlight=False, soft_wrap=True)
        line = f"$ {shlex.join(['kframe', 'log', *command])}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
        if not captured:
            log.main(command, prog_name="kframe log", standalone_mode=False)
            continue
        with redirect_stdout(io.StringIO()) as output:
            log.main(command, prog_name="kframe log", standalone_mode=False)
        click.echo(output.getvalue(), nl=False)
        parts.append(TextPart(title, f"{line}\n{output.getvalue()}"))
    watch.add(f"{len(_COMMANDS)} commands", watch.clock.now_ms() - start_ms)
    return parts
