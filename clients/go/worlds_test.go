package twoefay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A client whose relay is a function and whose clock moves only when it pauses, for tests without a
// network.

type fakeClock struct {
	mutex  sync.Mutex
	now    time.Time
	pauses []time.Duration
}

func newClock(seconds int64) *fakeClock { return &fakeClock{now: time.Unix(seconds, 0)} }

func (c *fakeClock) time() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.now
}

func (c *fakeClock) move(duration time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.now = c.now.Add(duration)
}

func (c *fakeClock) pause(ctx context.Context, duration time.Duration) error {
	c.move(duration)
	c.pauses = append(c.pauses, duration)
	return ctx.Err()
}

func (c *fakeClock) slept() time.Duration {
	var total time.Duration
	for _, one := range c.pauses {
		total += one
	}
	return total
}

// request is what the client sent, with its body.
type request struct {
	*http.Request
	content []byte
}

type roundTripper func(request) (*http.Response, error)

func (f roundTripper) RoundTrip(sent *http.Request) (*http.Response, error) {
	var content []byte
	if sent.Body != nil {
		var err error
		if content, err = io.ReadAll(sent.Body); err != nil {
			return nil, err
		}
		sent.Body.Close()
	}
	return f(request{sent, content})
}

// fakeRelay makes a client for a relay that is a function.
func fakeRelay(t *testing.T, settings Settings, store Store, clock *fakeClock, answer roundTripper) *Relay {
	t.Helper()
	if settings.Origin == "" {
		settings.Origin = "https://login.example.com:8080"
	}
	rules, err := policyOf(settings, "shop")
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: answer, CheckRedirect: stay}
	made := &Relay{
		policy: rules, store: store,
		clock: clock.time, limit: context.WithTimeout, pause: clock.pause, random: random,
	}
	made.http.Store(client)
	return made
}

func reply(status int, fields map[string]string, body string) *http.Response {
	header := http.Header{}
	for name, value := range fields {
		header.Set(name, value)
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}
}

func replyJSON(status int, body string) *http.Response {
	return reply(status, map[string]string{"content-type": "application/json"}, body)
}

func problem(code Code, status int, fields map[string]string) *http.Response {
	all := map[string]string{"content-type": "application/problem+json"}
	for name, value := range fields {
		all[name] = value
	}
	return reply(status, all, fmt.Sprintf(`{"title": "x", "status": %d, "code": %q}`, status, code))
}

var errLost = errors.New("the connection was lost")

const (
	now     = 1_795_334_400
	aLogin  = `{"login": "verified", "challenge": "cccccccccccccccccccccccccccccccc", "number": "47", "factor": "push"}`
	aDenial = `{"login": "failure", "reason": "denied"}`
)

func askedLogin() Login {
	sent := Sent{Username: "ada", Request: "r"}
	return Login{Challenge: strings.Repeat("c", 32), Number: "47", AskedAt: now, Sent: sent}
}

// step is one answer of a scripted relay, which comes after a time.
type step struct {
	after    time.Duration
	response func() (*http.Response, error)
}

func answers(status int, body string) step {
	return step{0, func() (*http.Response, error) { return replyJSON(status, body), nil }}
}

func refuses(code Code, status int, fields map[string]string) step {
	return step{0, func() (*http.Response, error) { return problem(code, status, fields), nil }}
}

func loses() step { return step{0, func() (*http.Response, error) { return nil, errLost }} }

func gateway(status int) step {
	return step{0, func() (*http.Response, error) {
		return reply(status, map[string]string{"content-type": "text/html"}, "<h1>Bad gateway</h1>"), nil
	}}
}

func (s step) later(after time.Duration) step { return step{after, s.response} }

// script is a relay that answers one after the other, and notes the requests.
type script struct {
	t        *testing.T
	clock    *fakeClock
	steps    []step
	requests []request
}

func newScript(t *testing.T, steps ...step) *script {
	return &script{t: t, clock: newClock(now), steps: steps}
}

func (s *script) answer(sent request) (*http.Response, error) {
	s.requests = append(s.requests, sent)
	if len(s.steps) == 0 {
		s.t.Error("one request too many")
		return nil, errLost
	}
	next := s.steps[0]
	s.steps = s.steps[1:]
	s.clock.move(next.after)
	return next.response()
}

func (s *script) relay() *Relay {
	return fakeRelay(s.t, Settings{}, NewMemoryStore(), s.clock, s.answer)
}

// keys returns the different idempotency keys, and how many requests had one.
func (s *script) keys() (map[string]bool, int) {
	found, count := map[string]bool{}, 0
	for _, one := range s.requests {
		if key := one.Header.Get("Idempotency-Key"); key != "" {
			found[key] = true
			count++
		}
	}
	return found, count
}

func (s *script) bodiesAreEqual() bool {
	for _, one := range s.requests {
		if !bytes.Equal(one.content, s.requests[0].content) {
			return false
		}
	}
	return true
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func object(t *testing.T, data []byte) Object {
	t.Helper()
	var value Object
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return value
}
