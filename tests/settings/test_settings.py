"""Sources of settings, their precedence, and errors of unknown or invalid settings."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kframe.errors import ConfigError
from kframe.settings.settings import Setting, Settings, environment_name

INTERVAL = "leader.imbalance.check.interval.seconds"
VARIABLE = "KFRAME_LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(f"# ours\nlog.dirs=/var/lib/kafka\n{INTERVAL}=1\n")
    return path


@pytest.mark.parametrize(
    "option, variable, in_file, expected",
    [
        ("3", "2", True, 3),
        (None, "2", True, 2),
        (None, None, True, 1),
        (None, None, False, 300),
        ("3", None, False, 3),
    ],
    ids=["option", "environment", "file", "default", "option alone"],
)
def test_precedence(file: Path, option: str | None, variable: str | None, in_file: bool, expected: int) -> None:
    options = {} if option is None else {INTERVAL: Setting(option, "option --interval")}
    environment = {} if variable is None else {VARIABLE: variable}
    settings = Settings.gather(options, environment, file if in_file else None)
    assert settings.controller_config()[INTERVAL] == expected


@pytest.mark.parametrize(
    "key, name",
    [
        (INTERVAL, VARIABLE),
        ("kframe.alter.partition.strict", "KFRAME_ALTER_PARTITION_STRICT"),
        ("zookeeper.connect", "KFRAME_ZOOKEEPER_CONNECT"),
        ("zookeeper.clientCnxnSocket", "KFRAME_ZOOKEEPER_CLIENTCNXNSOCKET"),
    ],
)
def test_environment_names(key: str, name: str) -> None:
    assert environment_name(key) == name
    assert Settings.gather({}, {name: "x"}).get(key) == "x"


@pytest.mark.parametrize(
    "settings, message",
    [
        (
            {INTERVAL: Setting("often", "s.properties:7")},
            r"s\.properties:7 key leader\.imb\S+: found 'often', expected a ",
        ),
        (
            {"num.partitions": Setting("0", "option --p")},
            r"option --p key num\.partitions: found 0, expected a whole",
        ),
        (
            {"delete.topic.enable": Setting("yes", "environment variable KFRAME_X")},
            r"environment variable KFRAME_X key delete\.topic\.enable: found 'yes', expected true or false",
        ),
    ],
    ids=["file", "option", "environment"],
)
def test_invalid_value_is_refused_with_its_location(settings: dict[str, Setting], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Settings(settings).controller_config()


def test_located_error_names_origin_and_hides_secret() -> None:
    settings = Settings({"ssl.key.password": Setting("hunter2", "s.properties:3")})
    with pytest.raises(ConfigError) as refused, settings.located():
        raise ConfigError("config key ssl.key.password", "'hunter2'", "another")
    assert (
        str(refused.value) == "s.properties:3 key ssl.key.password: found a value that is not shown, expected another"
    )


def test_located_error_of_other_key_is_unchanged() -> None:
    with pytest.raises(ConfigError, match=r"^elsewhere: found"), Settings({}).located():
        raise ConfigError("elsewhere", "this", "that")


FILE = "server.properties"
#: Content of the file, and the error message.
WARNINGS = {
    "misspelt": (
        "zookeper.connect=secret",
        f"{FILE}:1: unknown key 'zookeper.connect' is ignored; 'zookeeper.connect' perhaps",
    ),
    "strange": ("qqqq=secret", f"{FILE}:1: unknown key 'qqqq' is ignored"),
    "of Kafka": ("log.dirs=secret", None),
    "of its authorizer": ("super.users=secret", None),
    "of ours": ("kframe.register=secret", None),
    "of a listener": ("listener.name.internal.ssl.keystore.password=secret", None),
    "twice": (
        "num.io.threads=1\nnum.io.threads=secret",
        f"{FILE}:2: duplicate key num.io.threads replaces the value of {FILE}:1",
    ),
}


@pytest.mark.parametrize("text, warned", WARNINGS.values(), ids=WARNINGS)
def test_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, text: str, warned: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(FILE).write_text(text)
    with caplog.at_level(logging.WARNING, "kframe.config"):
        Settings.gather({}, {}, Path(FILE))
    assert caplog.messages == ([] if warned is None else [warned])
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    "name, warned",
    [("KFRAME_ZOOKEPER_CONNECT", True), ("KFRAME_PLUGINS_DIR", False), ("KFRAME_DEBUG", False), ("ZOOKEPER", False)],
)
def test_variables_that_nearly_fit_are_warned_of(caplog: pytest.LogCaptureFixture, name: str, warned: bool) -> None:
    with caplog.at_level(logging.WARNING, "kframe.config"):
        settings = Settings.gather({}, {name: "secret"})
    assert settings.values == {}
    expected = f"unknown environment variable {name} is ignored; 'KFRAME_ZOOKEEPER_CONNECT' perhaps"
    assert caplog.messages == ([expected] if warned else [])
