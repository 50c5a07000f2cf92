/* The baseline: an epoll server that answers every request frame with one fixed response, opaque patched in.
 *
 *   echo REQUEST_LENGTH REQUEST_OFFSET RESPONSE_FILE RESPONSE_OFFSET text|binary
 *
 * It knows nothing but sizes: the cheapest program that moves the same bytes. Listens on a free port of 127.0.0.1 and
 * prints it. Ends with its parent, or on a signal.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct {
    int fd;
    size_t filled;
    unsigned char buffer[1 << 16];
} connection_t;

static void fail(const char *what) {
    fprintf(stderr, "echo: %s: %s\n", what, strerror(errno));
    exit(1);
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "echo: five arguments are needed, see the top of echo.c\n");
        return 1;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    size_t request_length = (size_t)atol(argv[1]), request_offset = (size_t)atol(argv[2]);
    size_t response_offset = (size_t)atol(argv[4]), width = strcmp(argv[5], "text") == 0 ? 9 : 4;
    FILE *file = fopen(argv[3], "rb");
    if (!file) fail(argv[3]);
    fseek(file, 0, SEEK_END);
    size_t response_length = (size_t)ftell(file);
    rewind(file);
    unsigned char *response = malloc(response_length + 1);
    if (!response || fread(response, 1, response_length, file) != response_length) fail(argv[3]);
    fclose(file);

    int listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) < 0 || listen(listener, 1024) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) < 0)
        fail("listen");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0) fail("epoll");
    for (;;) {
        struct epoll_event events[256];
        int n = epoll_wait(epoll, events, 256, -1);
        if (n < 0 && errno != EINTR) fail("epoll_wait");
        for (int i = 0; i < n; i++) {
            connection_t *c = events[i].data.ptr;
            if (!c) {
                int fd = accept(listener, NULL, NULL), on = 1;
                if (fd < 0) continue;
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                c = calloc(1, sizeof *c);
                if (!c) fail("calloc");
                c->fd = fd;
                event.data.ptr = c;
                epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
                continue;
            }
            ssize_t got = recv(c->fd, c->buffer + c->filled, sizeof c->buffer - c->filled, 0);
            if (got <= 0) {
                close(c->fd);
                free(c);
                continue;
            }
            c->filled += (size_t)got;
            size_t at = 0;
            for (; c->filled - at >= request_length; at += request_length) {
                memcpy(response + response_offset, c->buffer + at + request_offset, width);
                for (size_t sent = 0; sent < response_length;) {
                    ssize_t put = send(c->fd, response + sent, response_length - sent, MSG_NOSIGNAL);
                    if (put <= 0) break;
                    sent += (size_t)put;
                }
            }
            c->filled -= at;
            if (c->filled && at) memmove(c->buffer, c->buffer + at, c->filled);
        }
    }
}
