// Counts what a program does, if LD_PRELOAD names this library: allocations and their bytes, calls of
// fsync and fdatasync, and SQLite's statements and commits.
//
// The counts are in the file that COUNTS_FILE names, one line of the cache for each thread, so that
// threads do not disturb each other. Benchmarks/Logins/run reads it before and after a cell. Without
// that variable, the counts go to memory that nobody reads.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SLOTS = 1024 };

struct slot {
    uint64_t thread, allocations, bytes, syncs, statements, commits, unused[2];
};

static struct slot early[SLOTS];
static struct slot *slots = early;
static uint32_t used;
static __thread struct slot *own;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("COUNTS_FILE");
    int file = path == NULL ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof early) != 0) return;
    void *shared = mmap(NULL, sizeof early, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared != MAP_FAILED) slots = shared;
    own = NULL;
}

static struct slot *slot(void) {
    if (own == NULL) {
        own = &slots[__atomic_fetch_add(&used, 1, __ATOMIC_RELAXED) % SLOTS];
        own->thread = (uint64_t)syscall(SYS_gettid);
    }
    return own;
}

static void count(size_t bytes) {
    struct slot *mine = slot();
    mine->allocations++;
    mine->bytes += bytes;
}

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) {
    count(size);
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count(number * size);
    return __libc_calloc(number, size);
}

void *realloc(void *place, size_t size) {
    count(size);
    return __libc_realloc(place, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count(size);
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **place, size_t alignment, size_t size) {
    count(size);
    *place = __libc_memalign(alignment, size);
    return *place == NULL ? ENOMEM : 0;
}

int fsync(int file) {
    slot()->syncs++;
    return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
    slot()->syncs++;
    return (int)syscall(SYS_fdatasync, file);
}

int sqlite3_step(void *statement) {
    static int (*step)(void *);
    static const char *(*text)(void *);
    if (step == NULL) {
        text = (const char *(*)(void *))dlsym(RTLD_NEXT, "sqlite3_sql");
        step = (int (*)(void *))dlsym(RTLD_NEXT, "sqlite3_step");
    }
    int status = step(statement);
    // SQLITE_DONE
    if (status == 101) {
        slot()->statements++;
        const char *sql = text(statement);
        if (sql != NULL && strncmp(sql, "COMMIT", 6) == 0) slot()->commits++;
    }
    return status;
}
