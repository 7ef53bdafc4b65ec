/* What a native cost term or goal sees of one partition, and the function that it is.
 *
 * A function of type kframe_placement_function is handed over in a PyCapsule whose name is its C signature,
 * KFRAME_PLACEMENT_SIGNATURE, and whose context, if any, is user_data. It is called without the GIL, from one thread at a
 * time. A cost term is called for each partition and broker, and returns what it costs to place a replica of the
 * partition on `broker`, or KFRAME_FORBIDDEN. A goal is called once for each partition, with `broker` -1, and returns
 * the weight of one of its replicas. Costs and weights are 0 to 2^53. Same placement, same result: no clock, no I/O, no
 * state kept between calls.
 *
 * Brokers are indexes into the broker tables. Everything is const and lives until the call returns. Fields are added
 * only at the end: read one that is newer than the header you were compiled with only if `size` reaches beyond it.
 */
#ifndef KFRAME_PLACEMENT_H
#define KFRAME_PLACEMENT_H

#include <stdint.h>

#define KFRAME_FORBIDDEN (INT64_C(1) << 62)
#define KFRAME_PLACEMENT_SIGNATURE "int64_t (const kframe_placement *, void *)"

typedef struct kframe_placement {
    uint32_t size;              /* bytes of this struct, as the calling kframe knows it */
    int32_t broker;             /* the broker to place a replica on; -1 for a goal */
    int32_t broker_count;
    int32_t replica_count;
    const int32_t *replicas;    /* [replica_count] brokers before the plan, the preferred leader first */
    const int32_t *broker_ids;  /* [broker_count] */
    const int32_t *broker_rack; /* [broker_count] rack number, -1 where the broker names none */
    int64_t weight;             /* what copying a replica costs: its bytes, or 1 where sizes are unknown */
    int32_t topic;              /* number of the topic in this cluster */
    int32_t partition;          /* number of the partition in its topic */
} kframe_placement;

typedef int64_t (*kframe_placement_function)(const kframe_placement *placement, void *user_data);

#endif
