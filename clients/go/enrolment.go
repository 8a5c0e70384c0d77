package twoefay

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// Enrolment is what a user needs to bind a phone. Show it once, to the logged-in user, and log none
// of it.
type Enrolment struct {
	// Token is the user's id at the relay.
	Token string
	// URI is the link for an app on the same device, with the website's secret k. With
	// Settings.AppOrigin, it leads to that web app. It is empty if the relay mails the code. It is
	// not part of the JSON, so that a log does not get k.
	URI string `json:"-"`
	// SentTo is the masked address to which the relay mails the code.
	SentTo string
	// Awaits is "identity" until an operator has confirmed who the user is.
	Awaits    string
	ExpiresAt string
}

// QR returns the QR code as SVG, to stand in HTML. It is drawn here: the relay must not see k.
func (e Enrolment) QR() (string, error) {
	if e.URI == "" {
		return "", errors.New("twoefay: there is no code to draw: the relay mails it, or awaits something")
	}
	return drawQR([]byte(e.URI), "QR code for your phone")
}

// String leaves the URI out, so that a log does not get k.
func (e Enrolment) String() string { return "enrolment of " + e.Token }

// GoString leaves the URI out, too.
func (e Enrolment) GoString() string { return e.String() }

// RegisterOptions describe a new user. Empty ones are not sent.
type RegisterOptions struct {
	Email       string `json:"email,omitempty"`
	Phone       string `json:"phone,omitempty"`
	DisplayName string `json:"display_name,omitempty"`
	Language    string `json:"language,omitempty"`
	ExpiresAt   string `json:"expires_at,omitempty"`
}

// Register registers a user, once. The error is a Conflict if the relay knows the user: see
// Enrolment.
func (r *Relay) Register(ctx context.Context, username string, options RegisterOptions) (Enrolment, error) {
	if _, err := segment(username); err != nil {
		return Enrolment{}, err
	}
	body := struct {
		Username string `json:"username"`
		RegisterOptions
	}{username, options}
	made, err := newCall(http.MethodPost, "/register", body)
	if err != nil {
		return Enrolment{}, err
	}
	answer, err := r.send(ctx, made, http.StatusCreated)
	if errors.Is(err, ShownOnce) {
		// A lost answer to an attempt that was done: the user exists, without a phone.
		return r.Enrolment(ctx, username, "")
	}
	if err != nil {
		return Enrolment{}, err
	}
	activation, isObject := answer["activation"].(Object)
	if !isObject {
		return Enrolment{}, odd("activation is not an object")
	}
	token, err := identity(answer, "token")
	if err != nil {
		return Enrolment{}, err
	}
	return r.keepEnrolment(ctx, username, token, activation)
}

// Enrolment returns another code, for a further phone or after the first has expired (ten minutes).
//
// Once the user has a factor, the error is an ApprovalRequired: show its number, wait for its
// challenge, and call again with that as approval. Otherwise approval is empty.
func (r *Relay) Enrolment(ctx context.Context, username, approval string) (Enrolment, error) {
	name, err := segment(username)
	if err != nil {
		return Enrolment{}, err
	}
	token, err := r.store.Token(ctx, username)
	if err != nil {
		return Enrolment{}, err
	}
	if token == "" {
		user, err := r.User(ctx, username)
		if err != nil {
			return Enrolment{}, err
		}
		if token, err = identity(user, "token"); err != nil {
			return Enrolment{}, err
		}
	}
	body := Object{}
	if approval != "" {
		body["approval"] = approval
	}
	made, err := newCall(http.MethodPost, "/user/"+name+"/activation", body)
	if err != nil {
		return Enrolment{}, err
	}
	activation, err := r.send(ctx, made, http.StatusCreated, http.StatusAccepted)
	if err != nil {
		return Enrolment{}, err
	}
	return r.keepEnrolment(ctx, username, token, activation)
}

func (r *Relay) keepEnrolment(ctx context.Context, username, token string, activation Object) (Enrolment, error) {
	k := make([]byte, 32)
	if err := r.random(k); err != nil {
		return Enrolment{}, err
	}
	made, err := readEnrolment(r.policy, token, activation, k)
	if err != nil {
		return Enrolment{}, err
	}
	if err := r.store.AddUser(ctx, username, token); err != nil {
		return Enrolment{}, err
	}
	if made.URI != "" {
		if err := r.store.AddSecret(ctx, username, k, r.clock()); err != nil {
			return Enrolment{}, err
		}
	}
	return made, nil
}

