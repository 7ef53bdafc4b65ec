"""Contract suites for the tests of plugins, which need pytest, and small clusters.

Tests of a plugin subclass ``store_contract.StoreContract``, or a class of ``transport_contract``, and supply a fixture
that makes the storage or the brokers of the suite.
"""

import sys

if "pytest" in sys.modules:  # Clusters are used without pytest, too.
    import pytest

    # The package itself is being imported already, so that only its modules can still be marked.
    pytest.register_assert_rewrite(
        "kframe.testing.store_brokers_contract",
        "kframe.testing.store_requests_contract",
        "kframe.testing.store_role_contract",
        "kframe.testing.store_states_contract",
        "kframe.testing.store_topics_contract",
        "kframe.testing.transport_contract",
    )
