#pragma once
#include <microhttpd.h>
#include <string.h>

// HTTP1: variadics.

/// A daemon without threads and without a socket of its own: connections are given to it, and it works when it is told.
/// All callbacks get `context`.
static inline struct MHD_Daemon *cmicrohttpd_start(
    void *context, unsigned int connections, MHD_AccessHandlerCallback access, MHD_RequestCompletedCallback completed,
    MHD_NotifyConnectionCallback connection,
    void *(*target)(void *context, const char *target, struct MHD_Connection *connection)) {
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, access, context,
        MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)32768,
        MHD_OPTION_CONNECTION_TIMEOUT, 0U, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_NOTIFY_COMPLETED, completed, context, MHD_OPTION_NOTIFY_CONNECTION, connection, context,
        MHD_OPTION_URI_LOG_CALLBACK, target, context, MHD_OPTION_END);
}

/// Readable when the daemon has something to do.
static inline int cmicrohttpd_descriptor(struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info ? info->epoll_fd : -1;
}

/// What was put by for a connection when it began.
static inline void *cmicrohttpd_connection_context(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}
