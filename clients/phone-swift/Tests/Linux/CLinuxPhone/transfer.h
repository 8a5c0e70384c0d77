// One request over libcurl, with the verification of the server by a pin.
#pragma once
#include <curl/curl.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct phone_bytes {
    uint8_t *bytes;
    size_t count;
};

/// Returns the index of the anchor among the certificates of a connection, or -1.
typedef int (*phone_choose)(void *state, const struct phone_bytes *chain, int count);

struct phone_transfer {
    const char *url, *method, *host;
    struct curl_slist *fields;
    const uint8_t *body;
    long body_count; // -1 without a body
    long timeout; // milliseconds
    int64_t time; // seconds, at which the dates must fit; -1 if they do not count
    phone_choose choose;
    void *state;
    long status;
    struct phone_bytes head, content, certificate;
    char untrusted[256]; // the reason why the server is not trusted; empty if it is
};

static inline size_t phone_append(struct phone_bytes *to, const void *bytes, size_t count) {
    uint8_t *grown = realloc(to->bytes, to->count + count);
    if (!grown) return 0;
    memcpy(grown + to->count, bytes, count);
    to->bytes = grown;
    to->count += count;
    return count;
}

static size_t phone_take_head(char *bytes, size_t size, size_t count, void *transfer) {
    return phone_append(&((struct phone_transfer *)transfer)->head, bytes, size * count);
}

static size_t phone_take_content(char *bytes, size_t size, size_t count, void *transfer) {
    return phone_append(&((struct phone_transfer *)transfer)->content, bytes, size * count);
}

/// Verifies the server's certificate with the chosen anchor as the only trusted certificate.
static int phone_check(X509_STORE_CTX *connection, void *argument) {
    struct phone_transfer *transfer = argument;
    STACK_OF(X509) *chain = X509_STORE_CTX_get0_untrusted(connection);
    X509 *own = X509_STORE_CTX_get0_cert(connection);
    int count = sk_X509_num(chain), is_right = 0, chosen = -1;
    struct phone_bytes *ders = calloc(count > 0 ? (size_t)count : 1, sizeof *ders);
    for (int index = 0; index < count; index++) {
        int length = i2d_X509(sk_X509_value(chain, index), &ders[index].bytes);
        ders[index].count = length > 0 ? (size_t)length : 0;
    }
    if (count > 0) chosen = transfer->choose(transfer->state, ders, count);
    if (chosen < 0 || chosen >= count) {
        snprintf(transfer->untrusted, sizeof transfer->untrusted, "no authority of the chain is pinned");
    } else {
        X509_STORE *store = X509_STORE_new();
        X509_STORE_CTX *check = X509_STORE_CTX_new();
        X509_STORE_add_cert(store, sk_X509_value(chain, chosen));
        X509_STORE_CTX_init(check, store, own, chain);
        X509_STORE_CTX_set_purpose(check, X509_PURPOSE_SSL_SERVER);
        X509_VERIFY_PARAM *rules = X509_STORE_CTX_get0_param(check);
        // The anchor may be no root.
        X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_PARTIAL_CHAIN);
        if (transfer->time < 0) X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_NO_CHECK_TIME);
        else X509_VERIFY_PARAM_set_time(rules, (time_t)transfer->time);
        if (!X509_VERIFY_PARAM_set1_ip_asc(rules, transfer->host))
            X509_VERIFY_PARAM_set1_host(rules, transfer->host, 0);
        is_right = X509_verify_cert(check) == 1;
        if (!is_right)
            snprintf(
                transfer->untrusted, sizeof transfer->untrusted, "%s",
                X509_verify_cert_error_string(X509_STORE_CTX_get_error(check)));
        X509_STORE_CTX_free(check);
        X509_STORE_free(store);
    }
    if (is_right) {
        free(transfer->certificate.bytes);
        transfer->certificate = (struct phone_bytes){NULL, 0};
        phone_append(&transfer->certificate, ders[0].bytes, ders[0].count);
    }
    for (int index = 0; index < count; index++) OPENSSL_free(ders[index].bytes);
    free(ders);
    X509_STORE_CTX_set_error(connection, is_right ? X509_V_OK : X509_V_ERR_APPLICATION_VERIFICATION);
    return is_right;
}

static CURLcode phone_prepare(CURL *curl, void *context, void *transfer) {
    (void)curl;
    SSL_CTX_set_cert_verify_callback(context, phone_check, transfer);
    return CURLE_OK;
}

/// Sends the request. Before a further one over the same connection, the caller passes the
/// certificate of the former one: the server does not show it again.
static inline CURLcode phone_send(CURL *curl, struct phone_transfer *transfer) {
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_URL, transfer->url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, transfer->method);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, transfer->fields);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(curl, CURLOPT_SSL_SESSIONID_CACHE, 0L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, transfer->timeout);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(curl, CURLOPT_SSL_CTX_FUNCTION, phone_prepare);
    curl_easy_setopt(curl, CURLOPT_SSL_CTX_DATA, transfer);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, phone_take_head);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, phone_take_content);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
    if (transfer->body_count >= 0) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, transfer->body_count);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, transfer->body);
    }
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &transfer->status);
    return code;
}
