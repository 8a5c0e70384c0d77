// Whole logins, in a closed or an open loop.
//
// A login is four requests: the website's /login, the phone's /pending and /success, and the
// website's /auth. If the cell holds /auth, the website sends it as soon as the challenge is open, and
// the relay answers it after the phone's answer; otherwise the website sends it then.
//
// In the open loop logins begin at random moments (a Poisson process), whether earlier ones have ended
// or not. Every time counts from the moment at which the login was due, also if no user was free then
// or the client was late. So a pause of the relay counts for all logins that fell into it.
#include "client.h"
#include <math.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { PATIENCE = 70 };
enum { TOLD = 1, ANSWERED = 2 };

struct login {
    struct phone *phone;
    char challenge[40], number[8];
    // The beginning of the login, and of the request whose answer is awaited.
    uint64_t due, step;
    int done;
    struct login *next;
};

static struct cell cell;
static struct login *spare;
// The users without an open login, a ring in the order of their last one.
static struct phone **ring;
static int ring_start, ring_used;

static uint64_t start, until, next_due, random_state;
static int under_way, completed, retried, faults;
static char first_fault[512];

static void begin(uint64_t due);

// Whether each login has a connection of its own.
static bool reconnects(const struct cell *cell) { return cell->how == FRESH || cell->how == RESUMED; }

static SSL_SESSION **session_of(struct phone *phone) { return cell.how == RESUMED ? &phone->session : NULL; }

// The end of a login.

static void release(struct login *login) {
    if (reconnects(&cell) && login->phone->connection != NULL) close_connection(login->phone->connection);
    ring[(ring_start + ring_used++) % phone_count] = login->phone;
    login->next = spare;
    spare = login;
    under_way--;
    if (cell.width > 0 && now() < until) begin(now());
}

static void fail(struct login *login, const char *path, const struct answer *answer) {
    if (faults++ == 0) snprintf(first_fault, sizeof first_fault, "%s: %d %s", path, answer->status, answer->body);
    // With a held /auth, the other request of the login ends it.
    bool is_alone = !cell.is_held || login->challenge[0] == 0 || login->done != 0;
    login->done |= TOLD | ANSWERED;
    if (is_alone) release(login);
}

static void complete(struct login *login) {
    uint64_t present = now();
    record(WHOLE, present - login->due);
    completed++;
    release(login);
}

// The website's side.

static void told(void *context, uint64_t tag, const struct answer *answer) {
    struct login *login = context;
    if (answer->status != 200 || strstr(answer->body, "\"login\":\"success\"") == NULL) {
        fail(login, "/auth", answer);
        return;
    }
    record(RESULT, now() - login->step);
    login->done |= TOLD;
    if (login->done == (TOLD | ANSWERED)) complete(login);
}

static void request_result(struct login *login) {
    char body[80];
    struct field wait = {"prefer", "wait=60"};
    int length = snprintf(body, sizeof body, "{\"challenge\":\"%s\"}", login->challenge);
    post(website_connection(), "/auth", &wait, cell.is_held ? 1 : 0, body, length, told, login, 0);
}

// The phone's side.

static void send_pending(struct login *login);
static void send_answer(struct login *login, const char *body);

static void send_as_phone(
    struct login *login, const char *path, const char *body, size_t length, answered *then, uint64_t tag) {
    struct phone *phone = login->phone;
    struct field proof = {"dpop", NULL};
    static struct buffer text;
    if (cell.how == DPOP) {
        char url[128];
        snprintf(url, sizeof url, "%s%s", origin, path);
        text.used = 0;
        append_dpop(&text, &phone->identity, url, phone->nonce);
        proof.value = text.bytes;
    }
    if (phone->connection == NULL)
        open_connection(
            &phone->connection, cell.how == DPOP ? NULL : &phone->identity, session_of(phone), NULL, NULL);
    post(phone->connection, path, &proof, cell.how == DPOP ? 1 : 0, body, length, then, login, tag);
}

// Takes the nonce of an answer. Returns true if the request has to be sent again with it.
static bool needs_nonce(struct phone *phone, const struct answer *answer, uint64_t attempt) {
    bool is_new = answer->dpop_nonce[0] != 0 && strcmp(answer->dpop_nonce, phone->nonce) != 0;
    if (is_new) snprintf(phone->nonce, sizeof phone->nonce, "%s", answer->dpop_nonce);
    if (cell.how != DPOP || answer->status != 401 || !is_new || attempt > 0) return false;
    retried++;
    return true;
}

