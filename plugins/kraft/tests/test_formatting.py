"""``kframe kraft format``, and the configuration of a controller by Kafka's keys."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from click import UsageError
from kframe_kraft.commands.scram_users import scram_users
from kframe_kraft.disk import read_checkpoint, read_properties
from kframe_kraft.disk.names import BOOTSTRAP_ID, BOOTSTRAP_NAME
from kframe_kraft.errors import LogError
from kframe_kraft.log import LogSettings, RetentionSettings
from kframe_kraft.server.formatting import format_node
from kframe_kraft.server.node_config import NodeConfig, node_config
from kframe_kraft.server.serving import make_controller
from kframe_kraft.server.snapshotting import SnapshotSettings
from kframe_kraft.sources.detection import LOG_DIRECTORY

from kframe.errors import ConfigError
from kframe.model.kraft.levels import default_levels
from kframe.plugin.kraft import control, records
from tests.cli.running import kframe

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
NOW = 1_700_000_000_000
KEYS = {
    "process.roles": "controller",
    "node.id": "9",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://localhost:9093",
    "controller.quorum.voters": "9@localhost:9093",
    "log.dirs": "/logs",
}


def config(folder: Path, **keys: str) -> NodeConfig:
    given = {**KEYS, "log.dirs": str(folder / "a"), **{key.replace("_", "."): value for key, value in keys.items()}}
    return node_config(given)


def test_keys_of_a_controller(tmp_path: Path) -> None:
    read = config(
        tmp_path,
        metadata_log_dir=str(tmp_path / "m"),
        log_dirs=f"{tmp_path}/a, {tmp_path}/b",
        controller_listener_names="CONTROLLER, ADMIN",
        listeners="CONTROLLER://:9093,ADMIN://localhost:9095",
        advertised_listeners="CONTROLLER://c1.example:1093",
        controller_quorum_voters="9@localhost:9093, 10@[::1]:9094",
        metadata_log_segment_bytes="8388608",
        metadata_log_segment_ms="7",
        metadata_log_max_record_bytes_between_snapshots="5",
        metadata_log_max_snapshot_interval_ms="0",
        metadata_max_retention_bytes="-1",
        metadata_max_retention_ms="9",
        metadata_max_idle_interval_ms="0",
        broker_session_timeout_ms="3000",
        auto_leader_rebalance_enable="false",
        min_insync_replicas="2",
        num_partitions="4",
        controller_quota_window_num="5",
        controller_quota_window_size_seconds="2",
        log_roll_hours="3",
    )
    assert read.directory == tmp_path / "m"
    assert read.directories == (tmp_path / "m", tmp_path / "a", tmp_path / "b")
    assert [(endpoint.listener, endpoint.port) for endpoint in read.bound] == [("CONTROLLER", 9093), ("ADMIN", 9095)]
    settings = read.settings
    assert settings.endpoints == (
        control.VoterEndpoint(name="CONTROLLER", host="c1.example", port=1093),
        control.VoterEndpoint(name="ADMIN", host="localhost", port=9095),
    )
    assert [(voter.voter_id, voter.endpoints[0].host) for voter in settings.static_voters.members] == [
        (9, "localhost"),
        (10, "::1"),
    ]
    assert (settings.log, settings.snapshots) == (LogSettings(8388608, 7), SnapshotSettings(5, 0))
    assert settings.retention == RetentionSettings(-1, 9)
    assert (settings.session_timeout_ns, settings.no_op_ms, settings.balance_ms) == (3 * 10**9, 0, 0)
    assert (read.kraft.min_insync_replicas, read.kraft.num_partitions) == (2, 4)
    static = read.kraft.static_configs
    assert (settings.mutation_window_s, static["log.roll.hours"], static["broker.id"]) == (10, "3", "9")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"process.roles": ""}, "process.roles"),
        ({"process.roles": "broker,controller"}, "kframe is no broker"),
        ({"node.id": "-1"}, "node.id"),
        ({"node.id": "x"}, "node.id"),
        ({"controller.listener.names": ""}, "controller.listener.names"),
        ({"controller.listener.names": "OTHER"}, "an entry for listener CONTROLLER"),
        ({"listeners": "CONTROLLER://:9093,PLAINTEXT://:9092"}, "listeners of controller.listener.names alone"),
        ({"listeners": "CONTROLLER://localhost:0"}, "CONTROLLER on port 0"),
        ({"listeners": "CONTROLLER"}, "listeners"),
        ({"controller.quorum.voters": "9@localhost"}, "ID@HOST:PORT"),
        ({"controller.quorum.voters": "9@localhost:99999"}, "ID@HOST:PORT"),
        ({"log.dirs": " , "}, "a directory for the metadata log"),
        ({"metadata.log.segment.bytes": "100"}, "from 8388608"),
        ({"auto.leader.rebalance.enable": "perhaps"}, "true or false"),
        ({"controller.quota.window.num": "0"}, "controller.quota.window.num"),
        ({"log.retention.ms": "a week"}, "log.retention.ms: found 'a week', expected a value of type LONG"),
        ({"log.cleaner.min.cleanable.ratio": "half"}, "a value of type DOUBLE"),
        ({"log.preallocate": "1"}, "a value of type BOOLEAN"),
        ({"advertised.listeners": "CONTROLLER://0.0.0.0:9093"}, "an address that others can connect to"),
    ],
)
def test_bad_keys_are_refused(keys: Mapping[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        node_config({**KEYS, **keys})


SASL: Final = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.controller.plain.sasl.jaas.config": "x.PlainLoginModule required user_a=b;",
}


def test_keys_of_logins() -> None:
    for mechanism in ("", "PLAIN", "SCRAM-SHA-256"):
        make_controller("kraft:", {**KEYS, **SASL, "sasl.mechanism.controller.protocol": mechanism})
    # A listener without logins does not need the keys of SASL.
    make_controller("kraft:", {**KEYS, "sasl.mechanism.controller.protocol": "GSSAPI"})


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"authorizer.class.name": "StandardAuthorizer"}, "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        ({"listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT"}, "sasl.enabled.mechanisms: found GSSAPI"),
        ({**SASL, "sasl.enabled.mechanisms": "OAUTHBEARER"}, "sasl.enabled.mechanisms: found OAUTHBEARER"),
        ({**SASL, "listener.name.controller.plain.sasl.jaas.config": ""}, "plain.sasl.jaas.config"),
        ({**SASL, "sasl.mechanism.controller.protocol": "GSSAPI"}, "found GSSAPI, expected one of PLAIN, SCRAM"),
        ({**SASL, "listener.security.protocol.map": "CONTROLLER:SASL_SSL"}, "ssl.keystore.location"),
    ],
)
def test_bad_keys_of_security_are_refused(keys: Mapping[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        make_controller("kraft:", {**KEYS, **keys})


@pytest.mark.parametrize("standalone", [False, True], ids=["static", "dynamic"])
def test_directories_are_formatted(tmp_path: Path, standalone: bool) -> None:
    node = config(tmp_path, log_dirs=f"{tmp_path}/a,{tmp_path}/b")
    levels = default_levels(30)
    results = format_node(node, CLUSTER_ID, levels, standalone=standalone, now=NOW)
    assert [(each.path, each.is_new) for each in results] == [(tmp_path / "a", True), (tmp_path / "b", True)]
    first, second = (read_properties(path) for path in node.directories)
    assert (first.cluster_id, first.node_id) == (second.cluster_id, second.node_id) == (CLUSTER_ID, 9)
    assert first.directory_id != second.directory_id
    assert not (tmp_path / "b" / LOG_DIRECTORY).exists()
    for path in (tmp_path / "a" / LOG_DIRECTORY / BOOTSTRAP_ID.file_name, tmp_path / "a" / BOOTSTRAP_NAME):
        written = [record.record for record in read_checkpoint(path).records()]
        assert written[0] == records.FeatureLevelRecord(name="metadata.version", feature_level=30)
        expected = [records.FeatureLevelRecord(name=name, feature_level=levels[name]) for name in levels]
        assert sorted(map(str, written)) == sorted(map(str, expected))
    checkpoint = read_checkpoint(tmp_path / "a" / LOG_DIRECTORY / BOOTSTRAP_ID.file_name)
    assert checkpoint.kraft_version == int(standalone)
    if standalone:
        assert checkpoint.voters is not None
        (voter,) = checkpoint.voters.voters
        assert (voter.voter_id, voter.voter_directory_id) == (9, first.directory_id)
        assert voter.endpoints == node.settings.endpoints


def test_formatted_directories_are_left(tmp_path: Path) -> None:
    format_node(config(tmp_path), CLUSTER_ID, default_levels(30), standalone=False, now=NOW)
    node = config(tmp_path, log_dirs=f"{tmp_path}/a,{tmp_path}/b")
    before = read_properties(tmp_path / "a")
    with pytest.raises(LogError, match="a formatted directory"):
        format_node(node, CLUSTER_ID, default_levels(30), standalone=False, now=NOW)
    results = format_node(node, CLUSTER_ID, default_levels(30), standalone=False, ignore_formatted=True, now=NOW)
    assert [each.is_new for each in results] == [False, True]
    assert read_properties(tmp_path / "a") == before


@pytest.mark.parametrize(
    "text", ["", "x", "4L6g3nShT-eMCtK--X86s", "4L6g3nShT-eMCtK--X86sw==", "4L6g3nShT eMCtK--X86sw"]
)
def test_cluster_id_is_a_uuid(tmp_path: Path, text: str) -> None:
    with pytest.raises(LogError, match="22 characters of URL-safe base64"):
        format_node(config(tmp_path), text, default_levels(30), standalone=False, now=NOW)


@pytest.mark.parametrize(
    ("level", "levels"),
    [
        (7, {}),
        (22, {"group.version": 1}),
        (25, {"group.version": 1, "transaction.version": 2}),
        (
            30,
            {
                "eligible.leader.replicas.version": 1,
                "group.version": 1,
                "share.version": 1,
                "streams.version": 1,
                "transaction.version": 2,
            },
        ),
        (
            31,
            {
                "eligible.leader.replicas.version": 1,
                "group.version": 1,
                "share.version": 2,
                "streams.version": 1,
                "transaction.version": 2,
            },
        ),
    ],
)
def test_features_of_a_level(level: int, levels: Mapping[str, int]) -> None:
    assert default_levels(level) == {"metadata.version": level, **levels}


def write_properties(folder: Path, **keys: str) -> Path:
    given = {**KEYS, "log.dirs": str(folder / "a"), **{key.replace("_", "."): value for key, value in keys.items()}}
    path = folder / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
    return path


#: The example of RFC 7677, and its keys.
PENCIL: Final = "name=user,password=pencil,salt=W22ZaJ0SNY7soEsUEjb6gQ=="
PENCIL_KEYS: Final = (
    "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=",
    "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=",
)


def salted(password: str) -> str:
    """The salted password of the example, in base64."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    return base64.b64encode(hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 4096)).decode()


