"""Permanent TLS failures."""

from __future__ import annotations

import ssl

import pytest

from kframe.settings.tls import tls_refusal


def failure(reason: str | None) -> ssl.SSLError:
    error = ssl.SSLError(1, "as OpenSSL has it")
    error.reason = reason  # type: ignore[assignment]
    return error


@pytest.mark.parametrize(
    "reason, expected",
    [
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "found the key k, expected a certificate that it trusts"),
        ("SSLV3_ALERT_BAD_CERTIFICATE", "found the key k, expected a certificate that it trusts"),
        ("SSLV3_ALERT_CERTIFICATE_UNKNOWN", "found the key k, expected a certificate that it trusts"),
        ("SSLV3_ALERT_CERTIFICATE_EXPIRED", "found the key k, expected a certificate that it trusts"),
        ("TLSV1_ALERT_UNKNOWN_CA", "found the key k, expected a certificate that it trusts"),
        ("TLSV1_ALERT_ACCESS_DENIED", "found the key k, expected a certificate that it trusts"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "expected TLS 1.2 or later"),
        ("TLSV1_ALERT_PROTOCOL_VERSION", "expected TLS 1.2 or later"),
        ("WRONG_VERSION_NUMBER", "found another protocol"),
    ],
)
def test_permanent_failure_is_reported(reason: str, expected: str) -> None:
    message = tls_refusal(failure(reason), "h:1", "the authorities a", "the key k")
    assert message is not None
    assert message.startswith("h:1: ")
    assert f"({reason})" in message
    assert expected in message


def test_untrusted_certificate_is_reported_with_the_trusted_authorities() -> None:
    refused = ssl.SSLCertVerificationError(1, "as OpenSSL has it")
    refused.reason, refused.verify_message = "CERTIFICATE_VERIFY_FAILED", "certificate has expired"
    message = tls_refusal(refused, "h:1", "the authorities a", "the key k")
    assert message is not None
    assert "(certificate has expired), expected one" in message
    assert "the authorities a" in message


@pytest.mark.parametrize(
    "problem",
    [
        failure(None),
        failure("UNEXPECTED_EOF_WHILE_READING"),
        failure("TLSV1_ALERT_INTERNAL_ERROR"),
        failure("SSLV3_ALERT_UNEXPECTED_MESSAGE"),
        ssl.SSLEOFError(8, "EOF occurred in violation of protocol"),
        ConnectionResetError(),
        TimeoutError(),
        ValueError(),
    ],
    ids=repr,
)
def test_transient_failure_is_not_reported(problem: Exception) -> None:
    assert tls_refusal(problem, "h:1", "the authorities a", "the key k") is None
