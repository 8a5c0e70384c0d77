// Connections with TLS and HTTP/2, and the loop that drives them.
//
// Invariant: nothing is written within a callback of nghttp2. A connection that has something to
// send, or that has ended, is put into a list, and `turn` sends and frees when no callback runs. So
// several requests of one turn are one record of TLS and one system call.
#define _GNU_SOURCE
#include "client.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
    struct buffer body, answer;
    size_t sent;
    int status;
    char nonce[160];
    answered *then;
    void *context;
    uint64_t tag;
    struct request *next, *previous;
};

struct connection {
    int file;
    uint32_t interest;
    // A retired connection has got a GOAWAY: it ends with its last request.
    bool is_open, is_retired, is_ended, is_listed;
    SSL *tls;
    nghttp2_session *http2;
    struct buffer out;
    size_t written;
    struct request *requests;
    struct connection **place;
    // Where the session is kept for the next connection; NULL if it is not.
    SSL_SESSION **session;
    void (*opened)(void *);
    void *context;
    struct connection *next;
};

static struct sockaddr_in address;
static char authority[64];
static SSL_CTX *tls;
static int events = -1;
static nghttp2_session_callbacks *callbacks;
static nghttp2_option *options;
// The connections that `turn` looks after next.
static struct connection *listed;
static struct request *spare;

static void list(struct connection *connection) {
    if (connection->is_listed) return;
    connection->is_listed = true;
    connection->next = listed;
    listed = connection;
}

static void end(struct connection *connection) {
    connection->is_ended = true;
    list(connection);
}

// Callbacks of nghttp2.

static struct request *request_of(nghttp2_session *session, int32_t stream) {
    return nghttp2_session_get_stream_user_data(session, stream);
}

static int on_header(
    nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
    const uint8_t *value, size_t length, uint8_t flags, void *context) {
    struct request *request = request_of(session, frame->hd.stream_id);
    if (request == NULL) return 0;
    if (name_length == 7 && memcmp(name, ":status", 7) == 0) request->status = atoi((const char *)value);
    if (name_length == 10 && memcmp(name, "dpop-nonce", 10) == 0 && length < sizeof request->nonce) {
        memcpy(request->nonce, value, length);
        request->nonce[length] = 0;
    }
    return 0;
}

static int on_data(
    nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t count, void *context) {
    struct request *request = request_of(session, stream);
    if (request != NULL) append(&request->answer, bytes, count);
    return 0;
}

static void finish(struct connection *connection, struct request *request, const char *failure) {
    if (request->next != NULL) request->next->previous = request->previous;
    if (request->previous != NULL) request->previous->next = request->next;
    else connection->requests = request->next;
    struct answer answer = {
        .status = failure == NULL ? request->status : 0,
        .body = failure != NULL ? failure : request->answer.used > 0 ? request->answer.bytes : "",
        .dpop_nonce = request->nonce};
    request->then(request->context, request->tag, &answer);
    request->next = spare;
    spare = request;
    if (connection->is_retired && connection->requests == NULL) end(connection);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context) {
    struct connection *connection = context;
    if (frame->hd.type != NGHTTP2_GOAWAY) return 0;
    connection->is_retired = true;
    if (*connection->place == connection) *connection->place = NULL;
    if (connection->requests == NULL) end(connection);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t error, void *context) {
    struct request *request = request_of(session, stream);
    if (request == NULL) return 0;
    nghttp2_session_set_stream_user_data(session, stream, NULL);
    finish(context, request, error == 0 ? NULL : nghttp2_http2_strerror(error));
    return 0;
}

static ssize_t read_body(
    nghttp2_session *session, int32_t stream, uint8_t *bytes, size_t capacity, uint32_t *flags,
    nghttp2_data_source *source, void *context) {
    struct request *request = source->ptr;
    size_t count = request->body.used - request->sent;
    if (count > capacity) count = capacity;
    memcpy(bytes, request->body.bytes + request->sent, count);
    request->sent += count;
    if (request->sent == request->body.used) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)count;
}

