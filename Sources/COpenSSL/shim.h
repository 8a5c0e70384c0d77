// OpenSSL as Swift sees it. Only macros and variadics that Swift cannot import get an inline twin here.
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

// For Crypto. Parameters keep the address of their name, and a string literal of Swift has none that lasts.
static inline int copenssl_p256_public_key(EVP_PKEY_CTX *context, EVP_PKEY **key, unsigned char *point, size_t count) {
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)"prime256v1", 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, count),
        OSSL_PARAM_construct_end(),
    };
    return EVP_PKEY_fromdata_init(context) == 1
        && EVP_PKEY_fromdata(context, key, EVP_PKEY_PUBLIC_KEY, parameters) == 1;
}
