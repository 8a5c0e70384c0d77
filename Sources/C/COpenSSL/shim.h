// OpenSSL for Swift. Macros and variadic functions that Swift cannot import have an inline variant
// here.
#pragma once
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

// TLS: macros only, each under its original name with a prefix.

static const uint64_t copenssl_tls_op_no_ticket = SSL_OP_NO_TICKET;
static const uint64_t copenssl_tls_op_allow_no_dhe_kex = SSL_OP_ALLOW_NO_DHE_KEX;
static const uint64_t copenssl_tls_op_no_renegotiation = SSL_OP_NO_RENEGOTIATION;
static const uint64_t copenssl_tls_op_no_compression = SSL_OP_NO_COMPRESSION;
static const uint64_t copenssl_tls_op_prefer_server_ciphers = SSL_OP_CIPHER_SERVER_PREFERENCE;

static const long copenssl_tls_mode_release_buffers = SSL_MODE_RELEASE_BUFFERS;
static const long copenssl_tls_mode_partial_write = SSL_MODE_ENABLE_PARTIAL_WRITE;
static const long copenssl_tls_mode_moving_buffer = SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER;

static inline void copenssl_tls_set_min_version(SSL_CTX *context, int version) {
    SSL_CTX_set_min_proto_version(context, version);
}

/// Sets the key exchange groups, best first, for example `X25519:P-256`. Returns zero on failure.
static inline int copenssl_tls_set_groups(SSL_CTX *context, const char *groups) {
    return (int)SSL_CTX_set1_groups_list(context, groups);
}

/// Sets the most bytes of certificates that a peer may send.
static inline void copenssl_tls_set_max_certificate_bytes(SSL_CTX *context, long bytes) {
    SSL_CTX_set_max_cert_list(context, bytes);
}

static inline void copenssl_tls_set_mode(SSL_CTX *context, long mode) {
    SSL_CTX_set_mode(context, mode);
}

/// Makes a read return after a handshake message, instead of continuing while more of them come.
static inline void copenssl_tls_do_not_retry(SSL *session) {
    SSL_clear_mode(session, SSL_MODE_AUTO_RETRY);
}

static inline void copenssl_tls_set_read_ahead(SSL_CTX *context, int on) {
    SSL_CTX_set_read_ahead(context, on);
}

static const long copenssl_tls_no_internal_session_cache = SSL_SESS_CACHE_NO_INTERNAL;

static inline void copenssl_tls_set_session_cache_mode(SSL_CTX *context, long mode) {
    SSL_CTX_set_session_cache_mode(context, mode);
}

static inline int copenssl_tls_add_chain_certificate(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

static inline int copenssl_tls_set_server_name(SSL *session, const char *name) {
    return (int)SSL_set_tlsext_host_name(session, name);
}

static inline int copenssl_tls_certificate_count(const STACK_OF(X509) *stack) {
    return stack ? sk_X509_num(stack) : 0;
}

static inline X509 *copenssl_tls_certificate_at(const STACK_OF(X509) *stack, int index) {
    return sk_X509_value(stack, index);
}

static inline int copenssl_tls_name_count(const GENERAL_NAMES *names) {
    return names ? sk_GENERAL_NAME_num(names) : 0;
}

/// The bytes of a URI among the alternative names; null if the name has another kind.
static inline const ASN1_IA5STRING *copenssl_tls_uri_at(const GENERAL_NAMES *names, int index) {
    const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, index);
    return name->type == GEN_URI ? name->d.uniformResourceIdentifier : NULL;
}
