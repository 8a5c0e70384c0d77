package twoefay

import (
	"context"
	"errors"
	"reflect"
	"time"
)

// A store forgets requests and secrets after a day, and ids of webhooks after 30 days.
const (
	requestLife = 24 * time.Hour
	secretLife  = 24 * time.Hour
	eventLife   = 30 * 24 * time.Hour
)

// Store is where a website keeps pinned keys, secrets of open enrolments and open requests. It is
// what makes the relay untrusted, so keep it in the website's own database: see SQLStore.
//
// Each method is atomic, for all processes of the website. Names of users are compared byte by
// byte.
type Store interface {
	// AddUser stores the user's id at the relay; a later one replaces it.
	AddUser(ctx context.Context, username, token string) error
	// Token returns the user's id at the relay, or "".
	Token(ctx context.Context, username string) (string, error)

	// AddSecret stores the k of an open enrolment. A user may have several.
	AddSecret(ctx context.Context, username string, k []byte, now time.Time) error
	// Secrets returns the user's ks of the last day: later a code that somebody kept must not
	// count.
	Secrets(ctx context.Context, username string, now time.Time) ([][]byte, error)

	// Pin pins a key, with all its members, and deletes every k of the user. It returns false, and
	// changes nothing, if this k is not there any more, or if the phone has a key already: a key is
	// never replaced. Of two calls that run at once, one pins.
	Pin(ctx context.Context, username, device string, key JWK, k []byte) (bool, error)
	// Pins returns the pinned keys of this user by device, and of nobody else. Unpinned ones are
	// left out.
	Pins(ctx context.Context, username string) (map[string]JWK, error)
	// WasPinned says whether a phone of this user was ever pinned, even if it was unpinned since.
	WasPinned(ctx context.Context, username string) (bool, error)
	// Unpin revokes a key for ever, but keeps its row: WasPinned must stay true. It deletes every k
	// of the user, too: the phone may have read one, and be pinned later. If the phone was unpinned
	// before, they stay: the relay's webhook may come after a new code.
	Unpin(ctx context.Context, username, device string) error
	// UnpinByToken does the same for the user with this id at the relay, and nothing if there is
	// none.
	UnpinByToken(ctx context.Context, token, device string) error
	// Forget deletes everything about the user, also that a phone was pinned.
	Forget(ctx context.Context, username string) error

	// Open stores the request of a new login.
	Open(ctx context.Context, request string, now time.Time) error
	// Spend removes a request. It returns true only for the one call that removed it.
	Spend(ctx context.Context, request string) (bool, error)

	// HasSeen says whether a webhook with this id was handled.
	HasSeen(ctx context.Context, event string) (bool, error)
	// See stores the id of a webhook that was handled.
	See(ctx context.Context, event string, now time.Time) error
}

// requireStore refuses a store that is missing, also as a nil pointer of a type that is a store.
func requireStore(store Store) error {
	value := reflect.ValueOf(store)
	if store == nil || value.Kind() == reflect.Pointer && value.IsNil() {
		return errors.New("twoefay: a store is missing")
	}
	return nil
}
