// Package storecheck has the promises that all stores keep, as tests.
package storecheck

import (
	"context"
	"crypto/rand"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"twoefay"
)

var (
	ctx   = context.Background()
	key   = twoefay.JWK{Kty: "EC", Crv: "P-256", X: "x", Y: "y"}
	other = twoefay.JWK{Kty: "EC", Crv: "P-256", X: "z", Y: "y"}
	now   = time.Unix(1_795_334_400, 0)
)

const (
	day        = 24 * time.Hour
	goroutines = 8
)

// Check tests a store. It may hold other rows, but none of an earlier Check that has failed.
func Check(t *testing.T, store twoefay.Store) {
	for name, test := range map[string]func(*testing.T, twoefay.Store){
		"request is spent once":                         requestIsSpentOnce,
		"old requests are deleted":                      oldRequestsAreDeleted,
		"requests open at once":                         requestsOpenAtOnce,
		"pinned key is never replaced":                  pinnedKeyIsNeverReplaced,
		"members of a web phone are kept":               membersOfAWebPhoneAreKept,
		"secret pins one phone":                         secretPinsOnePhone,
		"one of two secrets pins a phone":               oneOfTwoSecretsPins,
		"pin closes all open enrolments":                pinClosesAllOpenEnrolments,
		"users enrol at once":                           usersEnrolAtOnce,
		"old secrets do not count":                      oldSecretsDoNotCount,
		"unpinned phone leaves a trace":                 unpinnedPhoneLeavesATrace,
		"unpin closes open enrolments":                  unpinClosesOpenEnrolments,
		"phone is pinned and unpinned at once":          phoneIsPinnedAndUnpinnedAtOnce,
		"only the user's own phone is unpinned":         onlyTheUsersOwnPhoneIsUnpinned,
		"names are compared exactly":                    namesAreComparedExactly,
		"events are remembered for a month":             eventsAreRemembered,
		"user who is unknown has nothing, and no error": unknownUserHasNothing,
	} {
		t.Run(name, func(t *testing.T) { test(t, store) })
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// yes requires a result of a store.
func yes(t *testing.T) func(bool, error) {
	return expect(t, true)
}

func no(t *testing.T) func(bool, error) {
	return expect(t, false)
}

func expect(t *testing.T, expected bool) func(bool, error) {
	return func(found bool, err error) {
		t.Helper()
		if err != nil || found != expected {
			t.Fatal(found, err)
		}
	}
}

// once runs work in several goroutines at the same time, and returns how often it was true.
func once(t *testing.T, work func(int) (bool, error)) int {
	t.Helper()
	var (
		count   int32
		group   sync.WaitGroup
		barrier = make(chan struct{})
	)
	for i := 0; i < goroutines; i++ {
		i := i
		group.Add(1)
		go func() {
			defer group.Done()
			<-barrier
			done, err := work(i)
			if err != nil {
				t.Error(err)
			}
			if done {
				atomic.AddInt32(&count, 1)
			}
		}()
	}
	close(barrier)
	group.Wait()
	return int(count)
}

// fresh returns the names of users of whom the store knows nothing.
func fresh(t *testing.T, store twoefay.Store, names ...string) {
	forget := func() {
		for _, name := range names {
			ok(t, store.Forget(ctx, name))
		}
	}
	forget()
	t.Cleanup(forget)
}

func pins(t *testing.T, store twoefay.Store, username string, expected map[string]twoefay.JWK) {
	t.Helper()
	found, err := store.Pins(ctx, username)
	if err != nil || len(found) != len(expected) || len(found) > 0 && !reflect.DeepEqual(found, expected) {
		t.Fatal(found, err)
	}
}

func secrets(t *testing.T, store twoefay.Store, username string, at time.Time, count int) {
	t.Helper()
	if found, err := store.Secrets(ctx, username, at); err != nil || len(found) != count {
		t.Fatal(len(found), err)
	}
}

func pin(t *testing.T, store twoefay.Store, username, device string, key twoefay.JWK) (bool, error) {
	k := newSecret(t, store, username)
	return store.Pin(ctx, username, device, key, k)
}

func newSecret(t *testing.T, store twoefay.Store, username string) []byte {
	k := make([]byte, 32)
	if _, err := rand.Read(k); err != nil {
		t.Fatal(err)
	}
	ok(t, store.AddSecret(ctx, username, k, now))
	return k
}

func requestIsSpentOnce(t *testing.T, store twoefay.Store) {
	ok(t, store.Open(ctx, "r1", now))
	spent := once(t, func(int) (bool, error) { return store.Spend(ctx, "r1") })
	if spent != 1 {
		t.Error(spent)
	}
	no(t)(store.Spend(ctx, "r1"))
	no(t)(store.Spend(ctx, "never"))
}

func oldRequestsAreDeleted(t *testing.T, store twoefay.Store) {
	ok(t, store.Open(ctx, "old", now))
	ok(t, store.Open(ctx, "new", now.Add(day+2*time.Second)))
	no(t)(store.Spend(ctx, "old"))
	yes(t)(store.Spend(ctx, "new"))
}

func requestsOpenAtOnce(t *testing.T, store twoefay.Store) {
	opened := once(t, func(i int) (bool, error) {
		for j := 0; j < 10; j++ {
			if err := store.Open(ctx, fmt.Sprintf("at once %d %d", i, j), now); err != nil {
				return false, err
			}
		}
		return store.Spend(ctx, fmt.Sprintf("at once %d 9", i))
	})
	if opened != goroutines {
		t.Error(opened)
	}
}

func pinnedKeyIsNeverReplaced(t *testing.T, store twoefay.Store) {
	fresh(t, store, "ada")
	yes(t)(pin(t, store, "ada", "d1", key))
	no(t)(pin(t, store, "ada", "d1", other))
	pins(t, store, "ada", map[string]twoefay.JWK{"d1": key})
	ok(t, store.Unpin(ctx, "ada", "d1"))
	ok(t, store.Unpin(ctx, "ada", "d1"))
	pins(t, store, "ada", nil)
}

func membersOfAWebPhoneAreKept(t *testing.T, store twoefay.Store) {
	fresh(t, store, "ada")
	coordinate, host := strings.Repeat("x", 43), strings.Repeat("h", 120)
	plain := twoefay.JWK{Kty: "EC", Crv: "P-256", X: coordinate, Y: coordinate}
	longest, short := plain, plain
	longest.App, short.App = "https://"+host, "https://phone.example.com"
	longest.WebAuthn = &twoefay.WebAuthn{RP: host, ID: strings.Repeat("i", 256), JWK: plain}
	yes(t)(pin(t, store, "ada", "d1", longest))
	yes(t)(pin(t, store, "ada", "d2", short))
	yes(t)(pin(t, store, "ada", "d3", plain))
	pins(t, store, "ada", map[string]twoefay.JWK{"d1": longest, "d2": short, "d3": plain})
}

func secretPinsOnePhone(t *testing.T, store twoefay.Store) {
	fresh(t, store, "ada")
	k := newSecret(t, store, "ada")
	pinned := once(t, func(i int) (bool, error) {
		return store.Pin(ctx, "ada", fmt.Sprintf("d%d", i), key, k)
	})
	if found, err := store.Pins(ctx, "ada"); pinned != 1 || len(found) != 1 || err != nil {
		t.Error(pinned, found, err)
	}
}

func oneOfTwoSecretsPins(t *testing.T, store twoefay.Store) {
	fresh(t, store, "ada")
	for round := 0; round < 5; round++ {
		ok(t, store.Forget(ctx, "ada"))
		one, other := newSecret(t, store, "ada"), newSecret(t, store, "ada")
		pinned := once(t, func(i int) (bool, error) {
			k := one
			if i%2 == 1 {
				k = other
			}
			return store.Pin(ctx, "ada", fmt.Sprintf("d%d", i), key, k)
		})
		if found, err := store.Pins(ctx, "ada"); pinned != 1 || len(found) != 1 || err != nil {
			t.Fatal(pinned, found, err)
		}
	}
}

func pinClosesAllOpenEnrolments(t *testing.T, store twoefay.Store) {
	fresh(t, store, "ada", "bob")
	adas, adasOther, bobs := newSecret(t, store, "ada"), newSecret(t, store, "ada"), newSecret(t, store, "bob")
	newSecret(t, store, "bob")
	no(t)(store.Pin(ctx, "ada", "d1", key, bobs))
	yes(t)(store.Pin(ctx, "ada", "d1", key, adas))
	no(t)(store.Pin(ctx, "ada", "d2", key, adasOther))
	secrets(t, store, "ada", now, 0)
	secrets(t, store, "bob", now, 2)
	pins(t, store, "ada", map[string]twoefay.JWK{"d1": key})
	// A key that is there already uses up no secret: the phone that has it is still to come.
	third := newSecret(t, store, "ada")
	no(t)(store.Pin(ctx, "ada", "d1", other, third))
	secrets(t, store, "ada", now, 1)
	pins(t, store, "ada", map[string]twoefay.JWK{"d1": key})
}

// usersEnrolAtOnce finds users who wait for each other: a database may lock more than their rows.
func usersEnrolAtOnce(t *testing.T, store twoefay.Store) {
	enrolled := once(t, func(i int) (bool, error) {
		name := fmt.Sprintf("user %d", i)
		for round := 0; round < 5; round++ {
			k := []byte(fmt.Sprintf("%s, round %d", name, round))
			if err := store.AddUser(ctx, name, name); err != nil {
				return false, err
			}
			if err := store.AddSecret(ctx, name, k, now); err != nil {
				return false, err
			}
			if isPinned, err := store.Pin(ctx, name, "d1", key, k); err != nil || !isPinned {
				return false, err
			}
			if err := store.UnpinByToken(ctx, name, "d1"); err != nil {
				return false, err
			}
			if err := store.Forget(ctx, name); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	if enrolled != goroutines {
		t.Error(enrolled)
	}
}

func oldSecretsDoNotCount(t *testing.T, store twoefay.Store) {
	fresh(t, store, "ada")
	newSecret(t, store, "ada")
	secrets(t, store, "ada", now.Add(day-time.Second), 1)
	secrets(t, store, "ada", now.Add(day), 0)
}

func unpinnedPhoneLeavesATrace(t *testing.T, store twoefay.Store) {
	fresh(t, store, "ada")
	no(t)(store.WasPinned(ctx, "ada"))
	yes(t)(pin(t, store, "ada", "d1", key))
	ok(t, store.Unpin(ctx, "ada", "d1"))
	pins(t, store, "ada", nil)
	yes(t)(store.WasPinned(ctx, "ada"))
	no(t)(store.WasPinned(ctx, "bob"))
	no(t)(pin(t, store, "ada", "d1", other)) // a lost phone never comes back
	pins(t, store, "ada", nil)
	yes(t)(pin(t, store, "ada", "d2", key))
	pins(t, store, "ada", map[string]twoefay.JWK{"d2": key})
	ok(t, store.Forget(ctx, "ada"))
	no(t)(store.WasPinned(ctx, "ada"))
}

// unpinClosesOpenEnrolments is about a phone that has read a code, and is not pinned yet.
func unpinClosesOpenEnrolments(t *testing.T, store twoefay.Store) {
	fresh(t, store, "ada", "bob")
	unpins := map[string]func(device string) error{
		"by name":  func(device string) error { return store.Unpin(ctx, "ada", device) },
		"by token": func(device string) error { return store.UnpinByToken(ctx, "token of ada", device) },
	}
	for name, unpin := range unpins {
		ok(t, store.Forget(ctx, "ada"))
		ok(t, store.AddUser(ctx, "ada", "token of ada"))
		bobs := newSecret(t, store, "bob")
		k := newSecret(t, store, "ada")
		newSecret(t, store, "ada")
		ok(t, unpin("d1"))
		secrets(t, store, "ada", now, 0)
		no(t)(store.Pin(ctx, "ada", "d1", key, k))
		no(t)(store.WasPinned(ctx, "ada"))
		yes(t)(pin(t, store, "ada", "d1", key)) // with a new code
		newSecret(t, store, "ada")
		ok(t, unpin("d1"))
		secrets(t, store, "ada", now, 0)
		// The relay's webhook about this phone may come after the next code.
		newSecret(t, store, "ada")
		ok(t, unpin("d1"))
		secrets(t, store, "ada", now, 1)
		yes(t)(store.Pin(ctx, "bob", name, key, bobs))
	}
}

func phoneIsPinnedAndUnpinnedAtOnce(t *testing.T, store twoefay.Store) {
	fresh(t, store, "ada")
	for round := 0; round < 5; round++ {
		ok(t, store.Forget(ctx, "ada"))
		k := newSecret(t, store, "ada")
		once(t, func(i int) (bool, error) {
			if i%2 == 0 {
				return store.Pin(ctx, "ada", "d1", key, k)
			}
			return true, store.Unpin(ctx, "ada", "d1")
		})
		pins(t, store, "ada", nil)
		secrets(t, store, "ada", now, 0)
	}
}

func onlyTheUsersOwnPhoneIsUnpinned(t *testing.T, store twoefay.Store) {
	fresh(t, store, "ada", "bob")
	for _, name := range []string{"ada", "bob"} {
		ok(t, store.AddUser(ctx, name, "token of "+name))
		yes(t)(pin(t, store, name, "d1", key))
	}
	ok(t, store.Unpin(ctx, "bob", "d1"))
	ok(t, store.UnpinByToken(ctx, "token of nobody", "d1"))
	pins(t, store, "ada", map[string]twoefay.JWK{"d1": key})
	pins(t, store, "bob", nil)
	ok(t, store.UnpinByToken(ctx, "token of ada", "d1"))
	pins(t, store, "ada", nil)
}

func namesAreComparedExactly(t *testing.T, store twoefay.Store) {
	for _, name := range []string{"Ada", "ada ", "áda", "ada\x00"} {
		fresh(t, store, "ada", name)
		ok(t, store.AddUser(ctx, "ada", "t1"))
		yes(t)(pin(t, store, "ada", "d1", key))
		pins(t, store, name, nil)
		token(t, store, name, "")
		ok(t, store.Forget(ctx, name))
		pins(t, store, "ada", map[string]twoefay.JWK{"d1": key})
		token(t, store, "ada", "t1")
		ok(t, store.AddUser(ctx, "ada", "t2"))
		token(t, store, "ada", "t2")
		newSecret(t, store, "ada")
		ok(t, store.Forget(ctx, "ada"))
		unknownUserHasNothing(t, store)
	}
}

func unknownUserHasNothing(t *testing.T, store twoefay.Store) {
	token(t, store, "ada", "")
	pins(t, store, "ada", nil)
	secrets(t, store, "ada", now, 0)
	no(t)(store.WasPinned(ctx, "ada"))
	ok(t, store.Unpin(ctx, "ada", "d1"))
	no(t)(store.WasPinned(ctx, "ada"))
}

func token(t *testing.T, store twoefay.Store, username, expected string) {
	t.Helper()
	if found, err := store.Token(ctx, username); err != nil || found != expected {
		t.Fatal(found, err)
	}
}

func eventsAreRemembered(t *testing.T, store twoefay.Store) {
	no(t)(store.HasSeen(ctx, "e1"))
	seen := once(t, func(int) (bool, error) { return true, store.See(ctx, "e1", now) })
	if seen != goroutines {
		t.Error(seen)
	}
	yes(t)(store.HasSeen(ctx, "e1"))
	ok(t, store.See(ctx, "e2", now.Add(31*day)))
	no(t)(store.HasSeen(ctx, "e1"))
	yes(t)(store.HasSeen(ctx, "e2"))
	ok(t, store.See(ctx, "e3", now.Add(80*day)))
	no(t)(store.HasSeen(ctx, "e2"))
}
