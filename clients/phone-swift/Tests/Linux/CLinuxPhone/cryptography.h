// OpenSSL, as far as the tests on Linux need it. Each function returns 1, or 0 after a failure.
#pragma once
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <stdint.h>

static inline int phone_hmac(
    const char *digest, const uint8_t *key, size_t key_count, const uint8_t *message, size_t count, uint8_t *out,
    unsigned *out_count
) {
    return HMAC(EVP_get_digestbyname(digest), key, (int)key_count, message, count, out, out_count) != NULL;
}

static inline int phone_open_gcm(
    const uint8_t *key, const uint8_t *nonce, const uint8_t *text, size_t count, const uint8_t *tag,
    const uint8_t *data, size_t data_count, uint8_t *out
) {
    int some = 0;
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int is_right = context && EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), NULL, key, nonce)
        && EVP_DecryptUpdate(context, NULL, &some, data, (int)data_count)
        && EVP_DecryptUpdate(context, out, &some, text, (int)count)
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, (void *)tag)
        && EVP_DecryptFinal_ex(context, out + count, &some) > 0;
    EVP_CIPHER_CTX_free(context);
    return is_right;
}

/// Computes the point of a private scalar of P-256: 65 bytes.
static inline int phone_public_point(const uint8_t *scalar, uint8_t *point) {
    EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    BIGNUM *number = BN_bin2bn(scalar, 32, NULL);
    EC_POINT *product = group ? EC_POINT_new(group) : NULL;
    int is_right = product && number && !BN_is_zero(number) && BN_cmp(number, EC_GROUP_get0_order(group)) < 0
        && EC_POINT_mul(group, product, number, NULL, NULL, NULL)
        && EC_POINT_point2oct(group, product, POINT_CONVERSION_UNCOMPRESSED, point, 65, NULL) == 65;
    EC_POINT_free(product);
    BN_clear_free(number);
    EC_GROUP_free(group);
    return is_right;
}

/// Makes a key of P-256 from a point, and from its scalar unless that is NULL.
static inline EVP_PKEY *phone_key(const uint8_t *scalar, const uint8_t *point) {
    EVP_PKEY *key = NULL;
    BIGNUM *number = scalar ? BN_bin2bn(scalar, 32, NULL) : NULL;
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
    OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, 65);
    if (number) OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, number);
    OSSL_PARAM *parameters = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    if (context && EVP_PKEY_fromdata_init(context) > 0)
        EVP_PKEY_fromdata(context, &key, scalar ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY, parameters);
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(parameters);
    OSSL_PARAM_BLD_free(builder);
    BN_clear_free(number);
    return key;
}

/// Signs by ECDSA with SHA-256: a signature in DER.
static inline int phone_sign(
    const uint8_t *scalar, const uint8_t *point, const uint8_t *message, size_t count, uint8_t *out, size_t *out_count
) {
    EVP_PKEY *key = phone_key(scalar, point);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int is_right = key && context && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) > 0
        && EVP_DigestSign(context, out, out_count, message, count) > 0;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    return is_right;
}

/// Verifies a signature: in DER for ECDSA, PKCS #1 v1.5 for RSA.
static inline int phone_verify(
    const uint8_t *info, size_t info_count, const char *digest, const uint8_t *signature, size_t signature_count,
    const uint8_t *message, size_t count
) {
    EVP_PKEY *key = d2i_PUBKEY(NULL, &info, (long)info_count);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int is_right = key && context
        && EVP_DigestVerifyInit(context, NULL, EVP_get_digestbyname(digest), NULL, key) > 0
        && EVP_DigestVerify(context, signature, signature_count, message, count) > 0;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    return is_right;
}

/// Computes the x coordinate of a shared point: 32 bytes.
static inline int phone_agree(const uint8_t *scalar, const uint8_t *point, const uint8_t *other, uint8_t *out) {
    size_t count = 32;
    EVP_PKEY *key = phone_key(scalar, point), *peer = phone_key(NULL, other);
    EVP_PKEY_CTX *context = key ? EVP_PKEY_CTX_new(key, NULL) : NULL;
    int is_right = context && peer && EVP_PKEY_derive_init(context) > 0 && EVP_PKEY_derive_set_peer(context, peer) > 0
        && EVP_PKEY_derive(context, out, &count) > 0 && count == 32;
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(peer);
    EVP_PKEY_free(key);
    return is_right;
}
