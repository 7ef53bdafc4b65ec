"""The in-memory store passes the contract tests of stores."""

from __future__ import annotations

import pytest

from kframe.embedded import MemoryEnsemble
from kframe.testing.store_contract import StorageFactory, StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def make_storage(self) -> StorageFactory:
        return MemoryEnsemble.from_cluster
