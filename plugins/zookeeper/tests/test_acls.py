"""Kafka's ACLs, and what the audit finds open."""

from __future__ import annotations

import pytest
from kframe_zookeeper.acls import (
    ADMIN,
    CREATOR_AND_READERS,
    CREATOR_ONLY,
    OPEN,
    READ,
    WRITE,
    Exposed,
    Permit,
    acl_of,
    find_exposed,
)


@pytest.mark.parametrize(
    "path, acl",
    [
        ("/controller", CREATOR_AND_READERS),
        ("/brokers/topics/t/partitions/0/state", CREATOR_AND_READERS),
        ("/config/topics/t", CREATOR_AND_READERS),
        ("/config", CREATOR_AND_READERS),
        ("/config/users", CREATOR_ONLY),
        ("/config/users/u", CREATOR_ONLY),
        ("/config/brokers/<default>", CREATOR_ONLY),
        ("/config/usersmore", CREATOR_AND_READERS),
        ("/delegation_token/tokens/x", CREATOR_ONLY),
        ("/delegation_token/token_changes", CREATOR_AND_READERS),
        ("/consumers", OPEN),
        ("/consumers/g", OPEN),
    ],
)
def test_acl_of_a_path(path: str, acl: tuple[Permit, ...]) -> None:
    assert acl_of(path, secure=True) == acl
    assert acl_of(path, secure=False) == OPEN


def test_what_is_exposed() -> None:
    world_reads = Permit(READ, "world", "anyone")
    assert find_exposed(
        {
            "/brokers": OPEN,
            "/admin": [Permit(WRITE, "world", "anyone"), Permit(ADMIN, "sasl", "kafka")],
            "/controller": CREATOR_AND_READERS,
            "/config/users": [*CREATOR_ONLY, world_reads],
            "/config/topics": [world_reads],
            "/feature": [Permit(WRITE, "sasl", "kafka")],
            "/migration": [],
        }
    ) == (Exposed("/admin", True), Exposed("/brokers", True), Exposed("/config/users", False))
