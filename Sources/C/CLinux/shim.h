// Linux functions that Swift's Glibc module does not have.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
// Glibc's Swift module knows `fd_set` by its plain C member names. The type must look the same
// here.
#include <features.h>
#undef __USE_XOPEN
#include <sys/select.h>
#define __USE_XOPEN 1
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
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

/// Returns free heap memory to the system. Glibc by itself returns only memory at the top of the
/// heap.
static inline void clinux_return_memory(void) { malloc_trim(0); }

/// Writes to `stderr`, which Swift treats as a mutable global.
static inline int clinux_write_stderr(const void *bytes, size_t count) {
    return (int)write(STDERR_FILENO, bytes, count);
}

// EventLoop: variadic functions.

/// Sets the name of the calling thread that `top` and a debugger show. The kernel keeps 15
/// characters.
static inline void clinux_name_thread(const char *name) {
    prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0);
}

/// Declared here because Glibc's Swift module has semaphore.h without it.
extern int sem_clockwait(sem_t *, clockid_t, const struct timespec *);

static inline int clinux_wait_until(sem_t *semaphore, clockid_t clock, const struct timespec *end) {
    return sem_clockwait(semaphore, clock, end);
}

/// Locks one byte of an open file for writing, at once or not at all. The lock belongs to the open
/// file, not to the process.
static inline int clinux_lock_byte(int fd, off_t byte) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &lock);
}

/// Makes a descriptor non-blocking, and closes it in programs that this one starts.
static inline int clinux_add_flags(int fd) {
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) return -1;
    return fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static inline int clinux_duplicate(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 0); }

/// Returns `environ`, which Swift treats as a mutable global.
static inline char **clinux_environment(void) {
    return environ;
}

/// Accepts a connection. With _GNU_SOURCE the address is a transparent union, which Swift cannot
/// make.
static inline int clinux_accept(int listener, struct sockaddr *address, socklen_t *length) {
    return accept4(listener, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

// KeyService and the control socket: a struct that Glibc's Swift module does not have.

/// Returns the user and process at the other end of a Unix socket. -1 and errno if the kernel does
/// not report them.
static inline int clinux_peer(int socket, uid_t *user, pid_t *process) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return -1;
    *user = peer.uid;
    *process = peer.pid;
    return 0;
}

/// Returns the number of further groups of the user at the other end of a Unix socket (Linux 4.13),
/// which are copied to `groups`. -1 and errno if the kernel does not report them, or if they are more
/// than `most`.
static inline int clinux_peer_groups(int socket, uid_t *user, gid_t *group, gid_t *groups, uint32_t most) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return -1;
    *user = peer.uid;
    *group = peer.gid;
    length = most * sizeof *groups;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &length) != 0) return -1;
    return (int)(length / sizeof *groups);
}

/// Returns a descriptor that is readable when the process has ended (Linux 5.3). -1 and errno if
/// there is none.
static inline int clinux_process_descriptor(pid_t process) { return (int)syscall(434, process, 0u); }

// Hardening: variadic functions, and system calls without a function in the C library.

static inline int clinux_prctl(int option, unsigned long argument) {
    return prctl(option, argument, 0UL, 0UL, 0UL);
}

// Landlock (Documentation/userspace-api/landlock.rst). The kernel's numbers are the same on all
// architectures. The headers of Debian 12 have neither all rights nor the functions.

struct clinux_landlock_ruleset {
    uint64_t handled_access_fs;
};

struct clinux_landlock_path_beneath {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));

/// Returns the version of the interface, or -1 and errno.
static inline int clinux_landlock_version(void) {
    return (int)syscall(444, NULL, (size_t)0, (uint32_t)1);
}

static inline int clinux_landlock_create(const struct clinux_landlock_ruleset *rules) {
    return (int)syscall(444, rules, sizeof *rules, (uint32_t)0);
}

static inline int clinux_landlock_add(int ruleset, const struct clinux_landlock_path_beneath *rule) {
    return (int)syscall(445, ruleset, 1, rule, (uint32_t)0);
}

static inline int clinux_landlock_restrict(int ruleset) {
    return (int)syscall(446, ruleset, (uint32_t)0);
}
