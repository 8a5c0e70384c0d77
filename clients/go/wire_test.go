package twoefay

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Connections: a fake relay in a real server, with an authority of its own.

type authority struct {
	t           *testing.T
	directory   string
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, directory: t.TempDir()}
	template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.certificate, a.key = a.issue("ca", template)
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.directory, name) }

// issue makes a certificate, and writes it and its key to files.
func (a *authority) issue(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key := must[*ecdsa.PrivateKey](a.t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der := must[[]byte](a.t)(x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer))
	private := must[[]byte](a.t)(x509.MarshalECPrivateKey(key))
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "EC PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(a.file(file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return must[*x509.Certificate](a.t)(x509.ParseCertificate(der)), key
}

func (a *authority) issueWebsite(name string, uris ...string) {
	template := &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, one := range uris {
		template.URIs = append(template.URIs, must[*url.URL](a.t)(url.Parse(one)))
	}
	a.issue(name, template)
}

func (a *authority) settings(origin string) Settings {
	return Settings{
		Origin: origin, CA: a.file("ca.pem"), Certificate: a.file("shop.pem"), Key: a.file("shop.key"),
		Store: NewMemoryStore(),
	}
}

// serve starts a server that wants a certificate of a website.
func (a *authority) serve(offersHTTP2 bool, handler http.HandlerFunc) string {
	a.issue("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	own := must[tls.Certificate](a.t)(tls.LoadX509KeyPair(a.file("server.pem"), a.file("server.key")))
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = offersHTTP2
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots,
	}
	server.StartTLS()
	a.t.Cleanup(server.Close)
	return server.URL
}

const aUser = `{"token": "t", "factors": [{"kind": "push", "state": "active"}], "devices": []}`

func TestBothVersionsOfHTTPAreSpoken(t *testing.T) {
	for _, offersHTTP2 := range []bool{true, false} {
		a := newAuthority(t)
		a.issueWebsite("shop", "twoefay:website:shop")
		origin := a.serve(offersHTTP2, func(w http.ResponseWriter, r *http.Request) {
			if (r.ProtoMajor == 2) != offersHTTP2 || r.Header.Get("Accept-Encoding") != "" ||
				r.TLS.PeerCertificates[0].URIs[0].String() != "twoefay:website:shop" {
				t.Error(r.Proto, r.Header)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, aUser)
		})
		relay := must[*Relay](t)(New(a.settings(origin)))
		factors, err := relay.Factors(background, "ada")
		if err != nil || len(factors) != 1 || relay.policy.audience() != origin+"#shop" {
			t.Error(factors, err)
		}
		relay.Close()
	}
}

func TestOtherAuthorityIsNotTrusted(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	a.issueWebsite("shop", "twoefay:website:shop")
	origin := a.serve(true, func(w http.ResponseWriter, r *http.Request) { t.Error("a request") })
	settings := a.settings(origin)
	settings.CA = other.file("ca.pem")
	relay := must[*Relay](t)(New(settings))
	clock := newClock(now)
	relay.clock, relay.pause = clock.time, clock.pause
	_, err := relay.Factors(background, "ada")
	var (
		unreachable *UnreachableError
		untrusted   x509.UnknownAuthorityError
	)
	if !errors.As(err, &unreachable) || !errors.As(err, &untrusted) {
		t.Error(err)
	}
}

func TestConnectionThatEndsInAnAnswerIsRepeated(t *testing.T) {
	for _, offersHTTP2 := range []bool{true, false} {
		a, count := newAuthority(t), 0
		a.issueWebsite("shop", "twoefay:website:shop")
		origin := a.serve(offersHTTP2, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if count++; count == 1 {
				_, _ = io.WriteString(w, aUser[:20])
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, aUser)
		})
		relay := must[*Relay](t)(New(a.settings(origin)))
		clock := newClock(now)
		relay.clock, relay.pause = clock.time, clock.pause
		if _, err := relay.Factors(background, "ada"); err != nil || count != 2 {
			t.Error(count, err)
		}
		relay.Close()
	}
}

