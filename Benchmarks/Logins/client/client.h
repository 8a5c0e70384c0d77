// The client of Benchmarks/Logins/run: one thread that is the website and all of its users' phones.
//
// It uses libnghttp2 and OpenSSL directly, so that a login costs it few microseconds: the relay
// shares the machine with it. `run` prints the client's own processor time beside the relay's.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <openssl/ec.h>
#include <openssl/ssl.h>

// Times are nanoseconds of the monotonic clock.
uint64_t now(void);
_Noreturn void stop(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Texts: text.c

struct buffer {
    char *bytes;
    size_t used, capacity;
};

void append(struct buffer *buffer, const void *bytes, size_t count);
void append_format(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void append_base64url(struct buffer *buffer, const void *bytes, size_t count);
void append_hex(struct buffer *buffer, const void *bytes, size_t count);
// Decodes base64url. Returns the number of bytes.
size_t decode_base64url(const char *text, size_t length, uint8_t *bytes, size_t capacity);
// Copies the text of a JSON member, the first one of this name at or after `from`. Returns the place
// after it; NULL if there is none or if it does not fit. Escapes of line breaks are decoded.
const char *member(const char *from, const char *name, char *value, size_t capacity);

// Keys and signatures: keys.c

struct identity {
    EC_KEY *pair;
    EVP_PKEY *key;
    X509 *certificate;
    // The public key as JSON.
    char jwk[160];
};

void make_key(struct identity *identity);
void describe_key(struct identity *identity);
X509 *read_certificate(const char *pem);
// Appends the certificate request for the key, as PEM with `\n` for its line breaks.
void append_request(struct buffer *buffer, const struct identity *identity);
// Appends a compact JWS (ES256) of a header and claims.
void append_jws(
    struct buffer *buffer, const struct identity *identity, const char *header, const char *claims, size_t length);
// Appends a proof of possession (RFC 9449) for a POST to this URL.
void append_dpop(struct buffer *buffer, const struct identity *identity, const char *url, const char *nonce);

// Connections: connection.c

struct connection;

struct answer {
    // 0 if there was no answer; `body` then has the reason.
    int status;
    const char *body;
    const char *dpop_nonce;
};

typedef void answered(void *context, uint64_t tag, const struct answer *answer);

struct field {
    const char *name, *value;
};

// Prepares for connections to this address, with this file of authorities.
void use_server(const char *host, int port, const char *authorities);
// Opens a connection; with an identity, it presents its certificate. `*place` is set to NULL when the
// connection has ended. If `session` is given, the session in it is resumed, and that of this
// connection is put there at its end. `opened` may be NULL; it is called when the handshake is complete.
void open_connection(
    struct connection **place, const struct identity *identity, SSL_SESSION **session, void (*opened)(void *),
    void *context);
// Whether the handshake has resumed a session.
bool is_resumed(const struct connection *connection);
// Sends a POST. The fields and the body are copied. Up to four fields.
void post(
    struct connection *connection, const char *path, const struct field *fields, size_t count, const char *body,
    size_t length, answered *then, void *context, uint64_t tag);
// Ends the connection after this turn of the loop.
void close_connection(struct connection *connection);
// Sends what waits, and handles events until a moment at the latest.
void turn(uint64_t until);

// Phones: phones.c

struct phone {
    char username[24], token[40], device[40], nonce[160];
    struct identity identity;
    struct connection *connection;
    // The last session, for phones that resume it.
    SSL_SESSION *session;
};

extern struct phone *phones;
extern int phone_count;
extern const char *origin, *website;

void save_phones(const char *path);
void load_phones(const char *path);

// The website's connections, to be used in turn.
void open_website(const char *certificate, const char *key, int count);
struct connection *website_connection(void);

// Enrolment: enrol.c
void enrol(int count, bool pushes);

// Load: load.c

enum how { MTLS, DPOP, FRESH, RESUMED };

struct cell {
    enum how how;
    bool is_held;
    // Logins at once; 0 if logins begin at `rate` a second.
    int width;
    double rate, seconds;
};

// Connects the phones that the cell needs, and logs in for `seconds` without recording it.
void prepare(const struct cell *cell, double seconds);
// Runs the cell, and prints one line of JSON.
void run_cell(const struct cell *cell);

// Samples: samples.c

// `LATE` is the time from the moment at which a login was due until the client began it.
enum route { ASK, CONNECT, PENDING, ANSWER, RESULT, WHOLE, LATE, ROUTES };

void record(enum route route, uint64_t nanoseconds);
void forget_samples(void);
void print_samples(FILE *file);
