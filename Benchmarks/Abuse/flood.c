// flood PORT KIND BYTES: sends BYTES of one kind of frame to an HTTP/2 server over TLS, and reads
// and drops the answers. After each 4 KB it waits for the answer to a PING, so that it counts only
// bytes that the server has received. If the server ends a connection, it opens another one, up to
// CONNECTIONS (2,000). It prints the sent bytes, including TLS and its handshakes, and the number
// of connections. Without arguments it lists the kinds.
//
// A kind is a function that appends its next piece to `out`; `number` counts its calls on this
// connection. To add a kind, write the function and add a line to `kinds`. Kinds of handshakes need
// their own loop: see `key_updates`, which sends no frames.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4, PADDED = 8 };

static uint8_t out[1 << 18];
static size_t used;

static void put(const void *bytes, size_t count) {
    memcpy(out + used, bytes, count);
    used += count;
}

static void head(size_t length, int type, int flags, uint32_t stream) {
    uint8_t bytes[9] = {length >> 16, length >> 8, length, type, flags, stream >> 24, stream >> 16, stream >> 8, stream};
    put(bytes, 9);
}

static void frame(int type, int flags, uint32_t stream, const void *payload, size_t length) {
    head(length, type, flags, stream);
    put(payload, length);
}

// GET or POST https /health with `:authority: x`, with HPACK's static table.
#define GET "\x82\x87\x04\x07/health\x01\x01x"
#define POST "\x83\x87\x04\x07/health\x01\x01x"
static const uint8_t zeros[65536];
static uint8_t ones[65536];  // 0x90 or 0xbe, as the kind requires.

static void request(uint32_t stream, int flags, const char *base, const void *more, size_t count) {
    head(strlen(base) + count, HEADERS, flags, stream);
    put(base, strlen(base));
    put(more, count);
}

#define STREAM (2 * number + 1)
#define WHOLE (END_HEADERS | END_STREAM)

static void good(uint32_t number) { request(STREAM, WHOLE, GET, "", 0); }

static void plain(uint32_t number) {
    uint8_t field[2003] = {0x00, 1, 'a', 0x7f, 0xcd, 0x0e};  // 127 + 77 + 14 * 128 = 1996
    memset(field + 6, 'b', 1996);
    request(STREAM, WHOLE, GET, field, 6 + 1996);
}

static void huffman(uint32_t number) {
    uint8_t field[2006] = {0x00, 1, 'a', 0xff, 0xd1, 0x0e};  // 2000 bytes of five bits for each '0'
    request(STREAM, WHOLE, GET, field, 2006);
}

static void fields(uint32_t number) {
    memset(ones, 0x90, 90);
    request(STREAM, WHOLE, GET, ones, 90);
}

static void large_entry(void) {
    uint8_t field[4006] = {0x40, 1, 'a', 0x7f, 0xa1, 0x1e};
    memset(field + 6, 'b', 4000);
    request(1, WHOLE, GET, field, 4006);
}

static void indexed(uint32_t number, size_t count) {
    if (number == 0) { large_entry(); return; }
    memset(ones, 0xbe, count);
    request(STREAM, WHOLE, GET, ones, count);
}
static void indexed_1(uint32_t number) { indexed(number, 1); }
static void indexed_8(uint32_t number) { indexed(number, 8); }
static void indexed_17(uint32_t number) { indexed(number, 17); }
static void indexed_16000(uint32_t number) { indexed(number, 16000); }

static void continuation(uint32_t number) {
    request(STREAM, END_STREAM, GET, "", 0);
    for (int i = 0; i < 7; i++) frame(CONTINUATION, i == 6 ? END_HEADERS : 0, STREAM, "\x90", 1);
}

static void settings(uint32_t number) { frame(SETTINGS, 0, 0, "\0\4\0\1\0\0", 6); }
static void ping(uint32_t number) { frame(PING, 0, 0, zeros, 8); }
static void priority(uint32_t number) { frame(PRIORITY, 0, STREAM, "\0\0\0\0\x10", 5); }
static void window(uint32_t number) { frame(WINDOW, 0, 0, "\0\0\0\1", 4); }
static void unknown(uint32_t number) { frame(0xbb, 0, 0, zeros, 3); }

static void reset(uint32_t number) {
    request(STREAM, WHOLE, GET, "", 0);
    frame(RESET, 0, STREAM, "\0\0\0\10", 4);
}

static void malformed(uint32_t number) { frame(HEADERS, WHOLE, STREAM, "\x82\x87", 2); }

