"""Explains permanent failures of TLS handshakes."""

from __future__ import annotations

import ssl
from typing import Final

#: Parts of OpenSSL's names of alerts with which the peer refuses a certificate or its absence.
_CERTIFICATE_REFUSED: Final = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED", "DECRYPT_ERROR")
#: The same for peers without a common version or cipher.
_NO_COMMON_CIPHER: Final = ("HANDSHAKE_FAILURE", "PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "INSUFFICIENT_SECURITY")
#: The same for peers that do not speak TLS.
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG")


def tls_refusal(problem: BaseException, where: str, truststore: str, keystore: str) -> str | None:
    """The reason of a permanent failure, as an error message. None for a failure that a retry may fix: a server that
    restarts aborts handshakes, too.

    ``where`` is HOST:PORT. ``truststore`` and ``keystore`` name the settings of trusted authorities and of the client
    certificate.
    """
    if isinstance(problem, ssl.SSLCertVerificationError):
        message = problem.verify_message or problem.reason
        return (
            f"{where}: found a certificate that is refused ({message.rstrip('.')}), expected one that is valid for "
            f"this host and trusted by {truststore}"
        )
    reason = getattr(problem, "reason", None) or "" if isinstance(problem, ssl.SSLError) else ""
    if any(part in reason for part in _CERTIFICATE_REFUSED):
        return (
            f"{where}: refuses the client certificate ({reason}): found {keystore}, "
            "expected a certificate that it trusts"
        )
    if any(part in reason for part in _NO_COMMON_CIPHER):
        return f"{where}: found no version and cipher of TLS in common ({reason}), expected TLS 1.2 or later"
    if any(part in reason for part in _NO_TLS):
        return f"{where}: found another protocol ({reason}), expected TLS: check port and protocol"
    return None
