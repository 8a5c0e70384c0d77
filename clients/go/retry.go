package twoefay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// patience is how long a call is repeated, counted from the first failure: a request that is held
// may be lost after a minute.
const patience = 3 * time.Second

// call is one request to the relay, with all its repetitions.
type call struct {
	method, path string
	body         []byte
	fields       map[string]string
	// hold is the time for which the relay may hold the request.
	hold time.Duration
}

func newCall(method, path string, body any) (call, error) {
	made := call{method: method, path: path, fields: map[string]string{}}
	if body == nil {
		return made, nil
	}
	data, err := json.Marshal(body)
	if err != nil {
		return call{}, fmt.Errorf("twoefay: %w", err)
	}
	made.body = data
	return made, nil
}

// send sends a call, and repeats it while that may help and the patience lasts.
//
// A repetition has no second effect: a POST keeps its Idempotency-Key, and a deleted object stays
// deleted. 429 is never repeated, since it would sleep in the visitor's request.
func (r *Relay) send(ctx context.Context, c call, statuses ...int) (Object, error) {
	// /auth changes nothing, and takes no key: a stored answer would say `wait` for ever.
	if c.method == http.MethodPost && c.path != "/auth" {
		key, err := r.randomID()
		if err != nil {
			return nil, err
		}
		c.fields["Idempotency-Key"] = key
	}
	var end time.Time
	for next := 100 * time.Millisecond; ; next *= 2 {
		object, err := r.attempt(ctx, c, statuses...)
		if err == nil || !mayPass(err, c.method) {
			return object, err
		}
		if end.IsZero() {
			end = r.clock().Add(patience)
		}
		wait, randomErr := r.spread(next)
		if randomErr != nil {
			return nil, randomErr
		}
		if wish := pauseOf(err); wish > wait {
			wait = wish
		}
		if r.clock().Add(wait).After(end) {
			return nil, err
		}
		if err := r.pause(ctx, wait); err != nil {
			return nil, err
		}
	}
}

func (r *Relay) attempt(ctx context.Context, c call, statuses ...int) (Object, error) {
	answer, err := r.exchange(ctx, c)
	if err != nil {
		return nil, err
	}
	return answer.read(statuses...)
}

// spread lengthens a pause by up to a half, so that clients that failed together come back apart.
func (r *Relay) spread(pause time.Duration) (time.Duration, error) {
	var chance [1]byte
	err := r.random(chance[:])
	return pause + pause*time.Duration(chance[0])/512, err
}

// mayPass says whether the same call may succeed soon, and may be repeated.
func mayPass(err error, method string) bool {
	var (
		refused     *RefusedError
		foreign     *OddAnswerError
		unreachable *UnreachableError
	)
	switch {
	case errors.As(err, &refused):
		// After a conflict with a pause, the first attempt still runs.
		return refused.Code == Unavailable || refused.Code == Conflict && refused.hasPause
	case errors.As(err, &foreign): // a proxy that got no answer from the relay
		isOfProxy := foreign.Status == 502 || foreign.Status == 503 || foreign.Status == 504
		return isOfProxy && method != http.MethodPatch
	case errors.As(err, &unreachable):
		return method != http.MethodPatch // it may have been done, and some must not be done twice
	default:
		return false
	}
}

// Call calls any other route of docs/websites/api.md, with the same retries and errors. The body
// becomes JSON; with nil there is no body. The path begins with "/".
func (r *Relay) Call(ctx context.Context, method, path string, body any) (Object, error) {
	if !strings.HasPrefix(path, "/") { // it would change the host
		return nil, fmt.Errorf("twoefay: the path %q does not begin with /", path)
	}
	// The rules of repetitions know methods in capitals only.
	made, err := newCall(strings.ToUpper(method), path, body)
	if err != nil {
		return nil, err
	}
	return r.send(ctx, made, 200, 201, 202, 204)
}
