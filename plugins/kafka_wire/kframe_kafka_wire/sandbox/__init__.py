"""Fake brokers on loopback, to which the transport connects in ``kframe plugins check`` and in its contract tests."""
