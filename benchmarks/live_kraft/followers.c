/* Brokers of a KRaft cluster that only follow: each fetches the metadata log and discards it, and sends heartbeats.
 *
 * followers HOST PORT BROKERS OBSERVERS OFFSET EPOCH INTERVAL_MS FETCH BEAT
 *
 * OBSERVERS more replicas, with the ids after those of the brokers, only fetch, and print nothing. All have the records
 * below OFFSET, the last of leader epoch EPOCH. Broker N (from 0 on) has broker epoch N. FETCH and BEAT are files with an
 * encoded request with its size, after a line with the positions of the fields that are set here: of Fetch the replica id,
 * the leader epoch, the offset and the last epoch; of BrokerHeartbeat the broker id, the broker epoch and the applied
 * offset. Reads "stop N" to end the heartbeats of broker N. Prints, with the nanoseconds of the monotonic clock:
 *
 *   fetch N OFFSET HIGH_WATERMARK NS   a response with records up to OFFSET, or with another high watermark
 *   took N NS                          a heartbeat was accepted after these nanoseconds
 *   beat N NS                          the first heartbeat of a connection was accepted
 *   last N NS                          the last heartbeat before "stop" was sent
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FIELDS_MAX = 4, BROKERS_MAX = 10000, RETRY_MS = 5, FENCED_LEADER_EPOCH = 74 };

typedef struct {
    uint8_t *bytes;
    int32_t size;
    int positions[FIELDS_MAX];
} Request;

typedef struct {
    int id;
    int64_t offset;
    int32_t last_epoch, leader_epoch;
    int is_observer;
    int64_t high_watermark;
    volatile int stopping;
    volatile int64_t sent_ns;
} Broker;

static struct sockaddr_in address;
static int interval_ms;
static Request fetch_request, beat_request;
static Broker brokers[BROKERS_MAX];
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void pause_ms(int milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static int64_t get(const uint8_t *bytes, int count) {
    uint64_t value = 0;
    for (int i = 0; i < count; i++) value = value << 8 | bytes[i];
    return count == 4 ? (int32_t)value : (int64_t)value;
}

static void put(uint8_t *bytes, int64_t value, int count) {
    for (int i = count - 1; i >= 0; i--, value >>= 8) bytes[i] = (uint8_t)value;
}

static int get_varint(const uint8_t *bytes, int64_t *position) {
    int value = 0;
    for (int shift = 0;; shift += 7) {
        uint8_t byte = bytes[(*position)++];
        value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
}

static Request read_request(const char *path, int fields) {
    Request request = {0};
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    for (int i = 0; i < fields; i++)
        if (fscanf(file, "%d", &request.positions[i]) != 1) fail(path);
    if (fgetc(file) != '\n') fail(path);
    request.bytes = malloc(1 << 16);
    request.size = (int32_t)fread(request.bytes, 1, 1 << 16, file);
    fclose(file);
    return request;
}

static int connected(void) {
    for (;; pause_ms(RETRY_MS)) {
        int yes = 1, handle = socket(AF_INET, SOCK_STREAM, 0);
        if (handle < 0) fail("socket");
        setsockopt(handle, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        if (!connect(handle, (struct sockaddr *)&address, sizeof address)) return handle;
        close(handle);
        pause_ms(RETRY_MS);
    }
}

static int read_fully(int handle, uint8_t *bytes, int64_t count) {
    for (int64_t done = 0; done < count;) {
        ssize_t got = recv(handle, bytes + done, count - done, 0);
        if (got <= 0) return 0;
        done += got;
    }
    return 1;
}

/* Send a request with its size, and read the response without it. Returns the response's size, or -1 without a connection. */
static int64_t ask(int handle, const uint8_t *request, int32_t size, uint8_t **response, int64_t *capacity) {
    uint8_t prefix[4];
    if (send(handle, request, size, MSG_NOSIGNAL) != size || !read_fully(handle, prefix, 4)) return -1;
    int64_t length = get(prefix, 4);
    if (length > *capacity) {
        *response = realloc(*response, length);
        *capacity = length;
        if (!*response) fail("realloc");
    }
    return read_fully(handle, *response, length) ? length : -1;
}

static void say(const char *what, const Broker *broker, int64_t at_ns) {
    pthread_mutex_lock(&output);
    printf("%s %d %lld\n", what, broker->id, (long long)at_ns);
    fflush(stdout);
    pthread_mutex_unlock(&output);
}

