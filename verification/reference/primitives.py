"""Primitive types of Kafka's protocol as bytes."""

from __future__ import annotations

import struct


def varint_bytes(value: int) -> bytes:
    """An unsigned varint."""
    if value < 0x80:
        return bytes([value])
    return bytes([value & 0x7F | 0x80]) + varint_bytes(value >> 7)


def length_bytes(count: int, compact: bool) -> bytes:
    """The length of an array or of a text."""
    return varint_bytes(count + 1) if compact else struct.pack(">i", count)


def name_bytes(text: bytes, compact: bool) -> bytes:
    """A text with its length."""
    return (varint_bytes(len(text) + 1) if compact else struct.pack(">h", len(text))) + text


def ints_bytes(values: list[int], compact: bool) -> bytes:
    """An array of integers of 32 bits."""
    return length_bytes(len(values), compact) + struct.pack(f">{len(values)}i", *values)


def end_bytes(compact: bool) -> bytes:
    """The tagged fields at the end of a structure: none."""
    return b"\x00" if compact else b""
