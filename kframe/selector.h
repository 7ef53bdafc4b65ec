/* What a native leader selector sees of one partition that needs a leader, and the function that it is.
 *
 * A selector is a function of type kframe_select, handed over in a PyCapsule whose name is its C signature,
 * KFRAME_SELECT_SIGNATURE, and whose context, if any, is user_data. It is called once for each partition of a batch,
 * without the GIL, from one thread at a time. It returns the position in `candidates` of the broker to lead, or
 * KFRAME_NO_LEADER. Same election, same answer: no clock, no I/O, no state kept between calls.
 *
 * Brokers are indexes into the broker tables, and `broker_ids` has the numbers that people use. Everything is const
 * and lives until the call returns. The four numbers of the partition stand where the controller keeps them, each in
 * memory of its own: a rule reads those that it needs, and pays for no others. Nothing may be written there. Fields are
 * added only at the end: read one that is newer than the header you were compiled with only if `size` reaches beyond it.
 */
#ifndef KFRAME_SELECTOR_H
#define KFRAME_SELECTOR_H

#include <stdint.h>

#define KFRAME_NO_LEADER (-1)
#define KFRAME_SELECT_SIGNATURE "int32_t (const kframe_election *, void *)"

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
    const uint8_t *eligible;             /* [candidate_count] 1 where the candidate may lead as far as liveness goes */
    const uint8_t *in_sync;              /* [candidate_count] 1 where the candidate is in the ISR */
    const kframe_broker *isr;            /* [isr_count] brokers in the ISR, in stored order */
    const int32_t *broker_ids;           /* [broker_count] */
    const int32_t *broker_rack;          /* [broker_count] rack number, -1 where the broker names none */
    const uint8_t *broker_live;          /* [broker_count] 1 where registered and not shutting down */
    const uint8_t *broker_shutting_down; /* [broker_count] 1 where registered and in controlled shutdown */
    const int32_t *topic;                /* [1] number of the topic in this cluster */
    const int32_t *partition;            /* [1] */
    const kframe_broker *leader;         /* [1] broker that leads now, or KFRAME_NO_LEADER */
    const int32_t *leader_epoch;         /* [1] */
    int32_t broker_count;
    uint32_t seed;                       /* the only randomness to use; the same for every partition of a batch */
    uint8_t unclean_allowed;             /* 1 where no candidate is eligible and in sync, and any eligible one may lead */
} kframe_election;

typedef int32_t (*kframe_select)(const kframe_election *election, void *user_data);

#endif
