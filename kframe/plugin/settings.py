"""Configuration by Kafka's keys: parsers of values, JAAS logins, and the reasons for which TLS fails."""

from __future__ import annotations

from kframe.model.config import Key, boolean, nearest, text, whole
from kframe.model.kafka_keys import KAFKA_KEYS
from kframe.model.texts import short_repr
from kframe.model.whole_numbers import INT32_MAX, INT64_MAX, parse_whole
from kframe.settings.jaas import LoginModule, parse_login_modules, read_login_modules
from kframe.settings.properties import read_properties
from kframe.settings.tls import tls_refusal

__all__ = [
    "INT32_MAX",
    "INT64_MAX",
    "KAFKA_KEYS",
    "Key",
    "LoginModule",
    "boolean",
    "nearest",
    "parse_login_modules",
    "parse_whole",
    "read_login_modules",
    "read_properties",
    "short_repr",
    "text",
    "tls_refusal",
    "whole",
]
