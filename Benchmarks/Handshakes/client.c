// client PORT CA CERTIFICATE KEY COUNT resumed|full
//
// Connects COUNT times, one after the other, with TLS 1.3 and a client certificate, and ends each
// connection after the server's SETTINGS. With `resumed`, each connection resumes the session of the
// last one. Prints how many were resumed.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void require(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "client: %s failed\n", what);
    exit(1);
}

static int connect_to(int port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int file = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    require(file >= 0 && connect(file, (struct sockaddr *)&address, sizeof address) == 0, "connecting");
    setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return file;
}

int main(int count, char **words) {
    // The preface of HTTP/2, and empty SETTINGS.
    static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    require(count == 7, "usage: see client.c; it");
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set1_groups_list(context, "X25519");
    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_alpn_protos(context, (const unsigned char *)"\2h2", 3);
    require(SSL_CTX_load_verify_locations(context, words[2], NULL), "reading the authority");
    require(SSL_CTX_use_certificate_file(context, words[3], SSL_FILETYPE_PEM) == 1, "reading the certificate");
    require(SSL_CTX_use_PrivateKey_file(context, words[4], SSL_FILETYPE_PEM) == 1, "reading the key");
    int connections = atoi(words[5]), resumed = 0, resumes = strcmp(words[6], "resumed") == 0;
    SSL_SESSION *session = NULL;
    for (int at = 0; at < connections; at++) {
        char answer[16384];
        SSL *tls = SSL_new(context);
        int file = connect_to(atoi(words[1]));
        SSL_set_fd(tls, file);
        SSL_set_tlsext_host_name(tls, "localhost");
        if (session != NULL) SSL_set_session(tls, session);
        require(SSL_connect(tls) == 1, "the handshake");
        resumed += SSL_session_reused(tls);
        require(SSL_write(tls, hello, sizeof hello) > 0 && SSL_read(tls, answer, sizeof answer) > 0, "HTTP/2");
        // OpenSSL does not resume a session whose connection ends without this.
        SSL_shutdown(tls);
        if (resumes) {
            SSL_SESSION_free(session);
            session = SSL_get1_session(tls);
        }
        SSL_free(tls);
        close(file);
    }
    printf("%d\n", resumed);
    return 0;
}
