// A website whose users log in with a password and their phone.
//
//	go run ./examples/site -relay https://localhost:8080 -files ~/trial
//
// Browsers accept its secure cookies without TLS only because it is on localhost. The directory has
// the relay's and the website's files: relay/ca.pem, shop.pem and shop.key.
package main

import (
	"crypto/rand"
	"flag"
	"log"
	"net/http"
	"path/filepath"
	"time"

	"twoefay"
)

func main() {
	origin := flag.String("relay", "https://localhost:8080", "the relay's origin")
	files := flag.String("files", ".", "the directory of the files")
	listen := flag.String("listen", "localhost:8000", "the address of this website")
	flag.Parse()
	// For a trial: it forgets all phones. A website uses twoefay.NewSQLStore with its own database.
	store := twoefay.NewMemoryStore()
	relay, err := twoefay.New(twoefay.Settings{
		Origin:      *origin,
		CA:          filepath.Join(*files, "relay", "ca.pem"),
		Certificate: filepath.Join(*files, "shop.pem"),
		Key:         filepath.Join(*files, "shop.key"),
		Store:       store,
	})
	if err != nil {
		log.Fatal(err)
	}
	key := make([]byte, 32) // from your settings, if there are several processes
	if _, err := rand.Read(key); err != nil {
		log.Fatal(err)
	}
	site, err := newSite(relay, store, key)
	if err != nil {
		log.Fatal(err)
	}
	server := http.Server{Addr: *listen, Handler: site, ReadHeaderTimeout: 10 * time.Second}
	log.Printf("http://%s", *listen)
	log.Fatal(server.ListenAndServe())
}
