/* A load generator for length-prefixed request/response frames: N connections, K requests in flight on each.
 *
 *   loadgen PORT CONNECTIONS IN_FLIGHT SECONDS PER_S
 *           REQUEST_FILE FRAMES REQUEST_OFFSET text|binary RESPONSE_FILE RESPONSE_OFFSET text|binary
 *
 * REQUEST_FILE holds FRAMES frames of one length, RESPONSE_FILE the one response that all of them get. Connection i
 * sends frame i, then those CONNECTIONS further on, round and round. The opaque is patched at the given offset: nine
 * decimal digits (text) or four big-endian bytes (binary). Every byte of every response is compared with the expected
 * frame.
 *
 * PER_S 0: each response is followed by the next request on its connection (closed loop), and its latency counts from
 * the write of its request. Else requests are due at even intervals, on one connection after the other, whether the
 * earlier ones are answered or not (open loop, IN_FLIGHT at most on each connection), and latency counts from when a
 * request was due, so that a pause of the server is seen by every request that was due in it.
 *
 * Prints one JSON object: requests, seconds, per_s, p50_us, p99_us, max_us, bad. Exit status 1 when it cannot run.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define BASE 100000000u
#define ROUNDS 1000u
#define HISTOGRAM_US 1000000

typedef struct {
    uint32_t opaque;
    uint32_t round;
    uint64_t sent_ns; /* or when it was due */
    int waits;
} slot_t;

typedef struct {
    int fd;
    uint32_t first; /* number of its first slot over all connections */
    uint32_t frame; /* the one it sends next */
    size_t filled;
    unsigned char *buffer;
    slot_t *slots;
} connection_t;

static unsigned char *requests, *response;
static size_t request_length, response_length, request_offset, response_offset;
static uint32_t frames;
static double per_s;
static int request_text, response_text;
static uint32_t connections, in_flight;
static uint64_t done, bad, slowest_us, last_ns;
static uint32_t histogram[HISTOGRAM_US + 1];

