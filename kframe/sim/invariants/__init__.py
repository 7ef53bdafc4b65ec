"""The table of all invariants. Numbers are those of the list of reliability rules; I27 compares whole runs, and stands
with the command that plays them."""

from __future__ import annotations

from typing import Final

from kframe.sim.invariants import events, records, requests, rest, roles, states, topics
from kframe.sim.watch import Invariant, Moment

INVARIANTS: Final = tuple(
    Invariant(number, (broken.__doc__ or "").split(": ", 1)[-1], moment, broken)
    for number, moment, broken in (
        ("I1", Moment.CLAIMED, roles.epoch_has_one_owner),
        ("I1", Moment.SENT, roles.letter_has_own_epoch),
        ("I1", Moment.ANSWERED, roles.brokers_go_forward),
        ("I2", Moment.WRITTEN, roles.writes_are_fenced),
        ("I3", Moment.SENT, roles.sends_end_with_the_role),
        ("I3", Moment.WRITTEN, roles.writes_end_with_the_role),
        ("I4", Moment.STATE, states.leader_is_sound),
        ("I5", Moment.STATE, states.isr_is_sound),
        ("I5", Moment.EVENT, states.isr_is_assigned),
        ("I6", Moment.STATE, states.election_is_clean),
        ("I7", Moment.STATE, states.unclean_leader_is_alone),
        ("I8", Moment.STATE, states.leader_epoch_goes_up),
        ("I9", Moment.STATE, states.states_are_a_chain),
        ("I9", Moment.EVENT, states.own_writes_are_known),
        ("I10", Moment.LED, records.leaders_have_what_was_promised),
        ("I10", Moment.STATE, records.in_sync_is_complete),
        ("I10", Moment.ACKNOWLEDGED, records.acknowledged_is_in_sync),
        ("I10", Moment.RESTED, records.promises_are_kept),
        ("I11", Moment.LOGGED, records.logs_match),
        ("I11", Moment.LOGGED, records.high_watermark_is_everywhere),
        ("I11", Moment.LOGGED, records.committed_stays),
        ("I11", Moment.READ, records.reads_are_repeatable),
        ("I11", Moment.READ, records.undecided_is_hidden),
        ("I12", Moment.RESTED, rest.brokers_know_their_roles),
        ("I12", Moment.RESTED, rest.brokers_know_the_cluster),
        ("I12", Moment.LULL, rest.brokers_know_their_roles),
        ("I12", Moment.LULL, rest.brokers_know_the_cluster),
        ("I12", Moment.EVENT, requests.leavers_are_told),
        ("I13", Moment.SENT, requests.one_in_flight),
        ("I14", Moment.QUEUED, requests.first_is_metadata),
        ("I15", Moment.SENT, requests.for_one_registration),
        ("I15", Moment.LEAVING, requests.earlier_registrations_shut_nothing_down),
        ("I16", Moment.CONNECTED, requests.death_before_birth),
        ("I17", Moment.QUEUED, requests.only_the_registered),
        ("I18", Moment.QUEUED, requests.only_leavers_are_deleted),
        ("I19", Moment.TOPIC, topics.deletion_was_confirmed),
        ("I20", Moment.TOPIC, topics.id_is_for_life),
        ("I20", Moment.QUEUED, topics.letters_name_the_topic),
        ("I20", Moment.RESTED, rest.ids_are_known),
        ("I21", Moment.TOPIC, topics.moves_were_asked_for),
        ("I22", Moment.QUEUED, requests.originals_wait_for_the_target),
        ("I23", Moment.TOPIC, topics.partitions_stay),
        ("I23", Moment.TOPIC, topics.expansion_moves_nothing),
        ("I24", Moment.EVENT, events.gauges_are_recounts),
        ("I24", Moment.RESTED, rest.context_is_storage),
        ("I25", Moment.EVENT, events.states_fit_columns),
        ("I26", Moment.REPLIED, events.answered_once),
        ("I28", Moment.EVENT, events.repeats_change_nothing),
        ("I29", Moment.EVENT, events.failures_are_explained),
        ("I30", Moment.EVENT, events.steps_are_bounded),
        ("I24", Moment.LULL, rest.context_is_storage),
        ("L1", Moment.LULL, rest.led_where_possible),
        ("L1", Moment.RESTED, rest.led_where_possible),
        ("L2", Moment.RESTED, rest.one_controller),
        ("L3", Moment.RESTED, rest.nothing_is_left),
        ("L4", Moment.RESTED, rest.nobody_waits),
        ("L5", Moment.LEAVING, requests.shutdown_names_what_is_led),
        ("L5", Moment.RESTED, rest.in_sync_again),
    )
)
