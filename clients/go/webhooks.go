package twoefay

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// tolerance is how far the time of a webhook may be away from now.
const tolerance = 300 * time.Second

// Event is an event of the relay. Ignore types that you do not know: the relay may add some.
type Event struct {
	ID, Type, Timestamp string
	Data                Object
}

// Webhooks receives the relay's webhooks: Standard Webhooks 1.0.
//
// The signature is checked over the bytes as they arrived, before one of them is parsed. Never let
// a user in by a webhook alone: pass its data to Relay.Check, with the login that this browser
// began.
type Webhooks struct {
	// Log gets the errors of the handler's store and act.
	Log *log.Logger

	keys  [][]byte
	store Store
	clock func() time.Time
}

// NewWebhooks makes a receiver. The secrets are the lines of shop.secret and, while the secret
// changes, shop.secret.new. The store remembers which webhooks were handled.
func NewWebhooks(secrets []string, store Store) (*Webhooks, error) {
	if len(secrets) == 0 {
		return nil, errors.New("twoefay: a receiver of webhooks needs a secret")
	}
	if err := requireStore(store); err != nil {
		return nil, err
	}
	receiver := &Webhooks{Log: log.Default(), store: store, clock: time.Now}
	for _, secret := range secrets {
		text := strings.TrimPrefix(strings.TrimSpace(secret), "whsec_")
		key, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil {
			return nil, errors.New("twoefay: a secret of webhooks is whsec_ and base64")
		}
		// An empty key would accept what anybody signs; Standard Webhooks wants 24 bytes.
		if len(key) < 24 {
			return nil, errors.New("twoefay: the secret of webhooks is too short")
		}
		receiver.keys = append(receiver.keys, key)
	}
	return receiver, nil
}

var isMoment = regexp.MustCompile(`^[0-9]{1,11}$`).MatchString

// Verify returns the event of a webhook. After a WebhookError, answer 400, and do nothing else.
func (w *Webhooks) Verify(header http.Header, body []byte) (Event, error) {
	id, moment, signatures := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp"), header.Get("Webhook-Signature")
	if !isID(id) || signatures == "" || !isMoment(moment) {
		return Event{}, &WebhookError{"headers"}
	}
	seconds, _ := strconv.ParseInt(moment, 10, 64)
	if age := w.clock().Unix() - seconds; age > int64(tolerance/time.Second) || -age > int64(tolerance/time.Second) {
		return Event{}, &WebhookError{"time"}
	}
	if !w.isSigned(append([]byte(id+"."+moment+"."), body...), signatures) {
		return Event{}, &WebhookError{"signature"}
	}
	return readEvent(id, body)
}

func (w *Webhooks) isSigned(signed []byte, signatures string) bool {
	found := false
	for _, key := range w.keys {
		own := []byte(base64.StdEncoding.EncodeToString(mac(key, signed)))
		for _, one := range strings.Split(signatures, " ") {
			// No early end: the time must not tell which of them matched.
			if strings.HasPrefix(one, "v1,") && hmac.Equal(own, []byte(one[3:])) {
				found = true
			}
		}
	}
	return found
}

func readEvent(id string, body []byte) (Event, error) {
	value, err := readObject(body)
	if err != nil {
		return Event{}, &WebhookError{"body"}
	}
	kind, hasKind := value["type"].(string)
	timestamp, hasTimestamp := value["timestamp"].(string)
	data, hasData := value["data"].(Object)
	if !hasKind || !hasTimestamp || !hasData {
		return Event{}, &WebhookError{"body"}
	}
	return Event{id, kind, timestamp, data}, nil
}

// Receive handles a webhook, and returns the status to answer: 204, 400, or 500 with the error of
// act or of the store. After 500 the relay sends the webhook again.
//
// act runs before the id is stored, so no event is lost. It may run twice, if the process dies in
// between or two deliveries come at once: let it have the same effect then.
func (w *Webhooks) Receive(
	ctx context.Context, header http.Header, body []byte, act func(context.Context, Event) error,
) (int, error) {
	if act == nil {
		return http.StatusInternalServerError, errors.New("twoefay: a webhook has no act")
	}
	event, err := w.Verify(header, body)
	if err != nil {
		return http.StatusBadRequest, err
	}
	hasSeen, err := w.store.HasSeen(ctx, event.ID)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	if hasSeen {
		return http.StatusNoContent, nil
	}
	token, device := textOf(event.Data["token"]), textOf(event.Data["device"])
	if event.Type == "device.unbound" && isID(token) && isID(device) {
		// A lost phone must not count, whatever the relay says later. The user stays one who had a
		// phone: the relay, which signs webhooks, cannot make room for another one.
		if err := w.store.UnpinByToken(ctx, token, device); err != nil {
			return http.StatusInternalServerError, err
		}
	}
	if err := act(ctx, event); err != nil {
		return http.StatusInternalServerError, fmt.Errorf("twoefay: webhook %s: %w", event.ID, err)
	}
	if err := w.store.See(ctx, event.ID, w.clock()); err != nil {
		return http.StatusInternalServerError, err
	}
	return http.StatusNoContent, nil
}

// Handler returns a handler for the path of the webhooks. It logs only why it answers 500.
func (w *Webhooks) Handler(act func(context.Context, Event) error) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodPost {
			writer.Header().Set("Allow", http.MethodPost)
			writer.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(writer, request.Body, mostBytes))
		if err != nil {
			writer.WriteHeader(http.StatusBadRequest)
			return
		}
		status, err := w.Receive(request.Context(), request.Header, body, act)
		if status == http.StatusInternalServerError { // anybody can send what is no webhook
			w.Log.Printf("twoefay: webhook: %q", err)
		}
		writer.WriteHeader(status)
	})
}
