/* A load generator for length-prefixed request/response frames: N connections, K requests in flight on each.
 *
 *   loadgen PORT CONNECTIONS IN_FLIGHT SECONDS REQUEST_FILE REQUEST_OFFSET RESPONSE_FILE RESPONSE_OFFSET text|binary
 *
 * REQUEST_FILE and RESPONSE_FILE hold one whole frame each. The opaque in both is patched at the given offset: nine
 * decimal digits (text) or four big-endian bytes (binary). Every byte of every response is compared with the expected
 * frame. Prints one JSON object: requests, seconds, per_s, p50_us, p99_us, bad. Exit status 1 when it cannot run.
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
#include <time.h>
#include <unistd.h>

#define BASE 100000000u
#define ROUNDS 1000u
#define HISTOGRAM_US 1000000

typedef struct {
    uint32_t opaque;
    uint32_t round;
    uint64_t sent_ns;
} slot_t;

typedef struct {
    int fd;
    uint32_t first; /* number of its first slot over all connections */
    size_t filled;
    unsigned char *buffer;
    slot_t *slots;
} connection_t;

static unsigned char *request, *response;
static size_t request_length, response_length, request_offset, response_offset;
static int text;
static uint32_t connections, in_flight;
static uint64_t done, bad;
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

static void put_opaque(unsigned char *at, uint32_t opaque) {
    if (text) {
        for (int i = 8; i >= 0; i--, opaque /= 10) at[i] = (unsigned char)('0' + opaque % 10);
    } else {
        for (int i = 3; i >= 0; i--, opaque >>= 8) at[i] = (unsigned char)opaque;
    }
}

static uint32_t get_opaque(const unsigned char *at) {
    uint32_t opaque = 0;
    if (text)
        for (int i = 0; i < 9; i++) opaque = opaque * 10 + (uint32_t)(at[i] - '0');
    else
        for (int i = 0; i < 4; i++) opaque = opaque << 8 | at[i];
    return opaque;
}

static void send_request(connection_t *c, uint32_t index) {
    slot_t *slot = &c->slots[index];
    slot->round = (slot->round + 1) % ROUNDS;
    slot->opaque = BASE + slot->round * connections * in_flight + c->first + index;
    put_opaque(request + request_offset, slot->opaque);
    slot->sent_ns = now_ns();
    for (size_t at = 0; at < request_length;) {
        ssize_t n = send(c->fd, request + at, request_length - at, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) fail("send");
        if (n > 0) at += (size_t)n;
    }
}

static void take_response(connection_t *c, const unsigned char *frame) {
    uint32_t opaque = get_opaque(frame + response_offset);
    uint32_t number = (opaque - BASE) % (connections * in_flight);
    uint32_t index = number - c->first;
    if (index >= in_flight || c->slots[index].opaque != opaque) {
        errno = EPROTO;
        fail("a response that nobody waits for");
    }
    put_opaque(response + response_offset, opaque);
    if (memcmp(frame, response, response_length) != 0) bad++;
    uint64_t us = (now_ns() - c->slots[index].sent_ns) / 1000;
    histogram[us < HISTOGRAM_US ? us : HISTOGRAM_US]++;
    done++;
    send_request(c, index);
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

int main(int argc, char **argv) {
    if (argc != 10) {
        fprintf(stderr, "loadgen: nine arguments are needed, see the top of loadgen.c\n");
        return 1;
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connections = (uint32_t)atoi(argv[2]);
    in_flight = (uint32_t)atoi(argv[3]);
    double seconds = atof(argv[4]);
    request = read_file(argv[5], &request_length);
    request_offset = (size_t)atol(argv[6]);
    response = read_file(argv[7], &response_length);
    response_offset = (size_t)atol(argv[8]);
    text = strcmp(argv[9], "text") == 0;
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
        c->buffer = malloc(capacity);
        c->slots = calloc(in_flight, sizeof *c->slots);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        if (!c->buffer || !c->slots || epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) < 0) fail("epoll_ctl");
    }
    uint64_t start = now_ns(), last = start, end = start + (uint64_t)(seconds * 1e9);
    for (uint32_t i = 0; i < connections; i++)
        for (uint32_t k = 0; k < in_flight; k++) send_request(&all[i], k);
    while (now_ns() < end) {
        struct epoll_event events[256];
        int n = epoll_wait(epoll, events, 256, 100);
        if (n < 0 && errno != EINTR) fail("epoll_wait");
        for (int i = 0; i < n; i++) readable(events[i].data.ptr, capacity);
    }
    last = now_ns();
    double took = (double)(last - start) / 1e9;
    printf("{\"requests\": %llu, \"seconds\": %.6f, \"per_s\": %.1f, \"p50_us\": %u, \"p99_us\": %u, \"bad\": %llu}\n",
           (unsigned long long)done, took, (double)done / took, percentile(0.50), percentile(0.99),
           (unsigned long long)bad);
    return 0;
}
