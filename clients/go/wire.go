package twoefay

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	mostBytes  = 1 << 20
	answerTime = 15 * time.Second
)

// requireOrigin checks the relay's origin. Phones sign it, so it must be that of the relay's
// settings.
func requireOrigin(origin string) error {
	parts, err := url.Parse(origin)
	if err != nil || parts.Scheme != "https" || parts.Hostname() == "" || parts.User != nil ||
		origin != "https://"+parts.Host {
		return fmt.Errorf("twoefay: %q is not an origin such as https://login.example.com:8080", origin)
	}
	return nil
}

// websiteOf returns the website's name, from its certificate.
func websiteOf(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("twoefay: %w", err)
	}
	unfit := fmt.Errorf("twoefay: %s is not the certificate of a website", file)
	block, _ := pem.Decode(data)
	if block == nil {
		return "", unfit
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil || len(certificate.URIs) != 1 {
		return "", unfit
	}
	name := strings.TrimPrefix(certificate.URIs[0].String(), "twoefay:website:")
	if name == "" || name == certificate.URIs[0].String() {
		return "", unfit
	}
	return name, nil
}

// httpClient makes a client that trusts the relay's own authority, and no other. It offers HTTP/2
// and HTTP/1.1, and the relay picks. Proxies of the environment are ignored, redirects not
// followed.
func httpClient(ca, certificate, key string) (*http.Client, error) {
	authority, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("twoefay: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("twoefay: %s has no certificate", ca)
	}
	own, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("twoefay: %s, %s: %w", certificate, key, err)
	}
	return &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{
				RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12,
			},
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout: 5 * time.Second,
			ForceAttemptHTTP2:   true,
			// An answer is at most some kilobytes: without compression, a small one stays small.
			DisableCompression:     true,
			MaxResponseHeaderBytes: 1 << 16,
			MaxIdleConnsPerHost:    8,
			IdleConnTimeout:        30 * time.Second,
		},
		CheckRedirect: stay,
	}, nil
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// exchange makes one request and returns its answer, within limits of size and time: a relay must
// not fill the memory of a website.
func (r *Relay) exchange(ctx context.Context, c call) (answer, error) {
	limited, cancel := r.limit(ctx, c.hold+2*answerTime)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, c.method, r.policy.origin+c.path, bytes.NewReader(c.body))
	if err != nil {
		return answer{}, fmt.Errorf("twoefay: %w", err)
	}
	for name, value := range c.fields {
		request.Header.Set(name, value)
	}
	request.Header.Set("User-Agent", "twoefay-go")
	if len(c.body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	client := r.http.Load()
	response, err := client.Do(request)
	if err != nil {
		return answer{}, r.lost(ctx, c, client, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostBytes+1))
	if err != nil {
		return answer{}, r.lost(ctx, c, client, err)
	}
	if len(body) > mostBytes {
		return answer{}, &UnreachableError{errors.New("the answer is too long")}
	}
	return answer{response.StatusCode, response.Header, body}, nil
}

// lost returns the error of a request without an answer: the caller's own end, or an outage.
func (r *Relay) lost(ctx context.Context, c call, used *http.Client, err error) error {
	// A held request may well end by the caller's time: that says nothing of the connection.
	isOwnEnd := ctx.Err() != nil
	if errors.Is(err, context.DeadlineExceeded) && !(isOwnEnd && c.hold > 0) {
		r.retire(used)
	}
	if isOwnEnd {
		return ctx.Err()
	}
	return &UnreachableError{err}
}

// retire has the next requests use another connection: this one may be dead without saying so.
// HTTP/2 would use it for as long as any request waits on it, so closing idle ones is not enough.
// The requests that wait on it go on, and it is closed once it is idle.
func (r *Relay) retire(used *http.Client) {
	if old, isReal := used.Transport.(*http.Transport); isReal {
		fresh := *used
		fresh.Transport = old.Clone()
		r.http.CompareAndSwap(used, &fresh) // once, if many requests fail together
	}
	used.CloseIdleConnections()
}
