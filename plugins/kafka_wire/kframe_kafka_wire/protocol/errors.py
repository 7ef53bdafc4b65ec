"""Errors of the protocol: malformed bytes, refusals, and the error codes of responses."""

from __future__ import annotations

from typing import Final

from kframe.plugin import ErrorCode, KframeError

_CODES: Final = {code.value: code for code in ErrorCode}


class CodecError(KframeError):
    """Bytes that are not a valid message, or a message that cannot be encoded."""


class WireError(KframeError):
    """Malformed bytes from a broker. The connection cannot be used any more."""


class PermanentFailure(WireError):
    """Permanent failure. Do not retry."""


class Refused(Exception):
    """The client violates the protocol or a limit. Its connection is closed. The text is logged."""


def error_of(error: int) -> ErrorCode:
    """The ErrorCode of a code. UNKNOWN_SERVER_ERROR for codes that a controller does not know."""
    return _CODES.get(error, ErrorCode.UNKNOWN_SERVER_ERROR)
