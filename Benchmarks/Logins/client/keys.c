// The keys of phones, and what they sign.
//
// The functions that OpenSSL 3 calls deprecated are used on purpose: they sign without looking up an
// algorithm each time, and return r and s as the protocol wants them.
#define OPENSSL_API_COMPAT 0x10100000L
#include "client.h"
#include <openssl/bn.h>
#include <openssl/ecdsa.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void append_number(struct buffer *buffer, const BIGNUM *number) {
    uint8_t bytes[32];
    if (BN_bn2binpad(number, bytes, 32) != 32) stop("a number is too long");
    append_base64url(buffer, bytes, 32);
}

void describe_key(struct identity *identity) {
    const EC_KEY *pair = identity->pair;
    BIGNUM *x = BN_new(), *y = BN_new();
    EC_POINT_get_affine_coordinates(EC_KEY_get0_group(pair), EC_KEY_get0_public_key(pair), x, y, NULL);
    struct buffer text = {0};
    append_format(&text, "{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"");
    append_number(&text, x);
    append_format(&text, "\",\"y\":\"");
    append_number(&text, y);
    append_format(&text, "\"}");
    snprintf(identity->jwk, sizeof identity->jwk, "%s", text.bytes);
    free(text.bytes);
    BN_free(x);
    BN_free(y);
    identity->key = EVP_PKEY_new();
    EVP_PKEY_set1_EC_KEY(identity->key, identity->pair);
}

void make_key(struct identity *identity) {
    identity->pair = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
    if (identity->pair == NULL || EC_KEY_generate_key(identity->pair) != 1) stop("no key");
    describe_key(identity);
}

X509 *read_certificate(const char *pem) {
    BIO *text = BIO_new_mem_buf(pem, -1);
    X509 *certificate = PEM_read_bio_X509(text, NULL, NULL, NULL);
    BIO_free(text);
    if (certificate == NULL) stop("not a certificate: %s", pem);
    return certificate;
}

void append_request(struct buffer *buffer, const struct identity *identity) {
    X509_REQ *request = X509_REQ_new();
    BIO *text = BIO_new(BIO_s_mem());
    X509_REQ_set_version(request, 0);
    X509_REQ_set_pubkey(request, identity->key);
    if (X509_REQ_sign(request, identity->key, EVP_sha256()) <= 0) stop("no certificate request");
    PEM_write_bio_X509_REQ(text, request);
    char *pem;
    long length = BIO_get_mem_data(text, &pem);
    for (long at = 0; at < length; at++) {
        if (pem[at] == '\n') append(buffer, "\\n", 2);
        else append(buffer, pem + at, 1);
    }
    BIO_free(text);
    X509_REQ_free(request);
}

void append_jws(
    struct buffer *buffer, const struct identity *identity, const char *header, const char *claims, size_t length) {
    size_t start = buffer->used;
    append_base64url(buffer, header, strlen(header));
    append(buffer, ".", 1);
    append_base64url(buffer, claims, length);
    uint8_t digest[32], bytes[64];
    SHA256((const uint8_t *)buffer->bytes + start, buffer->used - start, digest);
    ECDSA_SIG *signature = ECDSA_do_sign(digest, 32, identity->pair);
    if (signature == NULL) stop("not signed");
    BN_bn2binpad(ECDSA_SIG_get0_r(signature), bytes, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(signature), bytes + 32, 32);
    ECDSA_SIG_free(signature);
    append(buffer, ".", 1);
    append_base64url(buffer, bytes, 64);
}

void append_dpop(struct buffer *buffer, const struct identity *identity, const char *url, const char *nonce) {
    static struct buffer header, claims;
    uint8_t id[16];
    RAND_bytes(id, sizeof id);
    header.used = claims.used = 0;
    append_format(&header, "{\"alg\":\"ES256\",\"typ\":\"dpop+jwt\",\"jwk\":%s}", identity->jwk);
    append_format(&claims, "{\"jti\":\"");
    append_base64url(&claims, id, sizeof id);
    append_format(&claims, "\",\"htm\":\"POST\",\"htu\":\"%s\",\"iat\":%ld", url, (long)time(NULL));
    if (nonce[0] != 0) append_format(&claims, ",\"nonce\":\"%s\"", nonce);
    append_format(&claims, "}");
    append_jws(buffer, identity, header.bytes, claims.bytes, claims.used);
}
