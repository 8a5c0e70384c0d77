// reference sqlite:FILE
// reference mariadb:SOCKET/DATABASE
//
// The reference of Benchmarks/Logins/run: what the same database does for one connection with rows of
// a hundred bytes. For each line `SECONDS` on standard input it measures two figures for that time
// each, and prints them as one line of JSON: `single`, transactions of one row a second, and `group`,
// rows a second in transactions of 64 rows. Each commit survives a crash, as the relay's do.
#include <mariadb/mysql.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { ROW = 100, GROUP = 64 };

static sqlite3 *file;
static sqlite3_stmt *file_insert;
static MYSQL *server;
static MYSQL_STMT *server_insert;
static char row[ROW];

static void stop(const char *what) {
    const char *why = file != NULL ? sqlite3_errmsg(file) : server != NULL ? mysql_error(server) : "";
    fprintf(stderr, "reference: %s: %s\n", what, why);
    exit(1);
}

static double seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void execute(const char *sql) {
    if (file != NULL ? sqlite3_exec(file, sql, NULL, NULL, NULL) != SQLITE_OK : mysql_query(server, sql) != 0) stop(sql);
}

static void insert(void) {
    if (file == NULL) {
        if (mysql_stmt_execute(server_insert) != 0) stop("INSERT");
        return;
    }
    if (sqlite3_step(file_insert) != SQLITE_DONE) stop("INSERT");
    sqlite3_reset(file_insert);
}

static void open_file(const char *path) {
    if (sqlite3_open(path, &file) != SQLITE_OK) stop(path);
    execute("PRAGMA journal_mode = WAL");
    execute("PRAGMA synchronous = FULL");
    execute("CREATE TABLE reference (id INTEGER PRIMARY KEY, value BLOB NOT NULL)");
    if (sqlite3_prepare_v2(file, "INSERT INTO reference (value) VALUES (?)", -1, &file_insert, NULL) != SQLITE_OK)
        stop("INSERT");
    sqlite3_bind_blob(file_insert, 1, row, ROW, SQLITE_STATIC);
}

static void open_server(char *socket) {
    char *database = strrchr(socket, '/');
    if (database == NULL) stop("SOCKET/DATABASE");
    *database++ = 0;
    server = mysql_init(NULL);
    if (mysql_real_connect(server, NULL, "root", NULL, database, 0, socket, 0) == NULL) stop(socket);
    execute("CREATE TABLE reference (id BIGINT PRIMARY KEY AUTO_INCREMENT, value VARBINARY(100) NOT NULL) ENGINE InnoDB");
    static const char text[] = "INSERT INTO reference (value) VALUES (?)";
    static unsigned long length = ROW;
    static MYSQL_BIND value = {.buffer_type = MYSQL_TYPE_BLOB, .buffer = row, .buffer_length = ROW};
    value.length = &length;
    server_insert = mysql_stmt_init(server);
    if (mysql_stmt_prepare(server_insert, text, sizeof text - 1) != 0 || mysql_stmt_bind_param(server_insert, &value) != 0)
        stop(text);
}

// Returns the rows a second.
static double measure(double duration, int group) {
    double start = seconds(CLOCK_MONOTONIC), end = start;
    long rows = 0;
    while (end < start + duration) {
        if (group > 1) execute("BEGIN");
        for (int at = 0; at < group; at++) insert();
        if (group > 1) execute("COMMIT");
        rows += group;
        end = seconds(CLOCK_MONOTONIC);
    }
    return rows / (end - start);
}

int main(int count, char **words) {
    if (count == 2 && strncmp(words[1], "sqlite:", 7) == 0) open_file(words[1] + 7);
    else if (count == 2 && strncmp(words[1], "mariadb:", 8) == 0) open_server(words[1] + 8);
    else stop("usage: see reference.c");
    memset(row, 'x', ROW);
    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        double duration = atof(line), busy = seconds(CLOCK_PROCESS_CPUTIME_ID);
        double single = measure(duration, 1);
        busy = (seconds(CLOCK_PROCESS_CPUTIME_ID) - busy) / (single * duration) * 1e6;
        printf("{\"single\":%.1f,\"group\":%.1f,\"single_us\":%.1f}\n", single, measure(duration, GROUP), busy);
        fflush(stdout);
    }
    return 0;
}