static void body(uint32_t number, size_t part) {
    request(STREAM, END_HEADERS, POST, "", 0);
    for (size_t sent = 0; sent < 65536; sent += part)
        frame(DATA, sent + part >= 65536 ? END_STREAM : 0, STREAM, zeros, part);
}
static void data_16384(uint32_t number) { body(number, 16384); }
static void data_64(uint32_t number) { body(number, 64); }

static void once_open(uint32_t number) { if (number == 0) request(1, END_HEADERS, POST, "", 0); }
static void data_empty(uint32_t number) { once_open(number); frame(DATA, 0, 1, "", 0); }
static void data_padded(uint32_t number) { once_open(number); frame(DATA, PADDED, 1, "\xff", 1); used -= 9 + 1; head(256, DATA, PADDED, 1); put("\xff", 1); put(zeros, 255); }

// Stream 1 is malformed, so the server resets it. It must then ignore frames that are already on
// their way.
static void half_malformed(void) { frame(HEADERS, END_HEADERS, 1, "\x83\x87", 2); }
static void late_headers(uint32_t number) {
    if (number == 0) half_malformed(); else request(1, END_HEADERS, POST, "", 0);
}
static void late_data(uint32_t number) {
    if (number == 0) half_malformed(); else frame(DATA, 0, 1, zeros, 100);
}
static void ended_headers(uint32_t number) { request(1, WHOLE, GET, "", 0); }

static void trickle(uint32_t number) { good(number); }

struct kind {
    const char *name;
    void (*next)(uint32_t number);
    int outstanding;  // Requests that may be open; 0 to wait for no answer.
    size_t record;    // Bytes in one record of TLS.
} kinds[] = {
    {"good", good, 90, 16384},
    {"headers-plain", plain, 90, 16384},
    {"headers-huffman", huffman, 90, 16384},
    {"headers-90-fields", fields, 90, 16384},
    {"headers-indexed-1", indexed_1, 90, 16384},
    {"headers-indexed-8", indexed_8, 90, 16384},
    {"headers-indexed-17", indexed_17, 90, 16384},
    {"headers-indexed-16000", indexed_16000, 90, 16384},
    {"headers-malformed", malformed, 0, 16384},
    {"headers-reset", reset, 0, 16384},
    {"headers-101st-stream", once_open, 0, 16384},
    {"headers-after-reset", late_headers, 0, 16384},
    {"headers-after-end", ended_headers, 0, 16384},
    {"continuation", continuation, 90, 16384},
    {"settings", settings, 0, 16384},
    {"ping", ping, 0, 16384},
    {"priority", priority, 0, 16384},
    {"window-update", window, 0, 16384},
    {"unknown", unknown, 0, 16384},
    {"data-16384", data_16384, 8, 16384},
    {"data-64", data_64, 8, 16384},
    {"data-empty", data_empty, 0, 16384},
    {"data-padded", data_padded, 0, 16384},
    {"data-after-reset", late_data, 0, 16384},
    {"tls-records-of-1-byte", trickle, 90, 1},
    {"tls-key-update", NULL, 0, 0},
    {"tls-renegotiation", NULL, 0, 0},
    {NULL, NULL, 0, 0},
};

static void open_stream(uint32_t number) { request(STREAM, END_HEADERS, POST, "", 0); }

// The state of one connection. Its input is scanned for ends of streams, GOAWAY and the end of the
// connection.
struct connection {
    int fd;
    SSL *ssl;
    int open, is_over, pongs;
    uint8_t held[9];
    size_t held_count, skip;
};

static SSL_CTX *context;
static struct sockaddr_in address;

static int begin(struct connection *c, int is_old) {
    memset(c, 0, sizeof *c);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    int one = 1;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0) return 0;
    c->ssl = SSL_new(context);
    SSL_set_max_proto_version(c->ssl, is_old ? TLS1_2_VERSION : TLS1_3_VERSION);
    SSL_set_fd(c->ssl, c->fd);
    if (SSL_connect(c->ssl) != 1) return 0;
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    return 1;
}

static size_t on_the_wire;

static void finish(struct connection *c) {
    if (c->ssl) {
        on_the_wire += BIO_number_written(SSL_get_wbio(c->ssl));
        SSL_free(c->ssl);
    }
    close(c->fd);
}

static void take(struct connection *c, const uint8_t *bytes, size_t count) {
    while (count > 0) {
        if (c->skip > 0) {
            size_t step = c->skip < count ? c->skip : count;
            c->skip -= step; bytes += step; count -= step;
            continue;
        }
        c->held[c->held_count++] = *bytes++;
        count--;
        if (c->held_count < 9) continue;
        c->held_count = 0;
        c->skip = c->held[0] << 16 | c->held[1] << 8 | c->held[2];
        int type = c->held[3];
        if ((type == DATA || type == HEADERS) && c->held[4] & END_STREAM) c->open--;
        if (type == RESET) c->open--;
        if (type == PING && c->held[4] & ACK) c->pongs++;
        if (type == GOAWAY) c->is_over = 1;
    }
}

