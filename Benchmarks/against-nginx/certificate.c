/* h2load cannot show a certificate. This library, loaded by LD_PRELOAD, gives each TLS context of the
 * program the certificate and key of the files CERTIFICATE and KEY. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>

SSL_CTX *SSL_CTX_new(const SSL_METHOD *method) {
    SSL_CTX *(*original)(const SSL_METHOD *) = dlsym(RTLD_NEXT, "SSL_CTX_new");
    SSL_CTX *context = original(method);
    if (context == NULL || SSL_CTX_use_certificate_chain_file(context, getenv("CERTIFICATE")) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, getenv("KEY"), SSL_FILETYPE_PEM) != 1) {
        fputs("the certificate cannot be used\n", stderr);
        exit(1);
    }
    return context;
}
