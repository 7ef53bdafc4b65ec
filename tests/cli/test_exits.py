"""Exit codes by convention, one line for each error, and no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kframe.cli.app import cli
from kframe.cli.exits import EXIT_CODES
from tests.cli.running import HEALTHY, PLAN, kframe

KFRAME = (sys.executable, "-m", "kframe.cli")
#: ``kframe`` with Python's handler of SIGINT. Tests in a background job of a shell inherit that the signal is ignored.
INTERRUPTIBLE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from kframe.cli.app import main; main()"
)
#: Commands that print much and little, as tables and as data.
_PRINTING = (
    ("whatif", "fail", HEALTHY, "--brokers", "4"),
    ("whatif", "fail", HEALTHY, "--brokers", "4", "-o", "json"),
    ("snapshot", "show", HEALTHY, "--list", "partitions", "-o", "csv"),
    ("plan", "check", PLAN),
    ("states",),
    ("--help",),
)


def test_closed_pipe_is_quiet() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [*KFRAME, "snapshot", "show", str(HEALTHY), "--list", "partitions"]
    ended = subprocess.run(command, check=False, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")


#: Command, the stream that is closed or full, exit code and standard error.
CLOSED_STREAMS = (
    *((arguments, ">/dev/full", 1, "error: standard output: No space left on device\n") for arguments in _PRINTING),
    *((arguments, ">&-", 1, "error: standard output: Bad file descriptor\n") for arguments in _PRINTING),
    (("--version",), ">&-", 1, "error: standard output: Bad file descriptor\n"),
    (("plan", "stamp", HEALTHY, PLAN), ">&-", 1, "error: standard output: Bad file descriptor\n"),
    (("snapshot", "convert", HEALTHY, "OUT", "-q"), ">&-", 0, "645 partitions"),
    (("whatif", "fail", HEALTHY, "--brokers", "999"), ">&-", 2, "error: "),
    (("whatif", "fail", HEALTHY, "--brokers", "999"), "2>&-", 2, ""),
    (("whatif", "fail", HEALTHY, "--brokers", "4"), "2>&-", 0, ""),
    (("whatif", "fail", HEALTHY, "--brokers", "4"), "<&-", 0, ""),
    (("whatif", "fail", HEALTHY, "--brokers", "4"), "<&- >&- 2>&-", 1, ""),
    (("snapshot", "show", "-"), "<&-", 2, "error: standard input: "),
)


@pytest.mark.parametrize(
    "arguments, redirection, code, message",
    CLOSED_STREAMS,
    ids=[f"{' '.join(Path(str(word)).name for word in row[0])} {row[1]}" for row in CLOSED_STREAMS],
)
def test_closed_stream(
    arguments: tuple[object, ...], redirection: str, code: int, message: str, tmp_path: Path
) -> None:
    words = [str(tmp_path / "out") if word == "OUT" else str(word) for word in arguments]
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", *KFRAME, *words]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == code, ended.stderr
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Exception" not in ended.stderr


def test_interrupt_ends_a_command_with_130(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-c", INTERRUPTIBLE, "snapshot", "show", str(pipe)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    with pipe.open("wb"):  # Returns when the command reads the pipe.
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in stderr, "error: interrupted" in stderr) == (130, False, True)


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], click.Command]]:
    """Every command that is no group."""
    if not isinstance(command, click.Group):
        return [(path, command)]
    ctx = click.Context(command)
    members = [(name, command.get_command(ctx, name)) for name in command.list_commands(ctx)]
    return [leaf for name, member in members if member is not None for leaf in leaves(member, (*path, name))]


@pytest.mark.parametrize("path, command", [pytest.param(*leaf, id=" ".join(leaf[0])) for leaf in leaves(cli)])
def test_every_command_takes_quiet_and_verbose(path: tuple[str, ...], command: click.Command) -> None:
    options = [name for option in command.params for name in option.opts]
    assert [options.count(name) for name in ("-q", "--quiet", "-v", "--verbose")] == [1, 1, 1, 1]


def test_help_lists_every_exit_code() -> None:
    text = kframe("--help").output
    assert all(f"  {code} " in text for code, _ in EXIT_CODES)


def test_unexpected_error_is_reported_without_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("max() arg is an empty sequence")

    monkeypatch.setattr("kframe.snapshot.read_snapshot", fail)
    result = kframe("snapshot", "show", HEALTHY)
    assert result.exit_code == 70
    assert result.output == (
        "error: unexpected ValueError: max() arg is an empty sequence (an error in kframe; -v prints where)\n"
    )
