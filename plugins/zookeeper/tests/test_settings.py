"""Settings from URLs, Kafka's configuration and JAAS files: accepted values and errors."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kframe_zookeeper.session.settings import (
    KEYS,
    ConnectSettings,
    SaslLogin,
    TlsSettings,
    read_sasl_login,
    settings_of_config,
    settings_of_url,
)

from kframe.errors import ConfigError
from kframe.model.kafka_keys import KAFKA_KEYS

JAAS = """
// Of the brokers.
KafkaServer { org.apache.kafka.common.security.plain.PlainLoginModule required username="x" password="y"; };
Client {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    /* username="commented" */ username="kafka"
    password="a \\"quoted\\" // } secret";
};
Kerberos { com.sun.security.auth.module.Krb5LoginModule required keyTab="DigestLoginModule"; };
Half { org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka"; };
"""
HOST = ConnectSettings((("h", 2181),))
TLS = {"zookeeper.ssl.client.enable": "true", "zookeeper.ssl.keystore.location": "own.pem"}


@pytest.mark.parametrize(
    "url, expected",
    [
        ("zookeeper://h", HOST),
        ("zookeeper://h/", HOST),
        ("zookeeper://h:2182", replace(HOST, hosts=(("h", 2182),))),
        ("zookeeper://a:1,b:2,[::1]:3", replace(HOST, hosts=(("a", 1), ("b", 2), ("::1", 3)))),
        ("zookeeper://h/kafka/main/", replace(HOST, chroot="/kafka/main")),
        ("zookeeper://h?session.timeout.ms=6000", replace(HOST, session_timeout_ms=6000, connection_timeout_ms=6000)),
        ("zookeeper://h/c?zookeeper.connection.timeout.ms=5", replace(HOST, chroot="/c", connection_timeout_ms=5)),
        ("zookeeper://h?ssl.client.enable=true", replace(HOST, tls=TlsSettings())),
        (
            "zookeeper://h?ssl.client.enable=true&ssl.truststore.location=/a/ca.pem&ssl.truststore.type=PEM",
            replace(HOST, tls=TlsSettings(authorities=Path("/a/ca.pem"))),
        ),
    ],
)
def test_url(url: str, expected: ConnectSettings) -> None:
    assert settings_of_url(url) == expected


@pytest.mark.parametrize(
    "url, value, expected",
    [
        ("h:2181", "'h:2181'", "zookeeper://HOST:PORT"),
        ("zookeeper:///kafka", "'zookeeper:///kafka'", "zookeeper://HOST:PORT"),
        ("zookeeper://h#x", "'zookeeper://h#x'", "zookeeper://HOST:PORT"),
        ("zookeeper://[::1", "'[::1'", "HOST:PORT"),
        ("zookeeper://h:0", "'h:0'", "HOST:PORT"),
        ("zookeeper://h:65536", "'h:65536'", "HOST:PORT"),
        ("zookeeper://h,,i", "''", "HOST:PORT"),
        ("zookeeper://h/a//b", "'/a//b'", "a chroot of names"),
        ("zookeeper://h/../b", "'/../b'", "a chroot of names"),
        ("zookeeper://kafka:secret@h", "a user name or password before @", "a JAAS file"),
        ("zookeeper://h?ssl.keystore.password=secret", "a password (ssl.keystore.password)", "a properties file"),
        ("zookeeper://h?session.timeuot.ms=1", "key 'session.timeuot.ms' unknown", "'session.timeout.ms' perhaps"),
        ("zookeeper://h?metadata.migration.enable=true", "key 'metadata.migration.enable' of a broker", "one of "),
        ("zookeeper://h?set.acl=true&set.acl=false", "key 'set.acl' twice", "'set.acl' perhaps"),
        ("zookeeper://h?connect=i", "key 'connect' twice", ""),
        ("zookeeper://h?session.timeout.ms=soon", "'soon'", "a whole number"),
        (
            "zookeeper://h?set.acl=true",
            "true, but neither a login nor a certificate",
            "a SASL login or a TLS certificate",
        ),
        ("zookeeper://h?ssl.truststore.type=JKS", "'JKS'", "PEM"),
        ("zookeeper://h?ssl.crl.enable=true", "'true'", "no such setting"),
        ("zookeeper://h?ssl.endpoint.identification.algorithm=", "''", "HTTPS"),
    ],
)
def test_url_refused(url: str, value: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings_of_url(url)
    assert value in caught.value.actual
    assert expected in caught.value.expected
    assert "secret" not in str(caught.value)


def test_kafkas_configuration(caplog: pytest.LogCaptureFixture) -> None:
    values: dict[str, Any] = {
        "broker.id": "1",
        "zookeeper.connect": " a:1 , b:2/kafka",
        "zookeeper.session.timeout.ms": "6000",
        "zookeeper.set.acl": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.keystore.password": "secret",
        **TLS,
    }
    with caplog.at_level(logging.WARNING):
        settings = settings_of_config(values)
    assert settings == ConnectSettings(
        (("a", 1), ("b", 2)), "/kafka", 6000, 6000, True, TlsSettings(None, Path("own.pem"), "secret")
    )
    assert settings.connect_string == "a:1,b:2/kafka"
    assert "secret" not in repr(settings)
    assert caplog.messages == []


@pytest.mark.parametrize(
    "key, value, message",
    [
        ("zookeeper.sesion.timeout.ms", "1", "'zookeeper.session.timeout.ms' perhaps"),
        ("zookeeper.metadata.migration.enabled", "1", "'zookeeper.metadata.migration.enable' perhaps"),
        ("zookeeper.ssl.keystore", "k.pem", "'zookeeper.ssl.keystore.type' perhaps"),
        ("zookeeper.Set.Acl", "true", "'zookeeper.set.acl' perhaps"),
    ],
)
def test_unknown_key_is_reported_with_closest_known_key(
    caplog: pytest.LogCaptureFixture, key: str, value: str, message: str
) -> None:
    with caplog.at_level(logging.WARNING, "kframe.config"):
        settings_of_config({"zookeeper.connect": "h", key: value}, "server.properties")
    assert caplog.messages == [f"server.properties: unknown key {key!r}; {message}"]


@pytest.mark.parametrize("key", sorted(key for key in KAFKA_KEYS if key.startswith("zookeeper.")))
def test_kafkas_keys_are_known(caplog: pytest.LogCaptureFixture, key: str) -> None:
    values = {key: KEYS[key].default if key in KEYS else "true", "zookeeper.connect": "h"}
    with caplog.at_level(logging.WARNING, "kframe.config"):
        settings_of_config(values, "server.properties")
    assert caplog.messages == []


def test_configuration_without_zookeeper_connect_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"config key zookeeper.connect: found '', expected HOST:PORT"):
        settings_of_config({})


@pytest.fixture
def jaas(tmp_path: Path) -> Path:
    path = tmp_path / "jaas.conf"
    path.write_text(JAAS)
    return path


def test_login_from_a_jaas_file(jaas: Path) -> None:
    values = {"zookeeper.connect": "h", "java.security.auth.login.config": str(jaas), "zookeeper.set.acl": "true"}
    settings = settings_of_config(values)
    assert settings.sasl == SaslLogin("kafka", 'a "quoted" // } secret')
    assert settings.secure_acl
    assert "secret" not in repr(settings)
    assert settings_of_config(values | {"zookeeper.sasl.client": "false", "zookeeper.set.acl": "false"}).sasl is None
    assert settings_of_url(f"zookeeper://h?java.security.auth.login.config={jaas}").sasl == settings.sasl


@pytest.mark.parametrize(
    "section, problem",
    [
        ("Nobody", "no section Nobody"),
        ("lient", "no section lient"),
        ("Kerberos", "another login module"),
        ("KafkaServer", "another login module"),
        ("Half", "no password"),
    ],
)
def test_jaas_refused(jaas: Path, section: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_sasl_login(jaas, section)
    assert caught.value.actual == problem
    assert "secret" not in str(caught.value)


def test_jaas_file_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="found no text that can be read"):
        read_sasl_login(tmp_path / "none", "Client")
