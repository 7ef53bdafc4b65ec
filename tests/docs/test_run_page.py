"""A block that fails, prints something else or has an invalid command line is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.docs import blocks as reader
from tests.docs.blocks import Block, Step, steps
from tests.docs.command_lines import command_lines, usage_error, words
from tests.docs.run_page import prepare_folder, run_page


def write_page(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a page of a repository that consists of this page."""
    page = folder / "no-such-page.md"
    page.write_text(text)
    monkeypatch.setattr(reader, "ROOT", folder)
    return page


@pytest.mark.parametrize(
    "text",
    [
        "```sh\nNAME=kframe\n```\n\n```console\n$ echo $NAME\nkframe\n```\n",
        "```sh\n(exit 3)  # exit code 3\n```\n",
        "```console\n$ printf 'a\\nb\\nc\\n'\na\n...\n$ echo 12 s\n... s\n```\n",
        '```python\ncount = 1\n```\n\n```python\nassert count == 1\n```\n',
        '```python\n# module.py\nraise SystemExit(4)\n```\n\n```sh\npython module.py  # exit code 4\n```\n',
        "```yaml\n# file.yaml\na: 1\n```\n\n```console\n$ cat file.yaml\n# file.yaml\na: 1\n```\n",
        "1. In a list:\n\n   ```console\n   $ echo a\n   a\n   ```\n",
        "```sh\ncat > list <<'EOF'\na\nEOF\ngrep -q a list\n```\n",
    ],
)  # fmt: skip
def test_page_runs(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(write_page(tmp_path, text, monkeypatch), tmp_path)


@pytest.mark.parametrize(
    "text, message",
    [
        ("```sh\nfalse\n```\n", "no-such-page.md:1: false\nexit code 1"),
        ("```sh\ntrue  # exit code 3\n```\n", "exit code 0"),
        ("```console\n$ echo a\nb\n```\n", "prints\na"),
        ("```console\n$ echo a\n```\n", "prints\na"),
        ("```sh\nexit 1\n```\n", "the shell has ended in 'exit 1'"),
        ("```python\nassert [] == ['a']\n```\n", ""),
    ],
)
def test_failure_of_a_block_is_reported(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssertionError) as failure:
        run_page(write_page(tmp_path, text, monkeypatch), tmp_path)
    assert message in str(failure.value)


def test_excluded_commands_do_not_run_and_addresses_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = write_page(tmp_path, "```sh\nfalse\ntest broker:9092 = localhost:4711\n```\n", monkeypatch)
    run_page(page, tmp_path, lambda start: start == "false", {"broker:9092": "localhost:4711"})


def test_folder_has_clone_environment_and_files(tmp_path: Path) -> None:
    prepare_folder(tmp_path, {"plan.json": ROOT / "README.md"})
    assert (tmp_path / "examples").samefile(ROOT / "examples")
    assert (tmp_path / ".venv" / "bin" / "python").exists()
    assert not (tmp_path / "plan.json").is_symlink()


@pytest.mark.parametrize(
    "language, text, expected",
    [
        ("sh", "# setup\na \\\n  b\n\nc 'd\ne'\n", [Step("a \\\n  b", None), Step("c 'd\ne'", None)]),
        ("sh", "cat <<EOF\na\n\n# b\nEOF\nc\n", [Step("cat <<EOF\na\n\n# b\nEOF", None), Step("c", None)]),
        ("console", "$ a\n1\n$ b \\\n> c\n", [Step("a", "1"), Step("b \\\nc", "")]),
    ],
)
def test_steps(language: str, text: str, expected: list[Step]) -> None:
    assert steps(Block("no-such-page.md", 1, language, text)) == expected


@pytest.mark.parametrize(
    "command, expected",
    [
        ("kframe states --dot > states.dot", [["states", "--dot"]]),
        ("A=1 .venv/bin/kframe states 2> errors", [["states"]]),
        ("cat t.txt | kframe whatif fail - --brokers 2  # pipe", [["whatif", "fail", "-", "--brokers", "2"]]),
        ("kframe states && kframe demo", [["states"], ["demo"]]),
        ("kframe whatif fail A \\\n  --brokers 2", [["whatif", "fail", "A", "--brokers", "2"]]),
        ("docker exec kframe kframe states", []),
    ],
)
def test_command_lines(command: str, expected: list[list[str]]) -> None:
    assert list(command_lines(command)) == expected


@pytest.mark.parametrize(
    "line, error",
    [
        ("whatif fail cluster --brokers 4", None),
        ("whatif fail $SNAPSHOT --brokers N", None),
        ("sim run --seeds 1..20", None),
        ("--version", None),
        ("whatif --help", None),
        ("no-such-command", "kframe has no command no-such-command"),
        ("whatif", "kframe whatif needs a command"),
        ("whatif fail --brokers 4", "kframe whatif fail needs SNAPSHOT"),
        ("whatif fail a b --brokers 4", "kframe whatif fail: unexpected argument b"),
        ("whatif fail a --no-such-option", "kframe whatif fail: No such option '--no-such-option'."),
        ("whatif fail a -o xml", "is not one of"),
        ("whatif sweep a --depth many", "expected a whole number from 1 to 2"),
        ("--no-such-option", "kframe has no option --no-such-option"),
    ],
)
def test_usage_error(line: str, error: str | None) -> None:
    reported = usage_error(words(line))
    assert reported is None if error is None else error in str(reported)


@pytest.mark.parametrize("line", ["whatif fail", "whatif", "whatif fail --brokers", "whatif ARGUMENTS"])
def test_mentioned_command_may_omit_arguments(line: str) -> None:
    assert usage_error(words(line), complete=False) is None