/* Follow the batches of a Fetch response of version 17. Returns its error code. */
static int follow(Broker *broker, const uint8_t *bytes) {
    int64_t at = 4 + 1 + 4; /* correlation id, tags, throttle time */
    int error = (int)get(bytes + at, 2);
    at += 2 + 4; /* error, session id */
    if (error || get_varint(bytes, &at) != 2) return error;
    at += 16 + 1 + 4; /* topic id, partitions, number */
    if ((error = (int)get(bytes + at, 2))) return error;
    int64_t before = broker->offset, high_watermark = get(bytes + at + 2, 8);
    at += 2 + 8 + 8 + 8 + 1 + 4; /* error, high watermark, stable offset, log start, no aborted ones, replica */
    int64_t end = get_varint(bytes, &at) - 1;
    for (end += at; at < end; at += 12 + get(bytes + at + 8, 4)) {
        broker->offset = get(bytes + at, 8) + get(bytes + at + 23, 4) + 1;
        broker->last_epoch = (int32_t)get(bytes + at + 12, 4);
    }
    if (!broker->is_observer && (broker->offset > before || high_watermark != broker->high_watermark)) {
        int64_t at_ns = now_ns();
        broker->high_watermark = high_watermark;
        pthread_mutex_lock(&output);
        printf("fetch %d %lld %lld %lld\n", broker->id, (long long)broker->offset, (long long)high_watermark,
               (long long)at_ns);
        fflush(stdout);
        pthread_mutex_unlock(&output);
    }
    return 0;
}

static void *fetch_all(void *argument) {
    Broker *broker = argument;
    uint8_t *request = malloc(fetch_request.size), *response = NULL;
    int64_t capacity = 0;
    memcpy(request, fetch_request.bytes, fetch_request.size);
    put(request + fetch_request.positions[0], broker->id, 4);
    for (;;) {
        int handle = connected();
        for (;;) {
            put(request + fetch_request.positions[1], broker->leader_epoch, 4);
            put(request + fetch_request.positions[2], broker->offset, 8);
            put(request + fetch_request.positions[3], broker->last_epoch, 4);
            if (ask(handle, request, fetch_request.size, &response, &capacity) < 0) break;
            int error = follow(broker, response);
            if (error == FENCED_LEADER_EPOCH) broker->leader_epoch++;
            else if (error) pause_ms(RETRY_MS);
        }
        close(handle);
        pause_ms(RETRY_MS);
    }
    return NULL;
}

static void *beat_all(void *argument) {
    Broker *broker = argument;
    uint8_t *request = malloc(beat_request.size), *response = NULL;
    int64_t capacity = 0;
    memcpy(request, beat_request.bytes, beat_request.size);
    put(request + beat_request.positions[0], broker->id, 4);
    put(request + beat_request.positions[1], broker->id, 8);
    while (!broker->stopping) {
        int handle = connected(), accepted = 0;
        while (!broker->stopping) {
            put(request + beat_request.positions[2], broker->offset, 8);
            broker->sent_ns = now_ns();
            if (ask(handle, request, beat_request.size, &response, &capacity) < 0) break;
            int error = (int)get(response + 4 + 1 + 4, 2);
            int64_t answered_ns = now_ns();
            if (!error && !accepted) say("beat", broker, answered_ns);
            if (!error) say("took", broker, answered_ns - broker->sent_ns);
            accepted |= !error;
            pause_ms(error ? RETRY_MS : interval_ms);
        }
        close(handle);
        pause_ms(RETRY_MS);
    }
    say("last", broker, broker->sent_ns);
    return NULL;
}

int main(int count, char **words) {
    if (count != 10) return 2;
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)atoi(words[2]));
    if (!inet_aton(words[1], &address.sin_addr)) return 2;
    int number = atoi(words[3]), replicas = number + atoi(words[4]), stopped;
    int epoch = atoi(words[6]);
    interval_ms = atoi(words[7]);
    fetch_request = read_request(words[8], 4);
    beat_request = read_request(words[9], 3);
    for (int id = 0; id < replicas && id < BROKERS_MAX; id++) {
        pthread_t thread;
        Broker *broker = &brokers[id];
        *broker = (Broker){.id = id, .offset = atoll(words[5]), .last_epoch = epoch, .leader_epoch = epoch + 1};
        broker->is_observer = id >= number;
        if (pthread_create(&thread, NULL, fetch_all, broker)) fail("pthread_create");
        if (id < number && pthread_create(&thread, NULL, beat_all, broker)) fail("pthread_create");
    }
    while (scanf(" stop %d", &stopped) == 1) brokers[stopped].stopping = 1;
    return 0;
}
