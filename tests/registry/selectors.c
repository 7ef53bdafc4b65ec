/* Native selectors for tests: a good one, one that shows what it sees, and some that misbehave. */
#include <stdlib.h>
#include <unistd.h>

#include "kframe/plugin/selector.h"

/* The last candidate that is eligible and in sync. */
int32_t last_in_sync(const kframe_election *election, void *user_data) {
    (void)user_data;
    for (int32_t at = election->candidate_count - 1; at >= 0; at--)
        if (kframe_eligible(election, at) && kframe_in_sync(election, at))
            return at;
    return KFRAME_NO_LEADER;
}

static uint64_t mix(uint64_t sum, int64_t value) {
    return (sum ^ (uint64_t)value) * 1099511628211u;
}

/* A position, none or an invalid one, drawn from every field of the election; adds the sum to *user_data. */
int32_t from_everything(const kframe_election *election, void *user_data) {
    uint64_t sum = 14695981039346656037u;
    sum = mix(sum, election->size);
    sum = mix(sum, election->kind);
    for (int32_t at = 0; at < election->candidate_count; at++) {
        sum = mix(sum, election->candidates[at]);
        sum = mix(sum, kframe_eligible(election, at));
        sum = mix(sum, kframe_in_sync(election, at));
    }
    for (int32_t at = 0; at < election->isr_count; at++)
        sum = mix(sum, election->isr[at]);
    for (int32_t at = 0; at < election->broker_count; at++) {
        sum = mix(sum, election->broker_ids[at]);
        sum = mix(sum, election->broker_rack[at]);
        sum = mix(sum, election->broker_live[at]);
        sum = mix(sum, election->broker_shutting_down[at]);
    }
    sum = mix(sum, kframe_topic(election));
    sum = mix(sum, kframe_partition(election));
    sum = mix(sum, kframe_leader(election));
    sum = mix(sum, kframe_leader_epoch(election));
    sum = mix(sum, election->seed);
    sum = mix(sum, election->unclean_allowed);
    if (user_data)
        *(uint64_t *)user_data += sum;
    return (int32_t)(sum >> 33) % (election->candidate_count + 4) - 2;
}

int32_t always_out_of_range(const kframe_election *election, void *user_data) {
    (void)user_data;
    return election->candidate_count;
}

/* Writes into the election, which is const, and returns a result as if that were true. */
int32_t vandal(const kframe_election *election, void *user_data) {
    (void)user_data;
    for (int32_t at = 0; at < election->broker_count; at++)
        ((uint8_t *)election->broker_live)[at] = 1;
    ((kframe_election *)election)->candidate_count = 100;
    ((kframe_election *)election)->unclean_allowed = 1;
    return kframe_partition(election) % 3 ? 0 : 50;
}

int32_t crash(const kframe_election *election, void *user_data) {
    (void)election;
    (void)user_data;
    abort();
}

int32_t hang(const kframe_election *election, void *user_data) {
    (void)election;
    (void)user_data;
    for (;;)
        pause();
}

/* Cost terms and goals of plans, as those in Python in test_placements.py. */
#include "kframe/plugin/placement.h"

/* Forbidden in the rack of the first broker, else by the topic's number, partition, broker id and replicas. */
int64_t cost_by_everything(const kframe_placement *p, void *user_data) {
    if (p->broker_rack[p->broker] == p->broker_rack[0] && p->broker_rack[0] >= 0)
        return KFRAME_FORBIDDEN;
    int64_t sum = *(const int64_t *)user_data + p->partition % 7 + p->broker_ids[p->broker] + p->weight % 5;
    for (int32_t at = 0; at < p->replica_count; at++)
        sum += p->broker_ids[p->replicas[at]] % 3;
    return sum % 11;
}

int64_t weight_by_everything(const kframe_placement *p, void *user_data) {
    return *(const int64_t *)user_data + p->partition % 7 + p->weight % 5 + p->replica_count - p->broker;
}

int64_t crashing_cost(const kframe_placement *p, void *user_data) {
    (void)p, (void)user_data;
    abort();
}
