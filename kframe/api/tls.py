"""Why TLS with somebody failed, where trying again would not help: for plugins that connect, and for who reads it."""

from __future__ import annotations

import ssl
from typing import Final

#: What stands in OpenSSL's name of an alert by which the other side refuses a certificate, or the lack of one.
_OURS: Final = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED", "DECRYPT_ERROR")
#: The same of sides that have no version or cipher in common.
_UNLIKE: Final = ("HANDSHAKE_FAILURE", "PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "INSUFFICIENT_SECURITY")
#: The same of answers that are not TLS at all.
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG")


def tls_refusal(problem: BaseException, where: str, trusted: str, shown: str) -> str | None:
    """What is wrong, if it is not mended by trying again: the endpoint, what was found and what was expected. None for
    a failure that may pass: a server that restarts ends handshakes as well.

    ``where`` is HOST:PORT; ``trusted`` names the setting that has the authorities, ``shown`` that of our certificate.
    """
    if isinstance(problem, ssl.SSLCertVerificationError):
        found = problem.verify_message or problem.reason
        return (
            f"{where}: found a certificate that is refused ({found.rstrip('.')}), expected one that is valid for this "
            f"host and that {trusted} vouches for"
        )
    reason = getattr(problem, "reason", None) or "" if isinstance(problem, ssl.SSLError) else ""
    if any(one in reason for one in _OURS):
        return f"{where}: refuses who we are by TLS ({reason}): found {shown}, expected a certificate that it trusts"
    if any(one in reason for one in _UNLIKE):
        return f"{where}: found no version and cipher of TLS in common ({reason}), expected TLS 1.2 or later"
    if any(one in reason for one in _NO_TLS):
        return f"{where}: found something else than TLS ({reason}), expected TLS: is it the right port and protocol?"
    return None
