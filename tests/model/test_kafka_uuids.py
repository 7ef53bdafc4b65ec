"""Kafka's text of a UUID, and other forms, which errors name with the text that Kafka prints."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import pytest

from kframe.errors import InputError, RecordError
from kframe.model.kafka_uuids import expected_uuid, uuid_of_text, uuid_text
from kframe.model.kraft.record_json import from_json
from kframe.whatif.engines.kraft.settings import directory_id

KAFKA: Final = "oEwwV51-QoiZY0G02A_A6Q"
HEXADECIMAL: Final = "a04c3057-9d7e-4288-9963-41b4d80fc0e9"
STANDARD: Final = "oEwwV51+QoiZY0G02A/A6Q"
HINT: Final = f"this is standard base64, which Kafka prints as {KAFKA}"


def test_text_of_a_uuid_is_read_and_written() -> None:
    assert (uuid_of_text(KAFKA), uuid_text(UUID(HEXADECIMAL))) == (UUID(HEXADECIMAL), KAFKA)


@pytest.mark.parametrize(
    "text, hint",
    [
        (STANDARD, HINT),
        (f"{STANDARD}==", HINT),
        (f"{KAFKA}==", HINT),
        (HEXADECIMAL, f"this is hexadecimal, which Kafka prints as {KAFKA}"),
        (HEXADECIMAL.replace("-", "").upper(), f"this is hexadecimal, which Kafka prints as {KAFKA}"),
        ("", ""),
        (KAFKA[:-1], ""),
        (f"{KAFKA}=", ""),
        (f"{KAFKA[:-1]}é", ""),
        ("+" * 23, ""),
        (f"{KAFKA}\n", ""),
    ],
)
def test_other_forms_are_refused_by_name(text: str, hint: str) -> None:
    assert expected_uuid(text) == "22 characters of URL-safe base64" + (f": {hint}" if hint else "")
    with pytest.raises(ValueError, match="is not 22 characters of URL-safe base64") as refused:
        uuid_of_text(text)
    assert hint in str(refused.value)


def test_records_and_directories_name_the_form() -> None:
    record = {"type": "TOPIC_RECORD", "version": 0, "data": {"name": "t", "topicId": STANDARD}}
    with pytest.raises(RecordError, match=HINT):
        from_json(record)
    with pytest.raises(InputError, match=HINT):
        directory_id(STANDARD)
    assert directory_id(HEXADECIMAL) == directory_id(KAFKA) == UUID(HEXADECIMAL)
