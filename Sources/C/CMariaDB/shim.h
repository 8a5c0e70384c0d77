#pragma once
#include <mariadb/mysql.h>
#include <mariadb/errmsg.h>
#include <mariadb/mysqld_error.h>

/// Makes the connection send without waiting for answers. After this, only the functions below read
/// answers.
static inline int cmariadb_send_without_waiting(MYSQL *connection) {
    my_bool on = 1;
    return mysql_optionsv(connection, MARIADB_OPT_SKIP_READ_RESPONSE, (void *)&on);
}

/// Sends a statement as text and reads its answer. Returns zero on success.
static inline int cmariadb_query(MYSQL *connection, const char *sql, unsigned long count) {
    if (mysql_real_query(connection, sql, count) != 0) { return 1; }
    return mysql_read_query_result(connection) ? 1 : 0;
}

static inline int cmariadb_prepare(MYSQL_STMT *statement, const char *sql, unsigned long count) {
    if (mysql_stmt_prepare(statement, sql, count) != 0) { return 1; }
    if (statement->mysql == 0) { return 1; }
    return statement->mysql->methods->db_read_prepare_response(statement) ? 1 : 0;
}

/// Reads the answer to the oldest `mysql_stmt_execute` of this connection that is still unread. It
/// must belong to this statement.
static inline int cmariadb_read_answer(MYSQL_STMT *statement) {
    if (statement->mysql == 0) { return 1; }
    return statement->mysql->methods->db_read_execute_response(statement);
}

/// Whether the server executes a statement for an array of values.
static inline int cmariadb_takes_arrays(MYSQL *connection) {
    // libmariadb writes four or eight bytes, by its version.
    unsigned long long capabilities = 0;
    if (mariadb_get_infov(connection, MARIADB_CONNECTION_EXTENDED_SERVER_CAPABILITIES, &capabilities) != 0) { return 0; }
    return (capabilities & (MARIADB_CLIENT_STMT_BULK_OPERATIONS >> 32)) != 0;
}

/// Whether a column holds bytes, not characters. 63 is the number of the character set `binary`.
static inline int cmariadb_is_binary(const MYSQL_FIELD *field) { return field->charsetnr == 63; }
