// The phones of the users, their file, and the connections of the website.
#include "client.h"
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

struct phone *phones;
int phone_count;

// A line has the name of the user, the token, the phone's id, its key and its certificate; the last
// two are DER in hexadecimal.
void save_phones(const char *path) {
    FILE *file = fopen(path, "w");
    if (file == NULL) stop("%s cannot be written", path);
    for (int at = 0; at < phone_count; at++) {
        struct phone *phone = &phones[at];
        struct buffer line = {0};
        uint8_t *key = NULL, *certificate = NULL;
        int key_length = i2d_ECPrivateKey(phone->identity.pair, &key);
        int certificate_length = i2d_X509(phone->identity.certificate, &certificate);
        append_format(&line, "%s %s %s ", phone->username, phone->token, phone->device);
        append_hex(&line, key, key_length);
        append(&line, " ", 1);
        append_hex(&line, certificate, certificate_length);
        fprintf(file, "%s\n", line.bytes);
        OPENSSL_free(key);
        OPENSSL_free(certificate);
        free(line.bytes);
    }
    if (fclose(file) != 0) stop("%s cannot be written", path);
}

static void read_phone(struct phone *phone, char *line) {
    char *words[5];
    for (int at = 0; at < 5; at++) {
        words[at] = strtok(at == 0 ? line : NULL, " \n");
        if (words[at] == NULL) stop("a line of the file of phones has %d words", at);
    }
    snprintf(phone->username, sizeof phone->username, "%s", words[0]);
    snprintf(phone->token, sizeof phone->token, "%s", words[1]);
    snprintf(phone->device, sizeof phone->device, "%s", words[2]);
    for (int at = 3; at < 5; at++) {
        long length;
        uint8_t *der = OPENSSL_hexstr2buf(words[at], &length);
        const uint8_t *from = der;
        if (at == 3) phone->identity.pair = d2i_ECPrivateKey(NULL, &from, length);
        else phone->identity.certificate = d2i_X509(NULL, &from, length);
        OPENSSL_free(der);
    }
    if (phone->identity.pair == NULL || phone->identity.certificate == NULL) stop("a phone cannot be read");
    describe_key(&phone->identity);
}

void load_phones(const char *path) {
    FILE *file = fopen(path, "r");
    if (file == NULL) stop("%s cannot be read", path);
    char *line = NULL;
    size_t capacity = 0, room = 0;
    while (getline(&line, &capacity, file) > 0) {
        if ((size_t)phone_count == room) {
            room = room * 2 + 64;
            phones = realloc(phones, room * sizeof *phones);
            if (phones == NULL) stop("no memory");
        }
        memset(&phones[phone_count], 0, sizeof *phones);
        read_phone(&phones[phone_count++], line);
    }
    free(line);
    fclose(file);
}

// The website.

enum { MOST_CONNECTIONS = 64 };
static struct connection *connections[MOST_CONNECTIONS];
static struct identity own;
static int connection_count, next_connection;

static char *read_file(const char *path) {
    FILE *file = fopen(path, "r");
    if (file == NULL) stop("%s cannot be read", path);
    char *text = calloc(1, 65536);
    fread(text, 1, 65535, file);
    fclose(file);
    return text;
}

void open_website(const char *certificate, const char *key, int count) {
    char *pem = read_file(certificate);
    own.certificate = read_certificate(pem);
    free(pem);
    pem = read_file(key);
    BIO *text = BIO_new_mem_buf(pem, -1);
    own.key = PEM_read_bio_PrivateKey(text, NULL, NULL, NULL);
    BIO_free(text);
    free(pem);
    if (own.key == NULL) stop("%s: no key", key);
    connection_count = count < MOST_CONNECTIONS ? count : MOST_CONNECTIONS;
}

struct connection *website_connection(void) {
    struct connection **place = &connections[next_connection++ % connection_count];
    if (*place == NULL) open_connection(place, &own, NULL, NULL, NULL);
    return *place;
}