static void fail(const char *what) {
    fprintf(stderr, "loadgen: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static unsigned char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    unsigned char *data = malloc(*length + 1);
    if (!data || fread(data, 1, *length, file) != *length) fail(path);
    fclose(file);
    return data;
}

static void put_opaque(unsigned char *at, uint32_t opaque, int text) {
    if (text) {
        for (int i = 8; i >= 0; i--, opaque /= 10) at[i] = (unsigned char)('0' + opaque % 10);
    } else {
        for (int i = 3; i >= 0; i--, opaque >>= 8) at[i] = (unsigned char)opaque;
    }
}

static uint32_t get_opaque(const unsigned char *at, int text) {
    uint32_t opaque = 0;
    if (text)
        for (int i = 0; i < 9; i++) opaque = opaque * 10 + (uint32_t)(at[i] - '0');
    else
        for (int i = 0; i < 4; i++) opaque = opaque << 8 | at[i];
    return opaque;
}

static void send_request(connection_t *c, uint32_t index, uint64_t due_ns) {
    slot_t *slot = &c->slots[index];
    unsigned char *request = requests + (size_t)c->frame * request_length;
    c->frame = (c->frame + connections) % frames;
    slot->round = (slot->round + 1) % ROUNDS;
    slot->opaque = BASE + slot->round * connections * in_flight + c->first + index;
    put_opaque(request + request_offset, slot->opaque, request_text);
    slot->waits = 1;
    slot->sent_ns = due_ns ? due_ns : now_ns();
    for (size_t at = 0; at < request_length;) {
        ssize_t n = send(c->fd, request + at, request_length - at, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) fail("send");
        if (n > 0) at += (size_t)n;
    }
}

static void take_response(connection_t *c, const unsigned char *frame) {
    uint32_t opaque = get_opaque(frame + response_offset, response_text);
    uint32_t number = (opaque - BASE) % (connections * in_flight);
    uint32_t index = number - c->first;
    if (index >= in_flight || !c->slots[index].waits || c->slots[index].opaque != opaque) {
        errno = EPROTO;
        fail("a response that nobody waits for");
    }
    put_opaque(response + response_offset, opaque, response_text);
    if (memcmp(frame, response, response_length) != 0) bad++;
    last_ns = now_ns();
    uint64_t us = (last_ns - c->slots[index].sent_ns) / 1000;
    histogram[us < HISTOGRAM_US ? us : HISTOGRAM_US]++;
    if (us > slowest_us) slowest_us = us;
    done++;
    c->slots[index].waits = 0;
    if (per_s == 0) send_request(c, index, 0);
}

static void readable(connection_t *c, size_t capacity) {
    ssize_t n = recv(c->fd, c->buffer + c->filled, capacity - c->filled, MSG_DONTWAIT);
    if (n == 0) {
        errno = ECONNRESET;
        fail("recv");
    }
    if (n < 0) {
        if (errno == EAGAIN || errno == EINTR) return;
        fail("recv");
    }
    c->filled += (size_t)n;
    size_t at = 0;
    for (; c->filled - at >= response_length; at += response_length) take_response(c, c->buffer + at);
    c->filled -= at;
    if (c->filled && at) memmove(c->buffer, c->buffer + at, c->filled);
}

static uint32_t percentile(double share) {
    uint64_t wanted = (uint64_t)((double)done * share), seen = 0;
    for (uint32_t us = 0; us <= HISTOGRAM_US; us++) {
        seen += histogram[us];
        if (seen > wanted) return us;
    }
    return HISTOGRAM_US;
}

/* Send what is due by now; when the next one is due. A connection whose slots all wait makes the rest wait, too. */
static uint64_t send_due(connection_t *all, uint64_t start, uint64_t *sent) {
    for (;; (*sent)++) {
        uint64_t due = start + (uint64_t)((double)*sent * 1e9 / per_s), now = now_ns();
        if (due > now) return due;
        connection_t *c = &all[*sent % connections];
        uint32_t index = 0;
        while (index < in_flight && c->slots[index].waits) index++;
        if (index == in_flight) return now + 100000;
        send_request(c, index, due);
    }
}

int main(int argc, char **argv) {
    if (argc != 13) {
        fprintf(stderr, "loadgen: twelve arguments are needed, see the top of loadgen.c\n");
        return 1;
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connections = (uint32_t)atoi(argv[2]);
    in_flight = (uint32_t)atoi(argv[3]);
    double seconds = atof(argv[4]);
    per_s = atof(argv[5]);
    requests = read_file(argv[6], &request_length);
    frames = (uint32_t)atoi(argv[7]);
    request_length /= frames;
    request_offset = (size_t)atol(argv[8]);
    request_text = strcmp(argv[9], "text") == 0;
    response = read_file(argv[10], &response_length);
    response_offset = (size_t)atol(argv[11]);
    response_text = strcmp(argv[12], "text") == 0;
    size_t capacity = response_length * (in_flight + 1) + 65536;

    int epoll = epoll_create1(0);
    if (epoll < 0) fail("epoll_create1");
    connection_t *all = calloc(connections, sizeof *all);
    for (uint32_t i = 0; i < connections; i++) {
        connection_t *c = &all[i];
        c->fd = socket(AF_INET, SOCK_STREAM, 0);
        if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address) < 0) fail("connect");
        int on = 1;
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        c->first = i * in_flight;
        c->frame = i % frames;
        c->buffer = malloc(capacity);
        c->slots = calloc(in_flight, sizeof *c->slots);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        if (!c->buffer || !c->slots || epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) < 0) fail("epoll_ctl");
    }
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event alarm = {.events = EPOLLIN, .data.ptr = NULL};
    if (timer < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &alarm) < 0) fail("timerfd");
    uint64_t start = now_ns(), end = start + (uint64_t)(seconds * 1e9), sent = 0;
    last_ns = start;
    for (uint32_t i = 0; per_s == 0 && i < connections; i++)
        for (uint32_t k = 0; k < in_flight; k++) send_request(&all[i], k, 0);
    while (now_ns() < end) {
        if (per_s > 0) {
            uint64_t due = send_due(all, start, &sent);
            struct itimerspec at = {0};
            at.it_value.tv_sec = (time_t)(due / 1000000000u);
            at.it_value.tv_nsec = (long)(due % 1000000000u);
            timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
        }
        struct epoll_event events[256];
        int n = epoll_wait(epoll, events, 256, 100);
        if (n < 0 && errno != EINTR) fail("epoll_wait");
        for (int i = 0; i < n; i++)
            if (events[i].data.ptr) readable(events[i].data.ptr, capacity);
    }
    double took = (double)(last_ns - start) / 1e9; /* what is still under way is not counted, nor is its time */
    printf("{\"requests\": %llu, \"seconds\": %.6f, \"per_s\": %.1f, \"p50_us\": %u, \"p99_us\": %u, \"max_us\": %llu, "
           "\"bad\": %llu}\n",
           (unsigned long long)done, took, done ? (double)done / took : 0.0, percentile(0.50), percentile(0.99),
           (unsigned long long)slowest_us, (unsigned long long)bad);
    return 0;
}
