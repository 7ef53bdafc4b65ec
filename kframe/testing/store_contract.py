"""The contract of stores, as tests for plugins.

::

    from kframe.testing.store_contract import StoreContract

    class TestMyStore(StoreContract):
        @pytest.fixture
        def make_storage(self):
            return MyStorage          # a callable that takes a cluster and returns a StorageFixture

``MyStorage(cluster)`` prepares storage with the topics, states, delete markers and registered brokers of ``cluster``.
No controller has ever been elected in it; see ``StorageFixture``. The tests compare clusters by names and broker ids,
so the indexes that a store assigns do not matter.
"""

from __future__ import annotations

from kframe.testing.store_brokers_contract import RegistrationsContract
from kframe.testing.store_fixture import StorageFactory, StorageFixture
from kframe.testing.store_requests_contract import RequestsContract
from kframe.testing.store_role_contract import RoleContract
from kframe.testing.store_states_contract import StatesContract
from kframe.testing.store_topics_contract import TopicsContract

__all__ = ["StorageFactory", "StorageFixture", "StoreContract"]


class StoreContract(RoleContract, StatesContract, RegistrationsContract, TopicsContract, RequestsContract):
    """The whole contract; see the module docstring."""