void use_server(const char *host, int port, const char *authorities) {
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    snprintf(authority, sizeof authority, "%s:%d", host, port);
    tls = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION);
    SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    // A session is resumed only where `open_connection` is given one.
    SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set1_groups_list(tls, "X25519");
    SSL_CTX_set_alpn_protos(tls, (const uint8_t *)"\2h2", 3);
    if (SSL_CTX_load_verify_locations(tls, authorities, NULL) != 1) stop("%s: no authority", authorities);
    events = epoll_create1(EPOLL_CLOEXEC);
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_option_new(&options);
}

static void watch(struct connection *connection, uint32_t wanted) {
    if (connection->interest == wanted) return;
    struct epoll_event event = {.events = wanted, .data.ptr = connection};
    epoll_ctl(events, connection->interest == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, connection->file, &event);
    connection->interest = wanted;
}

void open_connection(
    struct connection **place, const struct identity *identity, SSL_SESSION **session, void (*opened)(void *),
    void *context) {
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) stop("no memory");
    *connection = (struct connection){.place = place, .session = session, .opened = opened, .context = context};
    connection->file = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int yes = 1;
    setsockopt(connection->file, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connection->file < 0) stop("no socket: %s", strerror(errno));
    if (connect(connection->file, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS)
        stop("no connection: %s", strerror(errno));
    connection->tls = SSL_new(tls);
    SSL_set_fd(connection->tls, connection->file);
    SSL_set_connect_state(connection->tls);
    if (identity != NULL) {
        SSL_use_certificate(connection->tls, identity->certificate);
        SSL_use_PrivateKey(connection->tls, identity->key);
    }
    if (session != NULL && *session != NULL) SSL_set_session(connection->tls, *session);
    nghttp2_session_client_new2(&connection->http2, callbacks, connection, options);
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20}};
    nghttp2_submit_settings(connection->http2, NGHTTP2_FLAG_NONE, settings, 2);
    nghttp2_session_set_local_window_size(connection->http2, NGHTTP2_FLAG_NONE, 0, 1 << 28);
    watch(connection, EPOLLOUT);
    *place = connection;
}

#define FIELD(text, count, content, length) \
    (nghttp2_nv){(uint8_t *)(text), (uint8_t *)(content), count, length, NGHTTP2_NV_FLAG_NO_COPY_NAME}

void post(
    struct connection *connection, const char *path, const struct field *fields, size_t count, const char *body,
    size_t length, answered *then, void *context, uint64_t tag) {
    struct request *request = spare;
    if (request != NULL) spare = request->next;
    else request = calloc(1, sizeof *request);
    if (request == NULL) stop("no memory");
    request->body.used = request->answer.used = request->sent = 0;
    request->status = request->nonce[0] = 0;
    request->then = then;
    request->context = context;
    request->tag = tag;
    append(&request->body, body, length);
    nghttp2_nv all[9] = {
        FIELD(":method", 7, "POST", 4), FIELD(":scheme", 7, "https", 5), FIELD(":path", 5, path, strlen(path)),
        FIELD(":authority", 10, authority, strlen(authority)), FIELD("content-type", 12, "application/json", 16)};
    for (size_t at = 0; at < count; at++) {
        all[5 + at] = FIELD(fields[at].name, strlen(fields[at].name), fields[at].value, strlen(fields[at].value));
        all[5 + at].flags |= NGHTTP2_NV_FLAG_NO_INDEX;
    }
    nghttp2_data_provider provider = {.source.ptr = request, .read_callback = read_body};
    int32_t stream = nghttp2_submit_request(connection->http2, NULL, all, 5 + count, &provider, request);
    if (stream < 0) stop("%s: %s", path, nghttp2_strerror(stream));
    request->previous = NULL;
    request->next = connection->requests;
    if (request->next != NULL) request->next->previous = request;
    connection->requests = request;
    list(connection);
}

