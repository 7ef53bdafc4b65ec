"""Runs the code blocks of a page in order, in a folder that resembles a clone with a virtual environment.

- ``sh``: each command must succeed; a trailing comment ``# exit code 3`` states another code.
- ``console``: the output must be that of the page, where ``...`` matches any text.
- ``python``: all blocks of a page share their names.
- Any block whose first line is a comment with a file name is saved in that file instead.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.architecture.source import ROOT
from tests.docs.blocks import Block, Step, blocks, steps

_END: Final = "--- end of command"
_EXIT_CODE: Final = re.compile(r"#.*\bexit code (\d+)")
SHELL: Final = frozenset({"sh", "console"})


class Shell:
    """A bash whose variables and background jobs remain from command to command; closing it ends the jobs."""

    def __init__(self, folder: Path) -> None:
        paths = [str(folder / ".venv" / "bin"), os.environ["PATH"]]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KFRAME_")}
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env={**environment, "PATH": os.pathsep.join(paths), "HOME": str(folder)},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate("kill $(jobs -p) 2>/dev/null; wait\n")

    def run(self, command: str) -> tuple[int, str]:
        """Run a command, and return its exit code and its output with standard error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n{_END} %d\\n' $?\n")
        self._process.stdin.flush()
        output: list[str] = []
        for line in self._process.stdout:
            if line.startswith(_END):
                return int(line.split()[-1]), "".join(output).removesuffix("\n")
            output.append(line)
        raise AssertionError(f"the shell has ended in {command!r}")


def prepare_folder(folder: Path, files: Mapping[str, Path] = {}) -> None:
    """Link the clone and its virtual environment into a folder, and copy ``files`` to their names there."""
    for path in ROOT.iterdir():
        if path.name not in {".git", ".venv", "build", "dist"}:
            (folder / path.name).symlink_to(path)
    (folder / ".venv").symlink_to(sys.prefix)
    for name, target in files.items():
        shutil.copy(target, folder / name)


def run_page(
    page: Path,
    folder: Path,
    excluded: Callable[[str], bool] = lambda _: False,
    replacements: Mapping[str, str] = {},
) -> None:
    """Run the blocks of a page in a folder; ``excluded`` names commands that do not run, by their first line.

    ``replacements`` are applied to each block: addresses of a page and those of the servers of a test.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    with Shell(folder) as shell, chdir(folder):
        for block in blocks(page):
            text = block.text
            for printed, actual in replacements.items():
                text = text.replace(printed, actual)
            current = Block(block.page, block.line, block.language, text)
            if current.file is not None:
                path = folder / current.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            elif block.language == "python" and not excluded(first_line(text)):
                exec(compile("\n" * block.line + text, block.page, "exec"), names)
            elif block.language in SHELL:
                for step in steps(current):
                    if not excluded(first_line(step.command)):
                        run_step(shell, step, block.location)


def first_line(code: str) -> str:
    """The first line of code."""
    return code.strip().partition("\n")[0]


def run_step(shell: Shell, step: Step, location: str) -> None:
    """Run a command, and compare its exit code and output with the page."""
    stated = _EXIT_CODE.search(step.command.partition("\n")[0])
    expected = 0 if stated is None else int(stated[1])
    code, output = shell.run(step.command)
    assert code == expected, f"{location}: {step.command}\nexit code {code}\n{output}"
    if step.output is not None:
        printed = "\n".join(line.rstrip() for line in output.rstrip().splitlines())
        assert output_pattern(step.output).fullmatch(printed), f"{location}: {step.command}\nprints\n{output}"


def output_pattern(output: str) -> re.Pattern[str]:
    """The regular expression of an output in which ``...`` matches any text."""
    text = "\n".join(line.rstrip() for line in output.rstrip().splitlines())
    return re.compile(re.escape(text).replace(r"\.\.\.", ".*"), re.DOTALL)
