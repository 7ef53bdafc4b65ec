"""Suites that any store or transport can be held to, and small clusters to try them on. The suites need pytest.

A plugin's tests subclass ``store_contract.StoreContract``, or one of the classes in ``transport_contract``, and supply
a fixture that makes the world which the suite plays with.
"""

import sys

if "pytest" in sys.modules:  # clusters, and what simulations are made of, are used without it, too
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
