package twoefay

import (
	"context"
	"errors"
	"net/http"
)

// Factor is a factor of a user: push, pull, totp, hotp, sms, mail, recovery or operator.
type Factor struct {
	Kind, State string
	// Address is masked. Address and Device are empty where they do not apply.
	Address, Device string
}

// IsEnrolled says whether a phone of the user was ever pinned, by the website's own store.
//
// Decide by this whether a user needs the second factor. The relay is not asked: neither a 404 nor
// the unbinding of a phone makes this false, only Forget and Reset do. With AcceptCodes or
// AllowUnpinned it is not enough, since it is false for a user who has only codes, or only a phone
// that was never pinned: keep a mark of your own for such users.
//
// After an error of the store it is true, so that nobody is let in without a phone by mistake.
func (r *Relay) IsEnrolled(ctx context.Context, username string) (bool, error) {
	wasPinned, err := r.store.WasPinned(ctx, username)
	return wasPinned || err != nil, err
}

// User returns the whole answer of GET /user/{username}, unchecked.
func (r *Relay) User(ctx context.Context, username string) (Object, error) {
	name, err := segment(username)
	if err != nil {
		return nil, err
	}
	made, err := newCall(http.MethodGet, "/user/"+name, nil)
	if err != nil {
		return nil, err
	}
	return r.send(ctx, made, http.StatusOK)
}

// Factors returns the user's factors, as the relay says. The error is a NotFound for an unknown
// user.
func (r *Relay) Factors(ctx context.Context, username string) ([]Factor, error) {
	user, err := r.User(ctx, username)
	if err != nil {
		return nil, err
	}
	entries, err := objects(user, "factors")
	if err != nil {
		return nil, err
	}
	factors := make([]Factor, len(entries))
	for i, entry := range entries {
		kind, errKind := text(entry, "kind")
		state, errState := text(entry, "state")
		address, errAddress := optional(entry, "address")
		device, errDevice := optional(entry, "device")
		for _, err := range []error{errKind, errState, errAddress, errDevice} {
			if err != nil {
				return nil, err
			}
		}
		factors[i] = Factor{kind, state, address, device}
	}
	return factors, nil
}

// Unbind unpins and unbinds a phone, for example a lost one. The user stays enrolled.
func (r *Relay) Unbind(ctx context.Context, username, device string) error {
	name, err := segment(username)
	if err != nil {
		return err
	}
	phone, err := segment(device)
	if err != nil {
		return err
	}
	// First here: the phone must not count even if the relay cannot be reached.
	if err := r.store.Unpin(ctx, username, device); err != nil {
		return err
	}
	return r.delete(ctx, "/user/"+name+"/devices/"+phone)
}

// Forget deletes the user, at the relay and in the store.
func (r *Relay) Forget(ctx context.Context, username string) error {
	name, err := segment(username)
	if err != nil {
		return err
	}
	if err := r.delete(ctx, "/user/"+name); err != nil {
		return err
	}
	return r.store.Forget(ctx, username)
}

// Reset forgets in the store that the user ever had a phone, so that the password alone suffices to
// bind a first one. It is for a help desk that has identified the user.
func (r *Relay) Reset(ctx context.Context, username string) error {
	return r.store.Forget(ctx, username)
}

func (r *Relay) delete(ctx context.Context, path string) error {
	made, err := newCall(http.MethodDelete, path, nil)
	if err != nil {
		return err
	}
	_, err = r.send(ctx, made, http.StatusNoContent)
	if errors.Is(err, NotFound) {
		return nil // deleted before, or by an attempt whose answer was lost
	}
	return err
}
