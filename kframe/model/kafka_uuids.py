"""Kafka's text of a UUID (``Uuid.toString``): 22 characters of URL-safe base64 without padding."""

from __future__ import annotations

import base64
import re
from typing import Final
from uuid import UUID

EXPECTED: Final = "22 characters of URL-safe base64"
_KAFKA: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_STANDARD: Final = re.compile(r"[A-Za-z0-9+/]{22}(?:==)?|[A-Za-z0-9_-]{22}==")
_HEXADECIMAL: Final = re.compile(r"[0-9A-Fa-f]{8}-?(?:[0-9A-Fa-f]{4}-?){3}[0-9A-Fa-f]{12}")


def is_kafka_uuid(text: str) -> bool:
    """Whether a text has the form of a UUID that Kafka prints."""
    return _KAFKA.fullmatch(text) is not None


def uuid_text(value: UUID) -> str:
    """Return Kafka's text of a UUID."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def uuid_of_text(text: str) -> UUID:
    """Return the UUID of Kafka's text. Raises ValueError if it is malformed."""
    if not is_kafka_uuid(text):
        raise ValueError(f"{text[:100]!r} is not {expected_uuid(text)}")
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def expected_uuid(text: str) -> str:
    """What is expected instead of a text that is no UUID of Kafka's. It names another form of a UUID, and Kafka's."""
    if _STANDARD.fullmatch(text):
        kafka = text.removesuffix("==").replace("+", "-").replace("/", "_")
        return f"{EXPECTED}: this is standard base64, which Kafka prints as {kafka}"
    if _HEXADECIMAL.fullmatch(text):
        return f"{EXPECTED}: this is hexadecimal, which Kafka prints as {uuid_text(UUID(text))}"
    return EXPECTED
