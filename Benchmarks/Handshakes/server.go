// server ADDRESS CERTIFICATE KEY AUTHORITY…
//
// An HTTP/2 server with Go's own TLS, for comparison. It verifies client certificates as the relay does.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"log"
	"net/http"
	"os"
)

func main() {
	authorities := x509.NewCertPool()
	for _, path := range os.Args[4:] {
		pem, err := os.ReadFile(path)
		if err != nil || !authorities.AppendCertsFromPEM(pem) {
			log.Fatal(path, ": no authority: ", err)
		}
	}
	server := &http.Server{
		Addr: os.Args[1],
		TLSConfig: &tls.Config{
			ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: authorities, MinVersion: tls.VersionTLS13,
			CurvePreferences: []tls.CurveID{tls.X25519},
		},
	}
	log.Fatal(server.ListenAndServeTLS(os.Args[2], os.Args[3]))
}