static void approved(void *context, uint64_t attempt, const struct answer *answer) {
    struct login *login = context;
    if (answer->status != 200 || strstr(answer->body, "\"success\"") == NULL) {
        // A proof with an old nonce has another answer: the challenge is fetched again.
        if (needs_nonce(login->phone, answer, attempt)) send_pending(login);
        else fail(login, "/success", answer);
        return;
    }
    uint64_t present = now();
    record(ANSWER, present - login->step);
    login->done |= ANSWERED;
    if (!cell.is_held) {
        login->step = present;
        request_result(login);
    } else if (login->done == (TOLD | ANSWERED)) {
        complete(login);
    }
}

static void sign_answer(struct login *login, const char *nonce, const char *context_text) {
    static struct buffer header, claims, body;
    uint8_t context[4096], digest[32];
    size_t length = decode_base64url(context_text, strlen(context_text), context, sizeof context - 1);
    context[length] = 0;
    SHA256(context, length, digest);
    char request[64];
    bool has_request = member((char *)context, "request", request, sizeof request) != NULL;
    header.used = claims.used = body.used = 0;
    append_format(
        &header, "{\"alg\":\"ES256\",\"typ\":\"twoefay-decision+jwt\",\"kid\":\"%s\"}", login->phone->device);
    append_format(
        &claims, "{\"v\":1,\"aud\":\"%s#%s\",\"challenge\":\"%s\",", origin, website, login->challenge);
    if (has_request) append_format(&claims, "\"request\":\"%s\",", request);
    append_format(&claims, "\"decision\":\"approve\",");
    if (login->number[0] != 0) append_format(&claims, "\"number\":\"%s\",", login->number);
    append_format(&claims, "\"context\":\"");
    append_base64url(&claims, digest, 32);
    append_format(
        &claims, "\",\"nonce\":\"%s\",\"uv\":\"biometric\",\"iat\":%lld}", nonce, (long long)time(NULL));
    append_format(&body, "{\"challenge\":\"%s\",\"answer\":\"", login->challenge);
    append_jws(&body, &login->phone->identity, header.bytes, claims.bytes, claims.used);
    append_format(&body, "\"}");
    send_answer(login, body.bytes);
}

static void send_answer(struct login *login, const char *body) {
    login->step = now();
    send_as_phone(login, "/success", body, strlen(body), approved, 0);
}

static void listed(void *context, uint64_t attempt, const struct answer *answer) {
    struct login *login = context;
    char nonce[64], text[4096];
    if (needs_nonce(login->phone, answer, attempt)) {
        send_as_phone(login, "/pending", "{}", 2, listed, attempt + 1);
        return;
    }
    const char *entry = answer->status == 200 ? strstr(answer->body, login->challenge) : NULL;
    if (entry == NULL || member(entry, "nonce", nonce, sizeof nonce) == NULL
        || member(entry, "context", text, sizeof text) == NULL) {
        fail(login, "/pending", answer);
        return;
    }
    record(PENDING, now() - login->step);
    sign_answer(login, nonce, text);
}

static void send_pending(struct login *login) {
    login->step = now();
    send_as_phone(login, "/pending", "{}", 2, listed, 0);
}

static void phone_opened(void *context) {
    struct login *login = context;
    uint64_t present = now();
    record(CONNECT, present - login->step);
    login->step = present;
    if (cell.how == RESUMED && !is_resumed(login->phone->connection) && faults++ == 0)
        snprintf(first_fault, sizeof first_fault, "a session was not resumed");
}

static void asked(void *context, uint64_t tag, const struct answer *answer) {
    struct login *login = context;
    if (answer->status != 201
        || member(answer->body, "challenge", login->challenge, sizeof login->challenge) == NULL) {
        login->challenge[0] = 0;
        fail(login, "/login", answer);
        return;
    }
    if (member(answer->body, "number", login->number, sizeof login->number) == NULL) login->number[0] = 0;
    record(ASK, now() - login->due);
    if (cell.is_held) request_result(login);
    // The request waits for the handshake.
    if (reconnects(&cell))
        open_connection(
            &login->phone->connection, &login->phone->identity, session_of(login->phone), phone_opened, login);
    send_pending(login);
}

// The beginning of a login.

