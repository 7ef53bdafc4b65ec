"""The store contract on real ZooKeeper servers: standalone and ensemble, in clear text, over TLS, with a login.

The plainest and the most secured connection run the whole contract. The three between them run the part that depends
on sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture, open_temporary_fixture
from kframe_zookeeper.session.settings import ConnectSettings, SaslLogin, TlsSettings, settings_of_url

from kframe.testing.store_contract import StorageFactory, StoreContract
from kframe.testing.store_fixture import StoreSuite
from kframe.testing.store_role_contract import RoleContract
from kframe_simulator.differential import play_history
from verification.support.sampling import every_nth
from verification.zookeeper.certificates import Authority
from verification.zookeeper.servers import Ensemble, ServerHandle
from verification.zookeeper.sessions import fixture_factory


def settings_at(address: str) -> ConnectSettings:
    return settings_of_url(f"zookeeper://{address}")


class _ZooKeeperSuite(StoreSuite):
    """Creates fixtures on a server."""

    @pytest.fixture
    def make_storage(self, settings: ConnectSettings) -> Iterator[StorageFactory]:
        with fixture_factory(settings, ZooKeeperFixture) as make:
            yield make


class TestAlone(_ZooKeeperSuite, StoreContract):
    bulk_rows = 4_500
    """Nine batches of writes, and two of reads."""

    @pytest.fixture
    def settings(self, zookeeper: ServerHandle) -> ConnectSettings:
        return settings_at(zookeeper.address)


class TestEnsemble(_ZooKeeperSuite, RoleContract):
    @pytest.fixture
    def settings(self, ensemble: Ensemble) -> ConnectSettings:
        return settings_at(ensemble.address)


@pytest.mark.extended
class TestLogin(_ZooKeeperSuite, RoleContract):
    """All created znodes belong to the login."""

    @pytest.fixture
    def settings(self, sasl_zookeeper: ServerHandle) -> ConnectSettings:
        return replace(settings_at(sasl_zookeeper.address), secure_acl=True, sasl=SaslLogin("kafka", "its secret"))


def tls(authority: Authority) -> TlsSettings:
    mine = authority.issue("kafka")
    return TlsSettings(mine.authority, mine.key_and_certificate)


class TestTls(_ZooKeeperSuite, RoleContract):
    @pytest.fixture
    def settings(self, tls_zookeeper: ServerHandle, authority: Authority) -> ConnectSettings:
        return replace(settings_at(tls_zookeeper.secure_address), tls=tls(authority))


@pytest.mark.extended
class TestEnsembleWithTlsAndLogin(_ZooKeeperSuite, StoreContract):
    """All of it together."""

    bulk_rows = 800
    """Two batches of writes, which is enough where only the connection differs from TestAlone."""

    @pytest.fixture
    def settings(self, secured_ensemble: Ensemble, authority: Authority) -> ConnectSettings:
        login = SaslLogin("kafka", "its secret")
        return replace(settings_at(secured_ensemble.secure_address), tls=tls(authority), secure_acl=True, sasl=login)


@pytest.mark.parametrize("seed", every_nth(3, range(1, 4)))
def test_seeded_histories_equal_those_of_the_embedded_store(zookeeper: ServerHandle, seed: int) -> None:
    """Results, errors and notifications are equal."""
    assert play_history(seed, open_temporary_fixture(f"zookeeper://{zookeeper.address}")) is None
