"""``kframe console`` as a process: it serves a source until it is stopped."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner
from kframe_console.command import example
from kframe_console.launch import LaunchOptions, checked_options
from kframe_console.security.identities import StoredCredentials

from kframe.cli.app import cli
from kframe.plugin import ConfigError
from tests.architecture.source import ROOT
from verification.console.running import running_console

HEALTHY = ROOT / "examples" / "clusters" / "kafka-3.9.1-six-brokers" / "healthy.zookeeper.jsonl.gz"
#: A plugin with a live cluster, which is read from a file.
PLUGIN = f"""
from pathlib import Path

from kframe.plugin import ClusterSpec, hookimpl
from kframe.plugin.snapshot import read_snapshot


class FileCluster:
    def __init__(self, url, config):
        pass

    def capture(self, progress=None):
        return read_snapshot(Path({str(HEALTHY)!r}))


@hookimpl
def kframe_clusters():
    return [ClusterSpec("file-cluster", FileCluster, "A cluster in a file.")]
"""


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.extended)])
def test_console_serves_until_it_is_stopped(number: signal.Signals) -> None:
    with running_console(HEALTHY) as console:
        assert "Brokers by rack" in httpx2.get(console.url, trust_env=False).text
        assert console.stop(number=number) == 0
        assert "Traceback" not in console.printed()


def test_live_cluster_is_named_by_its_url(tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(PLUGIN)
    with running_console("file-cluster://here", "--refresh", "0.1", "--plugins-dir", tmp_path) as console:
        assert httpx2.get(f"{console.url}reading", trust_env=False).json()["problem"] is None
        assert "data-live" in httpx2.get(console.url, trust_env=False).text


def test_help_names_the_bundled_example() -> None:
    result = CliRunner().invoke(cli, ["console", "--help"])
    assert result.exit_code == 0
    assert f"kframe console {example()}" in result.stdout
    assert example().is_dir()


def test_new_user_is_a_line_of_a_users_file(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["console", "--new-user", "ada"], input="secret\nsecret\n")
    assert result.exit_code == 0
    (tmp_path / "users").write_text(result.stdout)
    assert list(StoredCredentials.read(tmp_path / "users", None).passwords) == ["ada"]
    assert "secret" not in result.stdout


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["zookeeper://h:1", "--command-config", str(HEALTHY)], "--command-config has settings for kafka:// and kraft"),
        (["kafka://h:1", "--config", str(HEALTHY)], "--config has settings for ZooKeeper"),
        ([str(HEALTHY), "--config", str(HEALTHY)], "--config and --command-config are for the URL of a live cluster"),
        ([str(HEALTHY), "--refresh", "0"], "--refresh"),
        ([str(HEALTHY), "--weights", "none.csv"], "none.csv"),
        ([str(HEALTHY), "--allow-execute"], "--allow-execute: found no --audit-log, expected --audit-log FILE"),
        ([str(HEALTHY), "--demo"], "found --demo beside SOURCE or --metrics"),
        (["--demo", "--metrics", "http://localhost:1"], "found --demo beside SOURCE or --metrics"),
        ([], "found no SOURCE"),
        (["--demo", "raft"], "'raft' is not one of"),
        (["--demo", "--partitions", "0"], "--partitions"),
    ],
    ids=str,
)
def test_unusable_arguments_are_refused_in_one_line(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, ["console", "--no-browser", "--listen", "0", *arguments])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


@pytest.mark.parametrize(
    "options, message",
    [
        ({"listen": "x"}, "--listen: found 'x', expected HOST:PORT"),
        ({"listen": "localhost:70000"}, "--listen"),
        ({"listen": "0.0.0.0:80"}, "--listen: found 0.0.0.0 without a login"),
        ({"listen": "[::]:80"}, "--listen: found :: without a login"),
        ({"listen": "example.org:80"}, "--listen: found example.org without a login"),
        ({"listen": "0.0.0.0:80", "users": Path("u")}, "--listen: found 0.0.0.0 without TLS"),
        ({"listen": "80", "tls_cert": Path("c")}, "--tls-cert, --tls-key: found one of them, expected both"),
        ({"listen": "80", "client_ca": Path("c")}, "--client-ca: found no --tls-cert"),
        ({"listen": "80", "allow_execute": True}, "--allow-execute: found no --audit-log"),
    ],
    ids=str,
)
def test_unsafe_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        checked_options(LaunchOptions(**options))
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    "options",
    [
        {"listen": "0"},
        {"listen": ":0"},
        {"listen": "localhost:1"},
        {"listen": "[::1]:1"},
        {"listen": "127.0.0.2:1"},
        {"listen": "0.0.0.0:1", "users": Path("u"), "plain_http": True},
        {"listen": "0.0.0.0:1", "tokens": Path("u"), "tls_cert": Path("c"), "tls_key": Path("k")},
        {"listen": "0:1", "client_ca": Path("u"), "tls_cert": Path("c"), "tls_key": Path("k")},
    ],
    ids=str,
)
def test_safe_options_are_accepted(options: dict[str, Any]) -> None:
    assert checked_options(LaunchOptions(**options)).port < 2
