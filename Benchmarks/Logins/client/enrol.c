// Enrols users through the API: the website registers a user, and the user's phone binds its key.
#include "client.h"
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Users that are enrolled at once, and connections of phones that have no certificate yet.
enum { AT_ONCE = 32, STRANGERS = 4 };

static int begun, ended, wanted;
static bool has_pushes;
static struct connection *strangers[STRANGERS];

static void begin(void);

static void fail(const char *what, const struct answer *answer) {
    stop("%s: %d %s", what, answer->status, answer->body);
}

static void bound(void *context, uint64_t tag, const struct answer *answer) {
    struct phone *phone = context;
    char pem[8192];
    if (answer->status != 200 || member(answer->body, "device", phone->device, sizeof phone->device) == NULL
        || member(answer->body, "certificate", pem, sizeof pem) == NULL)
        fail("/verify", answer);
    phone->identity.certificate = read_certificate(pem);
    ended++;
    begin();
}

static void bind_phone(struct phone *phone, const char *code) {
    static struct buffer header, claims, body;
    header.used = claims.used = body.used = 0;
    struct buffer device_token = {0};
    if (has_pushes) {
        uint8_t token[32];
        RAND_bytes(token, sizeof token);
        append_format(&device_token, ",\"dev_token\":\"");
        append_hex(&device_token, token, sizeof token);
        append_format(&device_token, "\"");
    } else {
        append(&device_token, "", 0);
    }
    append_format(
        &header, "{\"alg\":\"ES256\",\"typ\":\"twoefay-enrol+jwt\",\"jwk\":%s}", phone->identity.jwk);
    append_format(
        &claims, "{\"v\":1,\"aud\":\"%s#%s\",\"id_token\":\"%s\",\"activation_code\":\"%s\"%s,\"iat\":%ld}", origin,
        website, phone->token, code, device_token.bytes, (long)time(NULL));
    append_format(
        &body, "{\"id_token\":\"%s\",\"activation_code\":\"%s\"%s,\"platform\":\"%s\",\"csr\":\"", phone->token, code,
        device_token.bytes, has_pushes ? "ios" : "other");
    append_request(&body, &phone->identity);
    append_format(&body, "\",\"proof\":\"");
    append_jws(&body, &phone->identity, header.bytes, claims.bytes, claims.used);
    append_format(&body, "\"}");
    free(device_token.bytes);
    struct connection **place = &strangers[(phone - phones) % STRANGERS];
    if (*place == NULL) open_connection(place, NULL, NULL, NULL, NULL);
    post(*place, "/verify", NULL, 0, body.bytes, body.used, bound, phone, 0);
}

static void registered(void *context, uint64_t tag, const struct answer *answer) {
    struct phone *phone = context;
    char code[64];
    const char *activation = strstr(answer->body, "\"activation\"");
    if (answer->status != 201 || activation == NULL
        || member(answer->body, "token", phone->token, sizeof phone->token) == NULL
        || member(activation, "code", code, sizeof code) == NULL)
        fail("/register", answer);
    make_key(&phone->identity);
    bind_phone(phone, code);
}

static void begin(void) {
    if (begun == wanted) return;
    struct phone *phone = &phones[begun++];
    char body[64];
    snprintf(phone->username, sizeof phone->username, "user%d", begun);
    int length = snprintf(body, sizeof body, "{\"username\":\"%s\"}", phone->username);
    post(website_connection(), "/register", NULL, 0, body, length, registered, phone, 0);
}

void enrol(int count, bool pushes) {
    phones = calloc(count, sizeof *phones);
    phone_count = wanted = count;
    has_pushes = pushes;
    for (int at = 0; at < AT_ONCE; at++) begin();
    while (ended < wanted) turn(now() + 1000000000);
    for (int at = 0; at < STRANGERS; at++)
        if (strangers[at] != NULL) close_connection(strangers[at]);
    turn(now());
}