// readEnrolment reads the relay's activation, and adds k.
func readEnrolment(rules policy, token string, activation Object, k []byte) (Enrolment, error) {
	if activation["awaits"] != nil {
		awaits, err := text(activation, "awaits")
		return Enrolment{Token: token, Awaits: awaits}, err
	}
	expiresAt, err := text(activation, "expires_at")
	if err != nil {
		return Enrolment{}, err
	}
	if activation["sent_to"] != nil {
		sentTo, err := text(activation, "sent_to")
		return Enrolment{Token: token, SentTo: sentTo, ExpiresAt: expiresAt}, err
	}
	uri, err := text(activation, "uri")
	if err != nil {
		return Enrolment{}, err
	}
	if err := requireOpenEnd(uri); err != nil {
		return Enrolment{}, err
	}
	if rules.appOrigin != "" {
		// A browser sends no fragment, so no server gets k.
		uri = rules.appOrigin + "/phone/#" + strings.TrimPrefix(uri, uriStart)
	}
	if rules.phones != AnyPhones {
		uri += "&phones=" + string(rules.phones)
	}
	return Enrolment{Token: token, URI: uri + "&k=" + encode(k), ExpiresAt: expiresAt}, nil
}

const (
	uriStart = "twoefay://enrol?"
	mostURI  = 2000
)

var isPlainURI = regexp.MustCompile(`^[A-Za-z0-9%&=._~:/?-]+$`).MatchString

// requireOpenEnd checks that k can be added: the relay must not choose it, and nothing may follow
// that hides the one of the website.
func requireOpenEnd(uri string) error {
	if !strings.HasPrefix(uri, uriStart) || len(uri) > mostURI || !isPlainURI(uri) {
		return odd("the activation is not a URI to which k can be added")
	}
	values, err := url.ParseQuery(strings.TrimPrefix(uri, uriStart))
	if err != nil || values.Has("k") {
		return odd("the activation already has a k")
	}
	return nil
}

// Confirm pins the phones that have read a code of this website, and returns their new ids: none
// until a phone has read the code. The error is a BindingError if the relay reports a key that no
// phone proved. Wait calls it too, for a phone that was bound since.
func (r *Relay) Confirm(ctx context.Context, username string) ([]string, error) {
	user, err := r.User(ctx, username)
	if err != nil {
		return nil, err
	}
	token, err := identity(user, "token")
	if err != nil {
		return nil, err
	}
	own, err := r.store.Token(ctx, username)
	if err != nil {
		return nil, err
	}
	if own != "" && own != token {
		return nil, &BindingError{"token"}
	}
	devices, err := objects(user, "devices")
	if err != nil {
		return nil, err
	}
	return r.pinNew(ctx, username, token, devices)
}

// pinNew pins every active phone with a right binding.
func (r *Relay) pinNew(ctx context.Context, username, token string, devices []Object) ([]string, error) {
	pins, err := r.store.Pins(ctx, username)
	if err != nil {
		return nil, err
	}
	// Once for all devices: a long answer must not cost a query for each.
	secrets, err := r.store.Secrets(ctx, username, r.clock())
	if err != nil {
		return nil, err
	}
	var (
		pinned []string
		fault  *BindingError
		tried  = map[string]bool{}
	)
	for _, device := range devices {
		id, err := identity(device, "device")
		if err != nil {
			return nil, err
		}
		if _, isPinned := pins[id]; isPinned || tried[id] || device["state"] != "active" || device["binding"] == nil {
			continue
		}
		key, k, err := checkBinding(r.policy, device, token, secrets)
		if errors.As(err, &fault) {
			continue // another phone may be right
		}
		if err != nil {
			return nil, err
		}
		isNew, err := r.store.Pin(ctx, username, id, key, k)
		if err != nil {
			return nil, err
		}
		if isNew {
			pinned = append(pinned, id)
		}
		tried[id] = true
		if secrets, err = r.store.Secrets(ctx, username, r.clock()); err != nil {
			return nil, err
		}
	}
	if fault != nil && len(pinned) == 0 {
		return nil, fault
	}
	return pinned, nil
}
