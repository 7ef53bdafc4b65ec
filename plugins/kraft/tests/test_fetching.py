"""Delayed Fetch requests of many observers are answered in portions, between which other requests are served."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from uuid import UUID

from kframe_kraft.apis.fetching import Fetching
from kframe_kraft.batches import BatchPosition, encode_control_batch
from kframe_kraft.log import MemoryLog
from kframe_kraft.quorum import FetchService, ReplicaFetch, ReplicaKey, SoleVoter, Voters

from kframe.plugin.kraft import control

OBSERVERS = 100


def test_others_are_served_between_the_responses_to_many_observers() -> None:
    asyncio.run(answer_many())


async def answer_many() -> None:
    log = MemoryLog()
    quorum = SoleVoter(ReplicaKey(9), Voters((control.Voter(voter_id=9, voter_directory_id=UUID(int=0)),)), None, 0)
    epoch = quorum.stand().leader_epoch
    fetching = Fetching(FetchService(quorum, log), asyncio.get_running_loop())
    content = quorum.lead(log.end, log_has_voters=False)
    requests = [ReplicaFetch(ReplicaKey(10 + number), epoch, 0, 0, 10**6, 500, -1) for number in range(OBSERVERS)]
    answers = [asyncio.create_task(fetching.answer(request)) for request in requests]
    await asyncio.sleep(0)
    batch = encode_control_batch(content, BatchPosition(0, epoch, 0))
    assert quorum.leadership is not None
    quorum.leadership.note_synced(log.append(batch))
    fetching.progress()
    answered = [0]
    while answered[-1] < OBSERVERS:
        await asyncio.sleep(0)
        answered.append(sum(answer.done() for answer in answers))
    portions = [after - before for before, after in pairwise(answered) if after > before]
    assert max(portions) < OBSERVERS / 2
    assert {answer.result().read_records() for answer in answers} == {batch}