static void drink(struct connection *c) {
    static uint8_t in[65536];
    for (;;) {
        int count = SSL_read(c->ssl, in, sizeof in);
        if (count > 0) { take(c, in, count); continue; }
        int error = SSL_get_error(c->ssl, count);
        if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) c->is_over = 1;
        return;
    }
}

static void rest(struct connection *c, short events) {
    struct pollfd probe = {c->fd, events, 0};
    if (poll(&probe, 1, 5000) == 0) { fprintf(stderr, "flood: the server does not get on\n"); exit(1); }
}

// Writes `out`, and reads meanwhile.
static void pour(struct connection *c, size_t record) {
    size_t at = 0;
    while (at < used && !c->is_over) {
        size_t part = used - at < record ? used - at : record;
        int count = SSL_write(c->ssl, out + at, part);
        drink(c);
        if (count > 0) { at += count; continue; }
        int error = SSL_get_error(c->ssl, count);
        if (error != SSL_ERROR_WANT_WRITE && error != SSL_ERROR_WANT_READ) { c->is_over = 1; break; }
        rest(c, POLLIN | POLLOUT);
    }
    used = 0;
}

static void greet(struct connection *c) {
    put("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    frame(SETTINGS, 0, 0, "", 0);
    frame(SETTINGS, ACK, 0, "", 0);
    // A large window, so that all answers fit.
    frame(WINDOW, 0, 0, "\x3f\xff\0\0", 4);
    pour(c, 16384);
}

// Waits until the server has received everything.
static void settle(struct connection *c) {
    int pongs = c->pongs;
    frame(PING, 0, 0, zeros, 8);
    pour(c, 16384);
    while (!c->is_over && c->pongs == pongs) { rest(c, POLLIN); drink(c); }
}

// Sends records without data: 27 bytes for new keys in TLS 1.3, about 230 for another handshake in
// TLS 1.2.
static size_t key_updates(struct connection *c, int is_old, size_t bytes) {
    size_t sent = 0;
    int updates = 0;
    while (!c->is_over && sent < bytes) {
        int done = is_old ? SSL_renegotiate(c->ssl) : SSL_key_update(c->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
        if (done != 1) break;
        int count = SSL_do_handshake(c->ssl);
        int error = SSL_get_error(c->ssl, count);
        sent += is_old ? 230 : 27;
        if (!is_old && ++updates % 150 == 0) settle(c);
        if (count == 1) continue;
        if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) { rest(c, POLLIN | POLLOUT); drink(c); }
        else c->is_over = 1;
    }
    return sent;
}

int main(int count, char **words) {
    if (count < 4) {
        for (struct kind *k = kinds; k->name; k++) puts(k->name);
        return count == 1 ? 0 : 2;
    }
    signal(SIGPIPE, SIG_IGN);
    struct kind *kind = kinds;
    while (kind->name && strcmp(kind->name, words[2]) != 0) kind++;
    if (!kind->name) { fprintf(stderr, "flood: no such kind: %s\n", words[2]); return 2; }
    void (*next)(uint32_t) = kind->next == once_open ? open_stream : kind->next;
    size_t bytes = atol(words[3]), sent = 0;
    if (kind->record == 1) bytes /= 23;  // Each record adds 22 bytes on the wire.
    int is_old = strcmp(kind->name, "tls-renegotiation") == 0;
    int limit = getenv("CONNECTIONS") ? atoi(getenv("CONNECTIONS")) : 2000, connections = 0;
    address.sin_family = AF_INET;
    address.sin_port = htons(atoi(words[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_alpn_protos(context, (const uint8_t *)"\2h2", 3);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    while (sent < bytes && connections < limit) {
        struct connection c;
        connections++;
        if (!begin(&c, is_old)) { finish(&c); continue; }
        greet(&c);
        if (!next) sent += key_updates(&c, is_old, bytes - sent);
        for (uint32_t number = 0; next && !c.is_over && sent < bytes;) {
            used = 0;
            while (used < (kind->record == 1 ? 200 : 4000) && (kind->outstanding == 0 || c.open < kind->outstanding)) {
                next(number++);
                if (kind->outstanding) c.open++;
            }
            sent += used;
            pour(&c, kind->record);
            settle(&c);
        }
        finish(&c);
    }
    printf("%zu %d\n", on_the_wire, connections);
    return 0;
}
