"""Delegation tokens (KIP-48)."""

from __future__ import annotations

import hmac


def token_hmac(secret: bytes, token_id: str) -> bytes:
    """The secret of a token. ``secret`` is ``delegation.token.secret.key`` (Kafka ``createHmac``, HmacSHA512)."""
    return hmac.digest(secret, token_id.encode(), "sha512")
