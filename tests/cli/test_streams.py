"""Every reader takes standard input (``-``) and named pipes."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kframe.cli.app import cli
from tests.cli.running import CLUSTER, HEALTHY, PLAN, kframe
from tests.snapshot.samples import DESCRIBE
from verification.support.pipes import ImmediateTimer, written_pipe

_READERS = {
    "whatif fail": ("whatif", "fail", "-", "--brokers", "4"),
    "whatif sweep": ("whatif", "sweep", "-", "--depth", "1"),
    "explain": ("explain", "-", "clickstream.changelog.v1-0"),
    "snapshot show": ("snapshot", "show", "-"),
    "snapshot show --list brokers": ("snapshot", "show", "-", "--list", "brokers"),
}
_FILES = ("healthy.zookeeper.jsonl.gz", "healthy.topics-describe.txt.gz", "healthy.kcat.json.gz")


def piped(content: bytes, *arguments: object) -> Result:
    """Run ``kframe ARGUMENTS`` with this standard input."""
    return CliRunner().invoke(cli, [*map(str, arguments)], input=content, prog_name="kframe")


def written_to(path: Path, content: bytes, *arguments: object) -> Result:
    """Run ``kframe ARGUMENTS`` while another thread writes the content to a pipe."""
    with written_pipe(path, content):
        return kframe(*arguments)


def same_but_for_the_name(text: str) -> str:
    return text.replace("standard input", "NAME").replace("healthy.zookeeper.jsonl.gz", "NAME")


@pytest.mark.parametrize("reader", _READERS)
def test_standard_input_output_equals_file_output(reader: str) -> None:
    arguments = _READERS[reader]
    from_file = kframe(*(HEALTHY if argument == "-" else argument for argument in arguments))
    from_pipe = piped(HEALTHY.read_bytes(), *arguments)
    assert (from_pipe.exit_code, from_file.exit_code) == (0, 0), from_pipe.output + from_file.output
    assert same_but_for_the_name(from_pipe.stdout) == same_but_for_the_name(from_file.stdout)


@pytest.mark.parametrize("name", _FILES)
def test_formats_are_detected_on_standard_input(name: str) -> None:
    content = (CLUSTER / name).read_bytes()
    for document in (content, gzip.decompress(content)):
        result = piped(document, "whatif", "fail", "-", "--brokers", "2")
        assert (result.exit_code, "645 partitions of standard input" in result.stdout) == (0, True), result.output


def test_plan_is_read_from_standard_input() -> None:
    result = piped(PLAN.read_bytes(), "plan", "check", HEALTHY, "-")
    assert result.exit_code == 0, result.output


def test_named_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    result = written_to(pipe, HEALTHY.read_bytes(), "whatif", "fail", pipe, "--brokers", "4")
    assert (result.exit_code, "645 partitions of" in result.stdout) == (0, True), result.output


def test_input_that_does_not_come_is_named_after_a_delay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threading.Timer", ImmediateTimer)
    dump, pipe = HEALTHY.read_bytes(), tmp_path / "pipe"
    results = {
        "standard input": piped(dump, "whatif", "fail", "-", "--brokers", "4"),
        f"the named pipe {pipe}": written_to(pipe, dump, "whatif", "fail", pipe, "--brokers", "4"),
        str(HEALTHY): kframe("whatif", "fail", HEALTHY, "--brokers", "4"),
        str(tmp_path): kframe("snapshot", "show", tmp_path),
    }
    for awaited, result in results.items():
        assert result.stderr.splitlines()[0] == f"waiting for {awaited}"
    assert [result.exit_code for result in results.values()] == [0, 0, 0, 2]


@pytest.mark.parametrize(
    "content, expected",
    [
        (b"", "standard input: found an empty file"),
        (b"nonsense\n", "standard input: found a file that starts with"),
        (DESCRIBE.encode()[:-50], "standard input:3: found a last line without an end"),
    ],
)
def test_errors_name_standard_input_and_line(content: bytes, expected: str) -> None:
    result = piped(content, "snapshot", "show", "-")
    assert (result.exit_code, expected in result.output) == (2, True), result.output
