/* gateway: an HTTP gateway for text messages that accepts every request. It prints its port, and answers each connection
 * once. One thread, so that it takes little of the machine. The requests have no body. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char answer[] =
    "HTTP/1.1 202 Accepted\r\nContent-Type: text/plain\r\nContent-Length: 24\r\nConnection: close\r\n\r\n"
    "0: Accepted for delivery";

static void die(const char *what) {
    perror(what);
    exit(1);
}

int main(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), polling = epoll_create1(0);
    if (listening < 0 || polling < 0) die("socket");
    if (bind(listening, (struct sockaddr *)&at, sizeof at) < 0 || listen(listening, 1024) < 0) die("listen");
    if (getsockname(listening, (struct sockaddr *)&at, &length) < 0) die("getsockname");
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    struct epoll_event events[256], event = {.events = EPOLLIN, .data.fd = listening};
    epoll_ctl(polling, EPOLL_CTL_ADD, listening, &event);
    for (;;) {
        int count = epoll_wait(polling, events, 256, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listening) {
                int client;
                while ((client = accept4(listening, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                    event.data.fd = client;
                    epoll_ctl(polling, EPOLL_CTL_ADD, client, &event);
                }
                continue;
            }
            /* A request is one small packet on this machine. */
            char request[8192];
            ssize_t got = read(fd, request, sizeof request);
            if (got < 0 && errno == EAGAIN) continue;
            if (got >= 4 && memcmp(request + got - 4, "\r\n\r\n", 4) == 0 && write(fd, answer, sizeof answer - 1) < 0)
                perror("write");
            close(fd);
        }
    }
}
