"""Plugin options that name nothing are refused, also by commands that need no plugin."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import HEALTHY, whatif


@pytest.mark.parametrize(
    "options, expected",
    [
        (("--no-plugin", "nosuch"), "disabled plugins: found nosuch, expected one of"),
        (("--plugins-dir", "nowhere"), "nowhere"),
    ],
)
def test_unknown_plugins_are_refused(options: tuple[str, ...], expected: str) -> None:
    result = whatif("fail", HEALTHY, "--brokers", "4", *options)
    assert (result.exit_code, expected in result.output) == (2, True), result.output


def test_known_plugins_can_be_disabled(tmp_path: Path) -> None:
    result = whatif("fail", HEALTHY, "--brokers", "4", "--no-plugin", "rack-spread", "--plugins-dir", tmp_path)
    assert result.exit_code == 0, result.output