void close_connection(struct connection *connection) { end(connection); }

bool is_resumed(const struct connection *connection) { return SSL_session_reused(connection->tls) == 1; }

static void send_waiting(struct connection *connection) {
    while (!connection->is_ended) {
        const uint8_t *bytes;
        ssize_t count;
        while (connection->out.used < 65536 && (count = nghttp2_session_mem_send(connection->http2, &bytes)) > 0)
            append(&connection->out, bytes, count);
        if (connection->out.used == 0) {
            watch(connection, EPOLLIN);
            return;
        }
        int sent = SSL_write(
            connection->tls, connection->out.bytes + connection->written, connection->out.used - connection->written);
        if (sent <= 0) {
            if (SSL_get_error(connection->tls, sent) == SSL_ERROR_WANT_WRITE) watch(connection, EPOLLIN | EPOLLOUT);
            else end(connection);
            ERR_clear_error();
            return;
        }
        connection->written += sent;
        if (connection->written == connection->out.used) connection->written = connection->out.used = 0;
    }
}

static void receive(struct connection *connection) {
    static uint8_t bytes[65536];
    int count;
    while ((count = SSL_read(connection->tls, bytes, sizeof bytes)) > 0) {
        if (nghttp2_session_mem_recv(connection->http2, bytes, count) < 0) {
            end(connection);
            return;
        }
    }
    if (SSL_get_error(connection->tls, count) != SSL_ERROR_WANT_READ) end(connection);
    ERR_clear_error();
    if (!nghttp2_session_want_read(connection->http2) && !nghttp2_session_want_write(connection->http2))
        end(connection);
    // Acknowledgements and window updates.
    list(connection);
}

static void shake_hands(struct connection *connection) {
    int status = SSL_connect(connection->tls);
    if (status == 1) {
        connection->is_open = true;
        if (connection->opened != NULL) connection->opened(connection->context);
        list(connection);
        return;
    }
    int error = SSL_get_error(connection->tls, status);
    if (error == SSL_ERROR_WANT_READ) watch(connection, EPOLLIN);
    else if (error == SSL_ERROR_WANT_WRITE) watch(connection, EPOLLOUT);
    else end(connection);
    ERR_clear_error();
}

static void release(struct connection *connection) {
    if (*connection->place == connection) *connection->place = NULL;
    while (connection->requests != NULL)
        finish(connection, connection->requests, "the connection ended");
    // The alert is the last word of a client that closes.
    if (connection->is_open) SSL_shutdown(connection->tls);
    ERR_clear_error();
    // The ticket has come by now, with the answers.
    if (connection->session != NULL && connection->is_open) {
        SSL_SESSION_free(*connection->session);
        *connection->session = SSL_get1_session(connection->tls);
    }
    nghttp2_session_del(connection->http2);
    SSL_free(connection->tls);
    close(connection->file);
    free(connection->out.bytes);
    free(connection);
}

static void look_after_listed(void) {
    while (listed != NULL) {
        struct connection *connection = listed;
        listed = connection->next;
        connection->is_listed = false;
        if (connection->is_open && !connection->is_ended) send_waiting(connection);
        if (connection->is_ended && !connection->is_listed) release(connection);
    }
}

void turn(uint64_t until) {
    look_after_listed();
    uint64_t present = now();
    uint64_t left = until > present ? until - present : 0;
    struct timespec timeout = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
    struct epoll_event ready[256];
    int count = epoll_pwait2(events, ready, 256, &timeout, NULL);
    for (int at = 0; at < count; at++) {
        struct connection *connection = ready[at].data.ptr;
        if (connection->is_ended) continue;
        if (!connection->is_open) shake_hands(connection);
        // The answers may be in the same packet as the end of the handshake.
        if (connection->is_open && !connection->is_ended) receive(connection);
    }
    look_after_listed();
}