// Idempotency keys must differ from those of an earlier client of the same relay.
static uint64_t next_random(void) {
    while (random_state == 0) RAND_bytes((uint8_t *)&random_state, sizeof random_state);
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void begin(uint64_t due) {
    struct login *login = spare;
    if (login != NULL) spare = login->next;
    else login = calloc(1, sizeof *login);
    if (login == NULL) stop("no memory");
    *login = (struct login){.phone = ring[ring_start], .due = due};
    ring_start = (ring_start + 1) % phone_count;
    ring_used--;
    under_way++;
    if (cell.width == 0) record(LATE, now() - due);
    char body[400], key[40];
    struct field idempotency = {"idempotency-key", key};
    uint64_t high = next_random(), low = next_random();
    snprintf(key, sizeof key, "%016llx%016llx", (unsigned long long)high, (unsigned long long)low);
    int length = snprintf(
        body, sizeof body,
        "{\"username\":\"%s\",\"request\":\"%s\",\"ip\":\"203.0.113.7\",\"service\":\"members\",\"user_agent\":"
        "\"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\"}",
        login->phone->username, key);
    post(website_connection(), "/login", &idempotency, 1, body, length, asked, login, 0);
}

// Begins the logins that are due.
static void begin_due(void) {
    while (next_due <= now() && next_due < until && ring_used > 0) {
        begin(next_due);
        double share = (next_random() >> 11) * 0x1p-53;
        next_due += (uint64_t)(-log(1 - share) / cell.rate * 1e9);
    }
}

// Runs the load until the last login has ended.
static void load(double seconds) {
    completed = retried = faults = 0;
    first_fault[0] = 0;
    forget_samples();
    start = next_due = now();
    until = start + (uint64_t)(seconds * 1e9);
    if (cell.width > phone_count) stop("%d logins at once need as many users", cell.width);
    for (int at = 0; at < cell.width; at++) begin(now());
    while (true) {
        if (cell.width == 0) begin_due();
        bool is_over = now() >= until;
        if (is_over && under_way == 0 && (cell.width > 0 || next_due >= until)) return;
        if (now() > until + PATIENCE * 1000000000ull) stop("%d logins have not ended: %s", under_way, first_fault);
        bool awaits_due = cell.width == 0 && !is_over && ring_used > 0;
        turn(awaits_due ? next_due : is_over ? now() + 1000000000 : until);
    }
}

// The preparation: the phones keep their connections, or have a session to resume, and those without
// certificates have a nonce.

static int unprepared;

static void prepared(void *context, uint64_t attempt, const struct answer *answer) {
    struct login *login = context;
    if (needs_nonce(login->phone, answer, attempt)) {
        send_as_phone(login, "/pending", "{}", 2, prepared, 1);
        return;
    }
    if (answer->status != 200) stop("/pending: %d %s", answer->status, answer->body);
    free(login);
    unprepared--;
}

static void connect_phones(void) {
    for (int at = 0; at < phone_count; at++) {
        struct login *login = calloc(1, sizeof *login);
        login->phone = &phones[at];
        unprepared++;
        send_as_phone(login, "/pending", "{}", 2, prepared, 0);
        while (unprepared >= 32) turn(now() + 1000000000);
    }
    while (unprepared > 0) turn(now() + 1000000000);
}

static void close_phones(void) {
    for (int at = 0; at < phone_count; at++)
        if (phones[at].connection != NULL) close_connection(phones[at].connection);
    turn(now());
}

void prepare(const struct cell *wanted, double seconds) {
    static bool is_first = true;
    if (ring == NULL) {
        ring = calloc(phone_count, sizeof *ring);
        for (int at = 0; at < phone_count; at++) ring[ring_used++] = &phones[at];
    }
    bool is_changed = is_first || wanted->how != cell.how;
    if (is_changed) close_phones();
    is_first = false;
    cell = *wanted;
    if (is_changed && cell.how != FRESH) connect_phones();
    if (is_changed && cell.how == RESUMED) close_phones();
    load(seconds);
    if (faults > 0) stop("the logins before the cell failed: %s", first_fault);
}

static double processor_time(const struct rusage *usage) {
    return usage->ru_utime.tv_sec + usage->ru_stime.tv_sec + (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

static void print_text(const char *text) {
    putchar('"');
    for (const char *at = text; *at != 0; at++) {
        if (*at == '"' || *at == '\\') putchar('\\');
        if ((unsigned char)*at >= ' ') putchar(*at);
    }
    putchar('"');
}

void run_cell(const struct cell *wanted) {
    struct rusage before, after;
    cell = *wanted;
    getrusage(RUSAGE_SELF, &before);
    load(cell.seconds);
    getrusage(RUSAGE_SELF, &after);
    double user = after.ru_utime.tv_sec - before.ru_utime.tv_sec
        + (after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1e6;
    printf(
        "{\"logins\":%d,\"seconds\":%.3f,\"whole_seconds\":%.3f,\"faults\":%d,\"retried\":%d,"
        "\"client_seconds\":%.6f,\"client_user_seconds\":%.6f,\"fault\":",
        completed, cell.seconds, (now() - start) / 1e9, faults, retried,
        processor_time(&after) - processor_time(&before), user);
    print_text(first_fault);
    printf(",\"times\":");
    print_samples(stdout);
    printf("}\n");
}
