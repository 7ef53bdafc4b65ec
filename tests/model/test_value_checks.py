"""Checks of configured values, as Java reads them."""

from __future__ import annotations

import pytest

from kframe.model.topic_configs import TOPIC_CONFIGS, config_problem


@pytest.mark.parametrize(
    ("text", "is_valid"), [("0.5", True), ("1e-1", True), ("\uff11", False), ("0_1", False), ("x", False)]
)
def test_double_has_the_digits_that_java_reads(text: str, is_valid: bool) -> None:
    assert "min.cleanable.dirty.ratio" in TOPIC_CONFIGS
    assert (config_problem({"min.cleanable.dirty.ratio": text}, remote_storage=False) is None) is is_valid
