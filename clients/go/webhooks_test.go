package twoefay

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func signedWebhook(t *testing.T, id, kind string, data Object) (http.Header, []byte) {
	body := must[[]byte](t)(json.Marshal(Object{"type": kind, "timestamp": "2026-11-22T08:00:00.000Z", "data": data}))
	key := must[[]byte](t)(base64.StdEncoding.DecodeString(strings.TrimPrefix(webhookSecret, "whsec_")))
	signature := base64.StdEncoding.EncodeToString(mac(key, []byte(fmt.Sprintf("%s.%d.%s", id, now, body))))
	header := http.Header{}
	header.Set("webhook-id", id)
	header.Set("webhook-timestamp", fmt.Sprint(now))
	header.Set("webhook-signature", "v1,"+signature)
	return header, body
}

func inbox(t *testing.T, store Store) *Webhooks {
	made := must[*Webhooks](t)(NewWebhooks([]string{webhookSecret}, store))
	made.clock = func() time.Time { return time.Unix(now, 0) }
	return made
}

// counter counts events, and fails for the first ones.
type counter struct{ count, failures int }

func (c *counter) act(context.Context, Event) error {
	if c.count++; c.count <= c.failures {
		return errors.New("the database is away")
	}
	return nil
}

func TestRepetitionActsOnce(t *testing.T) {
	receiver, acts := inbox(t, NewMemoryStore()), &counter{}
	header, body := signedWebhook(t, "e1", "login.decided", Object{})
	for i := 0; i < 2; i++ {
		if status, err := receiver.Receive(background, header, body, acts.act); status != 204 || err != nil {
			t.Error(status, err)
		}
	}
	if acts.count != 1 {
		t.Error(acts.count)
	}
}

func TestMissingActChangesNothing(t *testing.T) {
	store := NewMemoryStore()
	if err := store.AddUser(background, "ada", "t1"); err != nil {
		t.Fatal(err)
	}
	if err := store.AddSecret(background, "ada", []byte("k"), time.Unix(now, 0)); err != nil {
		t.Fatal(err)
	}
	header, body := signedWebhook(t, "e1", "device.unbound", Object{"token": "t1", "device": "d1"})
	if status, err := inbox(t, store).Receive(background, header, body, nil); status != 500 || err == nil {
		t.Error(status, err)
	}
	if open := must[[][]byte](t)(store.Secrets(background, "ada", time.Unix(now, 0))); len(open) != 1 {
		t.Error("the webhook was handled")
	}
}

func TestFailedActRunsAgain(t *testing.T) {
	receiver, acts := inbox(t, NewMemoryStore()), &counter{failures: 1}
	header, body := signedWebhook(t, "e1", "login.decided", Object{})
	for _, expected := range []int{500, 204, 204} {
		status, err := receiver.Receive(background, header, body, acts.act)
		if status != expected || (err != nil) != (status == 500) {
			t.Error(status, err)
		}
	}
	if acts.count != 2 {
		t.Error(acts.count)
	}
}

func TestForgedWebhookActsNever(t *testing.T) {
	acts := &counter{}
	header, body := signedWebhook(t, "e1", "login.decided", Object{})
	header.Set("webhook-id", "e2")
	status, err := inbox(t, NewMemoryStore()).Receive(background, header, body, acts.act)
	var forged *WebhookError
	if status != 400 || !errors.As(err, &forged) || forged.Reason != "signature" || acts.count != 0 {
		t.Error(status, err, acts.count)
	}
}

func TestUnboundPhoneIsUnpinned(t *testing.T) {
	store := NewMemoryStore()
	for _, name := range []string{"ada", "bob"} {
		_ = store.AddUser(background, name, "t-"+name)
		_ = store.AddSecret(background, name, []byte("k"), time.Unix(now, 0))
		_, _ = store.Pin(background, name, "d1", JWK{}, []byte("k"))
	}
	for _, token := range []string{"t-nobody", "t-ada"} {
		header, body := signedWebhook(t, token, "device.unbound", Object{"token": token, "device": "d1"})
		status, err := inbox(t, store).Receive(background, header, body, (&counter{}).act)
		if status != 204 || err != nil {
			t.Error(status, err)
		}
		if pins, _ := store.Pins(background, "ada"); (len(pins) == 0) != (token == "t-ada") {
			t.Error(token, pins)
		}
	}
	// The relay signs webhooks: it must not turn a user into one who never had a phone.
	wasPinned, _ := store.WasPinned(background, "ada")
	pins, _ := store.Pins(background, "bob")
	if !wasPinned || len(pins) != 1 {
		t.Error(wasPinned, pins)
	}
}

// failingStore fails if anything is unpinned.
type failingStore struct{ *MemoryStore }

func (failingStore) UnpinByToken(context.Context, string, string) error {
	return errors.New("a text that the database does not take")
}

func TestOddIDsDoNotReachTheStore(t *testing.T) {
	for _, id := range []any{"", "\x00", strings.Repeat("x", 129), 7, nil} {
		for _, data := range []Object{{"token": id, "device": "d1"}, {"token": "t", "device": id}} {
			header, body := signedWebhook(t, "e1", "device.unbound", data)
			receiver := inbox(t, failingStore{NewMemoryStore()})
			if status, err := receiver.Receive(background, header, body, (&counter{}).act); status != 204 || err != nil {
				t.Errorf("%q: %d %v", id, status, err)
			}
		}
	}
}

func TestHandlerAnswers(t *testing.T) {
	acts := &counter{}
	handler := inbox(t, NewMemoryStore()).Handler(acts.act)
	header, body := signedWebhook(t, "e1", "login.decided", Object{})
	for _, one := range []struct {
		method   string
		header   http.Header
		body     string
		expected int
	}{
		{"GET", header, string(body), 405}, {"POST", header, string(body), 204},
		{"POST", http.Header{}, string(body), 400},
		{"POST", header, strings.Repeat("x", mostBytes+1), 400},
	} {
		request := httptest.NewRequest(one.method, "/webhook", strings.NewReader(one.body))
		request.Header = one.header
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		if recorder.Code != one.expected {
			t.Error(one.method, recorder.Code)
		}
	}
	if acts.count != 1 {
		t.Error(acts.count)
	}
}

func TestHandlerLogsItsOwnErrorsOnly(t *testing.T) {
	var logged strings.Builder
	receiver, acts := inbox(t, NewMemoryStore()), &counter{failures: 1}
	receiver.Log = log.New(&logged, "", 0)
	good, body := signedWebhook(t, "e1", "login.decided", Object{})
	for _, header := range []http.Header{{}, good, good} {
		request := httptest.NewRequest("POST", "/webhook", strings.NewReader(string(body)))
		request.Header = header
		receiver.Handler(acts.act).ServeHTTP(httptest.NewRecorder(), request)
	}
	if text := logged.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "the database is away") {
		t.Error(text)
	}
}

func TestWeakSecretIsRefused(t *testing.T) {
	for _, secret := range []string{"", "whsec_", "whsec_c2hvcnQ=", "whsec_***"} {
		if _, err := NewWebhooks([]string{webhookSecret, secret}, NewMemoryStore()); err == nil {
			t.Error(secret)
		}
	}
	if _, err := NewWebhooks(nil, NewMemoryStore()); err == nil {
		t.Error("no secret")
	}
	var none *SQLStore
	if _, err := NewWebhooks([]string{webhookSecret}, none); err == nil {
		t.Error("a nil pointer is taken for a store")
	}
	if _, err := NewWebhooks([]string{webhookSecret}, nil); err == nil {
		t.Error("no store")
	}
}
