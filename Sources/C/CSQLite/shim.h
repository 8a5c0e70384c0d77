#pragma once
#include <sqlite3.h>
#include <time.h>

/// Binds a text. `SQLITE_TRANSIENT` is a cast that Swift cannot import. An empty text may have a
/// null address, which SQLite would store as NULL.
static inline int csqlite_bind_text(sqlite3_stmt *statement, int place, const char *text, int count) {
    return sqlite3_bind_text(statement, place, text ? text : "", count, SQLITE_TRANSIENT);
}

static inline int csqlite_bind_blob(sqlite3_stmt *statement, int place, const void *bytes, int count) {
    if (count == 0) { return sqlite3_bind_zeroblob(statement, place, 0); }
    return sqlite3_bind_blob(statement, place, bytes, count, SQLITE_TRANSIENT);
}

/// Turns off the statistics about memory, which take a lock of the whole process at each allocation.
/// `sqlite3_config` is variadic, and must be called before anything else of SQLite.
static inline void csqlite_configure(void) { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

/// The limits of the next statements of a connection: steps, in hundreds, and a time of the clock.
typedef struct {
    int hundreds;
    long long until;
} csqlite_limits;

static inline long long csqlite_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/// Is called after each hundred steps of a statement. Interrupts the statement beyond a limit.
static int csqlite_take_steps(void *limits) {
    csqlite_limits *all = limits;
    return --all->hundreds < 0 || csqlite_nanoseconds() > all->until;
}

static inline void csqlite_limit(sqlite3 *database, csqlite_limits *limits) {
    sqlite3_progress_handler(database, 100, csqlite_take_steps, limits);
}

static inline void csqlite_allow(csqlite_limits *limits, int hundreds, long long nanoseconds) {
    limits->hundreds = hundreds;
    limits->until = csqlite_nanoseconds() + nanoseconds;
}

/// Begins the count of a statement's steps anew. Otherwise SQLite counts on over all its executions.
static inline void csqlite_forget_steps(sqlite3_stmt *statement) {
    sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1);
}

/// Hardens a connection; `sqlite3_db_config` is variadic. A text in double quotes is only a name,
/// and SQL cannot corrupt the database file or use a malicious schema.
static inline void csqlite_harden(sqlite3 *database) {
    sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DML, 0, (int *)0);
    sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DDL, 0, (int *)0);
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
    sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
    /* A trigger that an attacker put into the file would change rows between their writing and their signing. */
    sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
}
