"""The rule and the keys of the authorizer of a KRaft controller (Kafka 4.4 ``StandardAuthorizer``)."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import pytest
from kframe_kafka_wire.records.principals import Principal
from kframe_kraft.server.authorizer import AuthorizerSettings, StandardAuthorizer, authorizer_settings, host_address

from kframe.errors import ConfigError
from kframe.plugin.kraft import ClusterMetadata, replay
from verification.kraft.acl_tables import (
    ALL,
    CREATE,
    DELETE,
    DENY,
    GROUP_KIND,
    PREFIXED,
    TOPIC_KIND,
)
from verification.kraft.secured_controller import AclLine, secured_config

# -- the rule: whether ann, at 127.0.0.1, may create topic x

ALLOWED, REFUSED = True, False
RULES: Final = [
    (REFUSED, ()),
    (ALLOWED, (AclLine(CREATE, "x"),)),
    (ALLOWED, (AclLine(ALL, "x"),)),
    (ALLOWED, (AclLine(CREATE, "x", principal="User:*"),)),
    (REFUSED, (AclLine(CREATE, "x", principal="User:an"),)),
    (REFUSED, (AclLine(CREATE, "x", principal="Group:ann"),)),
    (REFUSED, (AclLine(CREATE, "x", GROUP_KIND),)),
    (REFUSED, (AclLine(CREATE, "xx"),)),
    (REFUSED, (AclLine(CREATE, "xx", pattern_type=PREFIXED),)),
    (ALLOWED, (AclLine(CREATE, "x", pattern_type=PREFIXED),)),
    (REFUSED, (AclLine(CREATE, "*", pattern_type=PREFIXED),)),
    (ALLOWED, (AclLine(CREATE, "*"),)),
    (REFUSED, (AclLine(CREATE, "x"), AclLine(CREATE, "x", permission=DENY))),
    (REFUSED, (AclLine(CREATE, "x"), AclLine(ALL, "*", permission=DENY, principal="User:*"))),
    (REFUSED, (AclLine(ALL, "*"), AclLine(CREATE, "x", pattern_type=PREFIXED, permission=DENY))),
    (ALLOWED, (AclLine(CREATE, "x"), AclLine(DELETE, "x", permission=DENY))),
    (ALLOWED, (AclLine(CREATE, "x"), AclLine(ALL, "x", permission=DENY, principal="User:bob"))),
    (ALLOWED, (AclLine(CREATE, "x"), AclLine(ALL, "x", permission=DENY, host="10.1.1.1"))),
    (REFUSED, (AclLine(CREATE, "x"), AclLine(ALL, "x", permission=DENY, host="127.0.0.1"))),
    (ALLOWED, (AclLine(CREATE, "x", host="127.0.0.0/8"),)),
    (REFUSED, (AclLine(CREATE, "x", host="10.0.0.0/8"),)),
    (REFUSED, (AclLine(CREATE, "x", host="127.0.0.0/33"),)),
    (REFUSED, (AclLine(CREATE, "x"), AclLine(CREATE, "*", host="0.0.0.0/0", permission=DENY))),
]


@pytest.mark.parametrize(("is_allowed", "acls"), RULES)
def test_acls_of_a_topic(is_allowed: bool, acls: tuple[AclLine, ...]) -> None:
    metadata = ClusterMetadata()
    authorizer = StandardAuthorizer(metadata, AuthorizerSettings(frozenset({"User:root"}), allow_everyone=False))
    for number, acl in enumerate(acls):
        replay(metadata, acl.record(UUID(int=number + 1)), 0)

    def allows(name: str) -> bool:
        return authorizer.allows(Principal(name), "127.0.0.1", CREATE, TOPIC_KIND, "x")

    assert allows("ann") == is_allowed
    assert allows("root")


# -- keys


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, None),
        ({"super.users": "User:a"}, None),
        ({"authorizer.class.name": ""}, None),
        (
            {"super.users": " User:a ;; User:CN=b,O=c;"},
            AuthorizerSettings(frozenset({"User:a", "User:CN=b,O=c"}), False),
        ),
        ({"allow.everyone.if.no.acl.found": "TRUE"}, AuthorizerSettings(frozenset(), True)),
    ],
)
def test_keys_of_the_authorizer(config: dict[str, str], expected: AuthorizerSettings | None) -> None:
    named = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    assert authorizer_settings({**named, **config} if expected is not None else config) == expected


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("authorizer.class.name", "kafka.security.authorizer.AclAuthorizer", "StandardAuthorizer"),
        ("super.users", "admin", "TYPE:NAME"),
        ("super.users", "User:a;:b", "TYPE:NAME"),
        ("allow.everyone.if.no.acl.found", "yes", "true or false"),
    ],
)
def test_wrong_keys_of_the_authorizer(key: str, value: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as error:
        authorizer_settings({**secured_config(), key: value})
    assert key in str(error.value)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::ab:0", "2001:db8:0:0:0:0:ab:0"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("", ""),
    ],
)
def test_addresses_are_written_as_in_java(host: str, address: str) -> None:
    assert host_address(host) == address
