"""Random ids."""

from __future__ import annotations

from uuid import UUID, uuid4

from kframe.plugin.kraft import directory_ids, uuid_text


def random_uuid() -> UUID:
    """A random id (Kafka ``Uuid.randomUuid``): no reserved one, and its text does not begin with a dash, which command
    lines take for an option."""
    while directory_ids.is_reserved(drawn := uuid4()) or uuid_text(drawn).startswith("-"):
        pass
    return drawn
