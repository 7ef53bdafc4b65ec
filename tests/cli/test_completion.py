"""Completion of commands, brokers, topics, partitions and selectors."""

from __future__ import annotations

import pytest

from kframe.cli.app import cli
from tests.cli.running import HEALTHY, kframe


def completions(monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """What bash is offered for the last of ``words``."""
    from click.shell_completion import BashComplete

    monkeypatch.setenv("COMP_WORDS", " ".join(("kframe", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    complete = BashComplete(cli, {}, "kframe", "_KFRAME_COMPLETE")
    return [item.value for item in complete.get_completions(*complete.get_completion_args())]


@pytest.mark.parametrize(
    "words, expected",
    [
        (("what",), ["whatif"]),
        (("whatif", "fail", str(HEALTHY), "--brokers", ""), ["1", "2", "3", "4", "5", "6"]),
        (("whatif", "fail", str(HEALTHY), "--brokers", "4,1,"), ["4,1,2", "4,1,3", "4,1,5", "4,1,6"]),
        (
            ("explain", str(HEALTHY), "pricing.commands.v1-1"),
            ["pricing.commands.v1-1", "pricing.commands.v1-10", "pricing.commands.v1-11"],
        ),
        (("explain", str(HEALTHY), "pricing.c"), ["pricing.changelog.v1-", "pricing.commands.v1-"]),
        (("snapshot", "show", str(HEALTHY), "--topics", "pricing.c"), ["pricing.changelog.v1", "pricing.commands.v1"]),
        (("whatif", "fail", "nowhere", "--brokers", ""), []),
    ],
)
def test_completions(words: tuple[str, ...], expected: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert completions(monkeypatch, *words) == expected


def test_selectors_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "rack-spread" in completions(monkeypatch, "whatif", "fail", str(HEALTHY), "--selector", "rack")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_printed(shell: str) -> None:
    result = kframe("completion", shell)
    assert (result.exit_code, "_KFRAME_COMPLETE" in result.output) == (0, True)
