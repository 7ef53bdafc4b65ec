"""Request headers and the size before them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kframe.errors import ShapeError
from kframe.wire import header_version, request_header, size_prefix
from tests.wire.content import API_KEYS, EVERY_VERSION, kio_class

pytestmark = pytest.mark.kernel

HEADERS = json.loads((Path(__file__).parent / "vectors" / "headers.json").read_text())["headers"]


@pytest.mark.parametrize("vector", HEADERS, ids=lambda vector: vector["bytes"][:20])
def test_headers_equal_kafka_headers(vector: dict[str, Any]) -> None:
    content = vector["content"]
    api_key, api_version = content["requestApiKey"], content["requestApiVersion"]
    header = request_header(vector["version"], api_key, api_version, content["correlationId"], content["clientId"])
    assert header.hex() == vector["bytes"]


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
def test_header_version_matches_kafka_schema(api: str, version: int) -> None:
    assert header_version(API_KEYS[api], version) == kio_class(api, version).__header_schema__.__version__


@pytest.mark.parametrize(
    ("nbytes", "prefix"), [(0, "00000000"), (1, "00000001"), (258, "00000102"), (2**31 - 1, "7fffffff")]
)
def test_size_prefix(nbytes: int, prefix: str) -> None:
    assert size_prefix(nbytes).hex() == prefix


@pytest.mark.parametrize("nbytes", [-1, 2**31])
def test_size_prefix_out_of_range_raises_shape_error(nbytes: int) -> None:
    with pytest.raises(ShapeError, match=str(nbytes)):
        size_prefix(nbytes)
