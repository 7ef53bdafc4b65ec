"""The exit codes of ``kframe``, and the one line on stderr that each error becomes."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

from kframe.errors import ControllerFenced, InputError, KframeError, PluginError, pip_command

FAILED: Final = 1
BAD_INPUT: Final = 2
HAS_FINDINGS: Final = 3
STALE: Final = 4
FENCED: Final = 5
INTERNAL: Final = 70
INTERRUPTED: Final = 130
CLOSED_PIPE: Final = 141

#: Each exit code and its meaning, for ``--help`` and the reference.
EXIT_CODES: Final = (
    (0, "done"),
    (FAILED, "failed: a refused request, an unreachable server, a damaged log, an output that cannot be written"),
    (BAD_INPUT, "wrong usage or bad input"),
    (HAS_FINDINGS, "a condition of --fail-on holds, a shadow disagreement, or diverging or damaged logs"),
    (STALE, "a plan is stale"),
    (FENCED, "not the active controller"),
    (INTERNAL, "an error in kframe itself; -v prints where"),
    (INTERRUPTED, "interrupted by Ctrl-C"),
    (CLOSED_PIPE, "standard output was closed by its reader"),
)

#: The extra that installs a module.
_EXTRAS: Final = {
    "kazoo": "zookeeper",
    "matplotlib": "plot",
    "pandas": "spark",
    "prometheus_client": "metrics",
    "pyarrow": "arrow",
    "pyspark": "spark",
}
#: What click 8.2 raises for a group that is called without a command; its message is the group's help.
_HELP_REQUESTED: Final = getattr(click.exceptions, "NoArgsIsHelpError", ())


class OutputFault(click.ClickException):
    """A file cannot be read or written. Without a name it is standard output."""

    exit_code = FAILED

    def __init__(self, problem: OSError) -> None:
        super().__init__(f"{problem.filename or 'standard output'}: {problem.strerror or problem}")


class ClosedPipe(OutputFault):
    """The reader of standard output closed it, as in ``kframe ... | head``."""

    exit_code = CLOSED_PIPE


@contextmanager
def output_faults() -> Iterator[None]:
    """Raise OutputFault instead of an OSError that no part of a command has handled. This includes errors when output
    is flushed."""
    try:
        yield
        sys.stdout.flush()
    except OSError as problem:
        raise _fault(problem) from problem


@contextmanager
def writing_to(path: object) -> Iterator[None]:
    """Name the file in an OSError that names none, such as that of a full disk."""
    try:
        yield
    except OSError as problem:
        if problem.filename is None:
            problem.filename = str(path)
        raise


def check_reader() -> None:
    """Raise BrokenPipeError if standard output is a pipe that no process reads.

    For commands that wait: a closed pipe is otherwise noticed at the next output.
    """
    output = sys.__stdout__
    if output is None or sys.stdout is not output:
        return
    import select  # Only commands that wait need it.

    poller = select.poll()
    poller.register(output.fileno(), 0)
    if any(event & select.POLLERR for _, event in poller.poll(0)):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def _fault(problem: OSError) -> OutputFault:
    return ClosedPipe(problem) if problem.errno == errno.EPIPE else OutputFault(problem)


def report(problem: BaseException) -> int:
    """Print the error in one line on stderr, nothing for a closed pipe. Returns the exit code."""
    match problem:
        case OutputFault():
            _discard_output()
            if not isinstance(problem, ClosedPipe):
                click.echo(f"error: {problem.format_message()}", err=True)
            return problem.exit_code
        case OSError():
            return report(_fault(problem))
        case ImportError() if problem.name is not None and problem.name.partition(".")[0] in _EXTRAS:
            module = problem.name.partition(".")[0]
            command = pip_command(_EXTRAS[module])
            click.echo(f"error: {module}: no such module, expected the package: {command}", err=True)
            return BAD_INPUT
        case click.Abort() | KeyboardInterrupt():
            click.echo("error: interrupted", err=True)
            return INTERRUPTED
        case click.ClickException():
            return _report_usage(problem)
        case KframeError():
            click.echo(f"error: {problem}", err=True)
            if isinstance(problem, ControllerFenced):
                return FENCED
            return BAD_INPUT if isinstance(problem, InputError | PluginError) else FAILED
    import logging  # Only an error of kframe needs both.
    import traceback

    if logging.getLogger("kframe").isEnabledFor(logging.INFO):
        traceback.print_exception(problem)
    text = " ".join(f"{type(problem).__name__}: {problem}".split())
    click.echo(f"error: unexpected {text} (an error in kframe; -v prints where)", err=True)
    return INTERNAL


def _report_usage(problem: click.ClickException) -> int:
    message, ctx = problem.format_message(), getattr(problem, "ctx", None)
    if isinstance(problem, _HELP_REQUESTED):
        click.echo(message, err=True)
    else:
        hint = f" (see {ctx.command_path} --help)" if isinstance(problem, click.UsageError) and ctx is not None else ""
        click.echo(f"error: {' '.join(message.split())}{hint}", err=True)
    return problem.exit_code


def _discard_output() -> None:
    """Discard buffered output, so that the interpreter does not report the same error at exit."""
    output = sys.__stdout__
    if output is not None and sys.stdout is output:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, output.fileno())
        os.close(null)
