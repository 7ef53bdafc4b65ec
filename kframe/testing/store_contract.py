"""What every store must do, as tests that a plugin's author runs.

::

    from kframe.testing.store_contract import StoreContract

    class TestMyStore(StoreContract):
        @pytest.fixture
        def make_world(self):
            return MyWorld          # called with a cluster, gives a StoreWorld

``MyWorld(cluster)`` prepares a storage that holds ``cluster`` (topics, states, delete markers, registered brokers) and
in which no controller has ever been; ``StoreWorld`` says what else it does. Clusters are compared by names and broker
ids: a store may number them as it likes.
"""

from __future__ import annotations

from kframe.testing.store_brokers_contract import RegistrationsContract
from kframe.testing.store_requests_contract import RequestsContract
from kframe.testing.store_role_contract import RoleContract
from kframe.testing.store_states_contract import StatesContract
from kframe.testing.store_topics_contract import TopicsContract
from kframe.testing.store_world import StoreWorld, WorldFactory

__all__ = ["StoreContract", "StoreWorld", "WorldFactory"]


class StoreContract(RoleContract, StatesContract, RegistrationsContract, TopicsContract, RequestsContract):
    """The whole contract; see the head of this module."""