@pytest.mark.parametrize(
    "content",
    [
        PENCIL,
        'name="user", password="pencil" ,salt=W22ZaJ0SNY7soEsUEjb6gQ==,iterations=4096',
        f"name=user,saltedpassword={salted('pencil')},salt=W22ZaJ0SNY7soEsUEjb6gQ==",
    ],
)
def test_scram_users_have_the_keys_of_the_rfc(content: str) -> None:
    (user,) = scram_users([f"SCRAM-SHA-256=[{content}]"], 30)
    keys = tuple(base64.b64encode(key).decode() for key in (user.stored_key, user.server_key))
    assert (user.name, user.mechanism, user.iterations, keys) == ("user", 1, 4096, PENCIL_KEYS)


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["MD5=[name=a,password=b]"], "another mechanism"),
        (["SCRAM-SHA-256"], "no brackets"),
        (["SCRAM-SHA-256=name=a,password=b"], "no brackets"),
        (["SCRAM-SHA-256=[password=b]"], "expected name"),
        (["SCRAM-SHA-256=[name=a]"], "either password or saltedpassword"),
        (["SCRAM-SHA-256=[name=a,password=b,saltedpassword=Yg==]"], "either password or saltedpassword"),
        (["SCRAM-SHA-256=[name=a,saltedpassword=Yg==]"], "without salt"),
        (["SCRAM-SHA-256=[name=a,password=b,password=c]"], "at most once"),
        (["SCRAM-SHA-256=[name=a,password=b,hash=c]"], "expected KEY=VALUE"),
        (["SCRAM-SHA-256=[name=a,password=b,iterations=4095]"], "expected 4096 to 16384"),
        (["SCRAM-SHA-256=[name=a,password=b,iterations=many]"], "expected 4096 to 16384"),
        (["SCRAM-SHA-256=[name=a,password=b,salt=%]"], "salt: found no base64"),
        (["SCRAM-SHA-512=[name=a,password=b]"] * 2, "each mechanism of a user once"),
    ],
)
def test_bad_scram_users_are_refused_without_their_passwords(texts: list[str], problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as refusal:
        scram_users(texts, 30)
    assert "=b" not in str(refusal.value)


def test_scram_users_need_their_level() -> None:
    with pytest.raises(UsageError, match=r"metadata\.version 10, expected 11"):
        scram_users([f"SCRAM-SHA-256=[{PENCIL}]"], 10)


def test_command_formats_scram_users(tmp_path: Path) -> None:
    path = write_properties(tmp_path)
    users = ("--add-scram", "SCRAM-SHA-256=[name=ann,password=a]", "-S", "SCRAM-SHA-512=[name=ann,password=a]")
    result = kframe("kraft", "format", "-t", CLUSTER_ID, "-c", path, "-r", "4.0", *users, "-o", "json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["scram_users"] == ["ann"]
    written = [each.record for each in read_checkpoint(tmp_path / "a" / BOOTSTRAP_NAME).records()]
    first, second = (each for each in written if isinstance(each, records.UserScramCredentialRecord))
    assert (first.mechanism, second.mechanism) == (1, 2)
    assert first.salt != second.salt


def test_command_formats(tmp_path: Path) -> None:
    path = write_properties(tmp_path)
    result = kframe("kraft", "format", "-t", CLUSTER_ID, "-c", path, "-r", "4.0", "-f", "group.version=0", "-o", "json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["features"] == {"metadata.version": 25, "transaction.version": 2}
    assert (document["quorum"], document["formatted"], document["left"]) == ("static", [str(tmp_path / "a")], [])
    stored = read_checkpoint(tmp_path / "a" / BOOTSTRAP_NAME).records()
    assert [record.record for record in stored] == [
        records.FeatureLevelRecord(name="metadata.version", feature_level=25),
        records.FeatureLevelRecord(name="transaction.version", feature_level=2),
    ]


@pytest.mark.parametrize(
    ("keys", "options", "problem"),
    [
        ({}, ("--standalone",), "which is for static quorums"),
        ({"controller_quorum_voters": ""}, (), "or --standalone"),
        ({}, ("-r", "9.9"), "a level such as 4.3-IV0"),
        ({}, ("-f", "nosuch=1"), "expected NAME=LEVEL"),
        ({}, ("-f", "group.version=7"), "group.version 7, expected 0 to 1"),
        ({}, ("-f", "metadata.version=3"), "metadata.version 3, expected 7 to 33"),
    ],
)
def test_command_refuses(tmp_path: Path, keys: Mapping[str, str], options: tuple[str, ...], problem: str) -> None:
    result = kframe("kraft", "format", "-t", CLUSTER_ID, "-c", write_properties(tmp_path, **keys), *options)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert not (tmp_path / "a").exists()
