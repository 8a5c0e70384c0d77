// What Linux has and Swift's Glibc module leaves out.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
// Glibc's Swift module knows `fd_set` by its plain-C member names; the same type must not look different here.
#include <features.h>
#undef __USE_XOPEN
#include <sys/select.h>
#define __USE_XOPEN 1
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/// `stderr` is a mutable global to Swift; this is not.
static inline int clinux_write_stderr(const void *bytes, size_t count) {
    return (int)write(STDERR_FILENO, bytes, count);
}

// EventLoop: variadics.

/// The name that `top` and a debugger show for the calling thread; the kernel keeps 15 characters of it.
static inline void clinux_name_thread(const char *name) {
    prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0);
}

/// Glibc's Swift module has semaphore.h without this.
extern int sem_clockwait(sem_t *, clockid_t, const struct timespec *);

static inline int clinux_wait_until(sem_t *semaphore, clockid_t clock, const struct timespec *end) {
    return sem_clockwait(semaphore, clock, end);
}

/// `environ` is a mutable global to Swift; this is not.
static inline char **clinux_environment(void) {
    return environ;
}

/// Under _GNU_SOURCE the address is a transparent union, which Swift cannot make.
static inline int clinux_accept(int listener, struct sockaddr *address, socklen_t *length) {
    return accept4(listener, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}