func TestHeldRequestEndsWithItsContext(t *testing.T) {
	a := newAuthority(t)
	a.issueWebsite("shop", "twoefay:website:shop")
	ctx, cancel := context.WithCancel(background)
	origin := a.serve(true, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Prefer") != "wait=60" {
			t.Error(r.Header)
		}
		cancel()
		<-r.Context().Done()
	})
	relay := must[*Relay](t)(New(a.settings(origin)))
	if _, err := relay.Wait(ctx, askedLogin(), UntilDecided); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestUnfitFilesAreRefused(t *testing.T) {
	a := newAuthority(t)
	a.issueWebsite("shop", "twoefay:website:shop")
	a.issueWebsite("none")
	a.issueWebsite("phone", "twoefay:device:shop")
	a.issueWebsite("nameless", "twoefay:website:")
	a.issueWebsite("two", "twoefay:website:shop", "twoefay:website:other")
	for _, change := range []func(*Settings){
		func(s *Settings) { s.Certificate, s.Key = a.file("none.pem"), a.file("none.key") },
		func(s *Settings) { s.Certificate, s.Key = a.file("phone.pem"), a.file("phone.key") },
		func(s *Settings) { s.Certificate, s.Key = a.file("nameless.pem"), a.file("nameless.key") },
		func(s *Settings) { s.Certificate, s.Key = a.file("two.pem"), a.file("two.key") },
		func(s *Settings) { s.Key = a.file("two.key") },
		func(s *Settings) { s.Certificate = a.file("shop.key") },
		func(s *Settings) { s.Certificate = a.file("missing") },
		func(s *Settings) { s.CA = a.file("missing") },
		func(s *Settings) { s.CA = a.file("ca.key") },
		func(s *Settings) { s.Store = nil },
	} {
		settings := a.settings("https://localhost:8080")
		change(&settings)
		if _, err := New(settings); err == nil {
			t.Errorf("accepted: %+v", settings)
		}
	}
}

// endable is a context whose time ends when the test says so.
type endable struct {
	context.Context
	done chan struct{}
}

func newEndable(ctx context.Context) *endable { return &endable{ctx, make(chan struct{})} }

func (e *endable) Done() <-chan struct{} { return e.done }

func (e *endable) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// While a held request keeps the first connection busy, another request on it has no answer.
func TestDeadConnectionIsReplacedUnderLoad(t *testing.T) {
	for _, offersHTTP2 := range []bool{true, false} {
		for _, isCallersTime := range []bool{true, false} {
			a := newAuthority(t)
			a.issueWebsite("shop", "twoefay:website:shop")
			isHeld, release := make(chan struct{}), make(chan struct{})
			short := newEndable(background)
			var held, lost, answered string // addresses of connections
			origin := a.serve(offersHTTP2, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.Header.Get("Prefer") != "":
					held = r.RemoteAddr
					close(isHeld)
					<-release
					_, _ = io.WriteString(w, aDenial)
				case lost == "":
					lost = r.RemoteAddr
					close(short.done)
					<-r.Context().Done()
				default:
					answered = r.RemoteAddr
					_, _ = io.WriteString(w, aUser)
				}
			})
			relay := must[*Relay](t)(New(a.settings(origin)))
			clock := newClock(now)
			relay.clock, relay.pause = clock.time, clock.pause
			decisions := make(chan Decision)
			go func() {
				decision, err := relay.Wait(background, askedLogin(), UntilDecided)
				if err != nil {
					t.Error(err)
				}
				decisions <- decision
			}()
			<-isHeld
			ctx := context.Context(short)
			if !isCallersTime { // the time of this attempt ends, and the next one has its own
				ctx = background
				first := true
				relay.limit = func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
					if first {
						first, ctx = false, short
					}
					return context.WithTimeout(ctx, d)
				}
			}
			_, err := relay.Factors(ctx, "ada")
			if isCallersTime {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				_, err = relay.Factors(background, "ada")
			}
			if err != nil || answered == "" || answered == lost || offersHTTP2 && lost != held {
				t.Error(offersHTTP2, isCallersTime, err, held, lost, answered)
			}
			close(release)
			if decision := <-decisions; decision.Reason != "denied" { // its connection was left alone
				t.Error(decision)
			}
			relay.Close()
		}
	}
}

func TestEndOfAHeldRequestKeepsItsConnection(t *testing.T) {
	a := newAuthority(t)
	a.issueWebsite("shop", "twoefay:website:shop")
	short := newEndable(background)
	var addresses []string
	origin := a.serve(true, func(w http.ResponseWriter, r *http.Request) {
		addresses = append(addresses, r.RemoteAddr)
		if r.Header.Get("Prefer") != "" {
			close(short.done)
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, aUser)
	})
	relay := must[*Relay](t)(New(a.settings(origin)))
	if _, err := relay.Wait(short, askedLogin(), UntilDecided); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := relay.Factors(background, "ada"); err != nil || len(addresses) != 2 || addresses[0] != addresses[1] {
		t.Error(addresses, err)
	}
	relay.Close()
}
