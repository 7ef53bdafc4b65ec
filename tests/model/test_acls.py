"""Filters of ACLs select what Kafka's ``ResourcePatternFilter`` and ``AccessControlEntryFilter`` select."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kframe.model.acls import AclFilter, PatternType

LITERAL, PREFIXED, MATCH = PatternType.LITERAL, PatternType.PREFIXED, PatternType.MATCH
TOPIC, GROUP = 2, 3
READ, WRITE, ALLOW, DENY = 3, 4, 3, 2

#: Fields of a filter; then a pattern as resource type, pattern type and name; and whether the filter selects it.
PATTERNS: Final[tuple[tuple[dict[str, Any], tuple[int, int, str], bool], ...]] = (
    ({}, (TOPIC, LITERAL, "t"), True),
    ({}, (GROUP, PREFIXED, "g-"), True),
    ({"resource_type": TOPIC}, (TOPIC, LITERAL, "t"), True),
    ({"resource_type": TOPIC}, (GROUP, LITERAL, "t"), False),
    # ANY compares the whole name, whatever the type of the pattern
    ({"resource_name": "t"}, (TOPIC, LITERAL, "t"), True),
    ({"resource_name": "t"}, (TOPIC, PREFIXED, "t"), True),
    ({"resource_name": "team"}, (TOPIC, PREFIXED, "t"), False),
    ({"resource_name": "t"}, (TOPIC, LITERAL, "*"), False),
    ({"resource_name": "*"}, (TOPIC, LITERAL, "*"), True),
    ({"resource_name": "*"}, (TOPIC, LITERAL, "t"), False),
    # LITERAL selects literal patterns of this name
    ({"pattern_type": LITERAL}, (TOPIC, LITERAL, "t"), True),
    ({"pattern_type": LITERAL}, (TOPIC, PREFIXED, "t"), False),
    ({"pattern_type": LITERAL, "resource_name": "t"}, (TOPIC, LITERAL, "t"), True),
    ({"pattern_type": LITERAL, "resource_name": "t"}, (TOPIC, LITERAL, "*"), False),
    ({"pattern_type": LITERAL, "resource_name": "t"}, (TOPIC, PREFIXED, "t"), False),
    ({"pattern_type": LITERAL, "resource_name": "*"}, (TOPIC, LITERAL, "*"), True),
    # PREFIXED selects prefixed patterns of this name, not those that apply to it
    ({"pattern_type": PREFIXED}, (TOPIC, PREFIXED, "t"), True),
    ({"pattern_type": PREFIXED}, (TOPIC, LITERAL, "t"), False),
    ({"pattern_type": PREFIXED, "resource_name": "te"}, (TOPIC, PREFIXED, "te"), True),
    ({"pattern_type": PREFIXED, "resource_name": "team"}, (TOPIC, PREFIXED, "te"), False),
    ({"pattern_type": PREFIXED, "resource_name": "te"}, (TOPIC, PREFIXED, "team"), False),
    # MATCH selects the patterns that apply to a resource of this name
    ({"pattern_type": MATCH}, (TOPIC, LITERAL, "t"), True),
    ({"pattern_type": MATCH}, (TOPIC, PREFIXED, "t"), True),
    ({"pattern_type": MATCH, "resource_name": "team"}, (TOPIC, LITERAL, "team"), True),
    ({"pattern_type": MATCH, "resource_name": "team"}, (TOPIC, LITERAL, "te"), False),
    ({"pattern_type": MATCH, "resource_name": "team"}, (TOPIC, LITERAL, "*"), True),
    ({"pattern_type": MATCH, "resource_name": "team"}, (TOPIC, PREFIXED, "te"), True),
    ({"pattern_type": MATCH, "resource_name": "team"}, (TOPIC, PREFIXED, "team"), True),
    ({"pattern_type": MATCH, "resource_name": "team"}, (TOPIC, PREFIXED, "team-1"), False),
    ({"pattern_type": MATCH, "resource_name": "team"}, (TOPIC, PREFIXED, "*"), False),
    ({"pattern_type": MATCH, "resource_name": "team", "resource_type": GROUP}, (TOPIC, LITERAL, "*"), False),
)


@pytest.mark.parametrize("fields, pattern, selected", PATTERNS)
def test_resource_pattern_filter(fields: dict[str, Any], pattern: tuple[int, int, str], selected: bool) -> None:
    assert AclFilter(**fields).matches_pattern(*pattern) is selected


#: Fields of a filter; then principal, host, operation and permission type of an entry; and whether it is selected.
ENTRIES: Final[tuple[tuple[dict[str, Any], tuple[str, str, int, int], bool], ...]] = (
    ({}, ("User:a", "*", READ, ALLOW), True),
    ({"principal": "User:a"}, ("User:a", "*", READ, ALLOW), True),
    ({"principal": "User:a"}, ("User:b", "*", READ, ALLOW), False),
    # wildcards of entries are for authorization; a filter compares the text
    ({"principal": "User:a"}, ("User:*", "*", READ, ALLOW), False),
    ({"principal": "User:*"}, ("User:*", "*", READ, ALLOW), True),
    ({"principal": "User:*"}, ("User:a", "*", READ, ALLOW), False),
    ({"host": "10.0.0.1"}, ("User:a", "10.0.0.1", READ, ALLOW), True),
    ({"host": "10.0.0.1"}, ("User:a", "*", READ, ALLOW), False),
    ({"host": "*"}, ("User:a", "*", READ, ALLOW), True),
    ({"host": "*"}, ("User:a", "10.0.0.1", READ, ALLOW), False),
    ({"operation": READ}, ("User:a", "*", READ, ALLOW), True),
    ({"operation": READ}, ("User:a", "*", WRITE, ALLOW), False),
    ({"operation": READ}, ("User:a", "*", 2, ALLOW), False),  # ALL is an operation of its own
    ({"permission_type": DENY}, ("User:a", "*", READ, DENY), True),
    ({"permission_type": DENY}, ("User:a", "*", READ, ALLOW), False),
    (
        {"principal": "User:a", "host": "*", "operation": READ, "permission_type": DENY},
        ("User:a", "*", READ, ALLOW),
        False,
    ),
)


@pytest.mark.parametrize("fields, entry, selected", ENTRIES)
def test_access_control_entry_filter(fields: dict[str, Any], entry: tuple[str, str, int, int], selected: bool) -> None:
    assert AclFilter(**fields).matches_entry(*entry) is selected
