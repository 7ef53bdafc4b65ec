"""Encode a case's requests of one kind in one version."""

from __future__ import annotations

from hypothesis import strategies as st

from kframe.model.cluster import ClusterState
from kframe.model.requests import ControlRequests
from kframe.wire import BYTE_LIMIT, ControlVersions, EncodedRequest, Encoder
from tests.wire.cases import LISTENER, random_case
from tests.wire.content import API_KEYS

#: Small random clusters with a batch each.
CASES = st.builds(random_case, st.randoms(use_true_random=False))


def versions(api: str, version: int) -> ControlVersions:
    """Return versions with ``version`` for one kind of request, the others in the newest."""
    chosen = {"LeaderAndIsr": 7, "UpdateMetadata": 8, "StopReplica": 4} | {api: version}
    return ControlVersions(chosen["LeaderAndIsr"], chosen["UpdateMetadata"], chosen["StopReplica"])


def encoded(
    cluster: ClusterState, requests: ControlRequests, api: str, version: int, byte_limit: int = BYTE_LIMIT
) -> list[EncodedRequest]:
    """Return the requests of kind ``api``."""
    requests_of_batch = Encoder(versions(api, version), LISTENER, byte_limit).encode(cluster, requests)
    return [request for request in requests_of_batch if request.api_key == API_KEYS[api]]


def body(request: EncodedRequest) -> bytes:
    """Return the chunks of a request as one bytes object."""
    return b"".join(request.chunks)
