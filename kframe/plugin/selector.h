/* What a native leader selector sees of one partition that needs a leader, and the function that it is.
 *
 * A selector is a function of type kframe_select, handed over in a PyCapsule whose name is its C signature,
 * KFRAME_SELECT_SIGNATURE, and whose context, if any, is user_data. It is called once for each partition of a batch,
 * without the GIL, from one thread at a time. It returns the position in `candidates` of the broker to lead, or
 * KFRAME_NO_LEADER. Same election, same result: no clock, no I/O, no state kept between calls.
 *
 * Brokers are indexes into the broker tables, and `broker_ids` has the numbers that people use. Everything is const and
 * lives until the call returns, and most of it stands where the controller keeps it: nothing may be written there. So a
 * rule pays for what it reads, and for no more; kframe_eligible, kframe_in_sync, kframe_topic and the like read it:
 *
 *     int32_t first_in_sync(const kframe_election *election, void *user_data) {
 *         for (int32_t at = 0; at < election->candidate_count; at++)
 *             if (kframe_eligible(election, at) && kframe_in_sync(election, at))
 *                 return at;
 *         return KFRAME_NO_LEADER;
 *     }
 *
 * Fields are added only at the end: read one that is newer than the header you were compiled with only if `size` reaches
 * beyond it.
 */
#ifndef KFRAME_SELECTOR_H
#define KFRAME_SELECTOR_H

#include <stdint.h>

#define KFRAME_NO_LEADER (-1)
#define KFRAME_SELECT_SIGNATURE "int32_t (const kframe_election *, void *)"
/* In candidate_flags: the replica's log directory is offline. The other bits are the controller's own. */
#define KFRAME_OFFLINE_DIR 4

enum kframe_election_kind {
    KFRAME_OFFLINE = 0,
    KFRAME_REASSIGN = 1,
    KFRAME_PREFERRED = 2,
    KFRAME_CONTROLLED_SHUTDOWN = 3,
    KFRAME_INITIAL = 4
};

/* A broker: its index in the broker tables. */
typedef int16_t kframe_broker;

typedef struct kframe_election {
    uint32_t size;                       /* bytes of this struct, as the calling kframe knows it */
    int32_t kind;                        /* enum kframe_election_kind */
    int32_t candidate_count;
    int32_t isr_count;
    const kframe_broker *candidates;     /* [candidate_count] assigned brokers, preferred first */
    const uint8_t *candidate_flags;      /* [candidate_count] see KFRAME_OFFLINE_DIR and kframe_eligible */
    const kframe_broker *isr;            /* [isr_count] brokers in the ISR, in stored order; see kframe_in_sync */
    const int32_t *broker_ids;           /* [broker_count] */
    const int32_t *broker_rack;          /* [broker_count] rack number, -1 where the broker names none */
    const uint8_t *broker_live;          /* [broker_count] 1 where registered and not shutting down */
    const uint8_t *broker_shutting_down; /* [broker_count] 1 where registered and in controlled shutdown */
    const int32_t *topics;               /* what partitions have one of: that of this one stands at [row] */
    const int32_t *partitions;
    const kframe_broker *leaders;
    const int32_t *leader_epochs;
    int32_t row;
    int32_t broker_count;
    uint32_t seed;                       /* the only randomness to use; the same for every partition of a batch */
    uint8_t unclean_allowed;             /* 1 where no candidate is eligible and in sync, and any eligible one may lead */
} kframe_election;

typedef int32_t (*kframe_select)(const kframe_election *election, void *user_data);

/* Whether the candidate at a position may lead as far as liveness goes: its broker is live, its log directory not
 * offline. */
static inline int kframe_eligible(const kframe_election *election, int32_t at) {
    return election->broker_live[election->candidates[at]] && !(election->candidate_flags[at] & KFRAME_OFFLINE_DIR);
}

/* Whether the candidate at a position is in the ISR. */
static inline int kframe_in_sync(const kframe_election *election, int32_t at) {
    const kframe_broker broker = election->candidates[at];
    if (at < election->isr_count && election->isr[at] == broker)
        return 1; /* in most partitions the ISR is all replicas, in their order */
    for (int32_t k = 0; k < election->isr_count; k++)
        if (election->isr[k] == broker)
            return 1;
    return 0;
}

/* Number of the topic in this cluster. */
static inline int32_t kframe_topic(const kframe_election *election) { return election->topics[election->row]; }

/* Number of the partition in its topic. */
static inline int32_t kframe_partition(const kframe_election *election) { return election->partitions[election->row]; }

/* The broker that leads now, or KFRAME_NO_LEADER. */
static inline int32_t kframe_leader(const kframe_election *election) { return election->leaders[election->row]; }

static inline int32_t kframe_leader_epoch(const kframe_election *election) {
    return election->leader_epochs[election->row];
}

#endif
