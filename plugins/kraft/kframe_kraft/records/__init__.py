"""The wire format of metadata records and control records, and their JSON form."""

from __future__ import annotations

from kframe.plugin.kraft import control_to_json, from_json, record_version, to_json
from kframe_kraft.records.control_frames import decode_control, encode_control
from kframe_kraft.records.frames import decode_record, encode_record

__all__ = [
    "control_to_json",
    "decode_control",
    "decode_record",
    "encode_control",
    "encode_record",
    "from_json",
    "record_version",
    "to_json",
]
