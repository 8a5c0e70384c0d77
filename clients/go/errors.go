package twoefay

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sort"
	"strconv"
	"time"
)

// Error is an error of this package, except for wrong arguments, the store and the context. Let
// nobody in after any error.
type Error interface {
	error
	// Word is the name of the error in all languages of the clients (clients/README.md).
	Word() string
}

// UnreachableError says that the relay gave no answer.
type UnreachableError struct {
	Cause error
}

func (e *UnreachableError) Error() string { return "the relay gave no answer: " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Cause }

// Word returns "unreachable".
func (e *UnreachableError) Word() string { return "unreachable" }

// OddAnswerError says that the answer is not that of a relay: a proxy has answered, or the relay
// lies. Never conclude anything about a user from it.
type OddAnswerError struct {
	What string
	// Status is 0 if the answer itself was in order, but not its content.
	Status int
}

func (e *OddAnswerError) Error() string {
	if e.Status == 0 {
		return e.What
	}
	return fmt.Sprintf("%s (status %d)", e.What, e.Status)
}

// Word returns "odd_answer".
func (e *OddAnswerError) Word() string { return "odd_answer" }

func odd(what string) error { return &OddAnswerError{What: what} }

// ReceiptError says that the relay reports a success that the phone's receipt does not prove: the
// relay may be dishonest. Reason is a stable word.
type ReceiptError struct {
	Reason string
	// Field is the member of the context that differs, if the reason is "field".
	Field string
}

func (e *ReceiptError) Error() string {
	if e.Field == "" {
		return "the receipt proves no login: " + e.Reason
	}
	return "the receipt proves no login: " + e.Reason + ": " + e.Field
}

// Word returns "receipt".
func (e *ReceiptError) Word() string { return "receipt" }

// BindingError says that a phone's key is not proved by a binding under this website's k.
type BindingError struct {
	Reason string
}

func (e *BindingError) Error() string { return "the binding proves no key: " + e.Reason }

// Word returns "binding".
func (e *BindingError) Word() string { return "binding" }

// WebhookError says that a webhook is not from the relay, or too old. Answer 400.
type WebhookError struct {
	Reason string
}

func (e *WebhookError) Error() string { return "not a webhook of the relay: " + e.Reason }

// Word returns "webhook".
func (e *WebhookError) Word() string { return "webhook" }

// Code is the code of a problem. It is a target for errors.Is: errors.Is(err, twoefay.NotFound).
// Problems are told apart by it and never by the status: an unknown route is a 404, too.
type Code string

// The codes of the problems that a website meets; docs/websites/api.md describes them.
const (
	Malformed           Code = "malformed"
	Invalid             Code = "invalid"
	Unauthenticated     Code = "unauthenticated"
	Forbidden           Code = "forbidden"
	ApprovalRequired    Code = "approval_required"
	CodesLocked         Code = "codes_locked"
	NotFound            Code = "not_found"
	RouteNotFound       Code = "route_not_found"
	MethodNotAllowed    Code = "method_not_allowed"
	Conflict            Code = "conflict"
	AlreadyDecided      Code = "already_decided"
	ShownOnce           Code = "shown_once"
	TooLarge            Code = "too_large"
	UnsupportedType     Code = "unsupported_type"
	IdempotencyMismatch Code = "idempotency_mismatch"
	Limited             Code = "limited"
	Internal            Code = "internal"
	Unavailable         Code = "unavailable"
)

func (c Code) Error() string { return string(c) }

// statusOf has the status of each code that this package knows.
var statusOf = map[Code]int{
	Malformed: 400, Invalid: 400, Unauthenticated: 401, Forbidden: 403, ApprovalRequired: 403,
	CodesLocked: 403, NotFound: 404, RouteNotFound: 404, MethodNotAllowed: 405, Conflict: 409,
	AlreadyDecided: 409, ShownOnce: 409, TooLarge: 413, UnsupportedType: 415,
	IdempotencyMismatch: 422, Limited: 429, Internal: 500, Unavailable: 503,
}

// RefusedError is a refusal of the relay, with a problem document.
type RefusedError struct {
	Code   Code
	Status int
	Detail string
	// Faults has the code of its fault for each parameter that is wrong, after Invalid.
	Faults map[string]string
	// RequestID is in the relay's log, too.
	RequestID string
	// RetryAfter is 0 if the relay names no time.
	RetryAfter time.Duration
	// Challenge and Number are set after ApprovalRequired: show the number, wait for the challenge,
	// and call again with it. The number may be empty.
	Challenge, Number string
	// Problem is the whole document.
	Problem Object

	hasPause bool
}

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Detail)
	names := make([]string, 0, len(e.Faults))
	for name := range e.Faults {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		text += fmt.Sprintf(", %s: %s", name, e.Faults[name])
	}
	return fmt.Sprintf("%s (request %s)", text, e.RequestID)
}

// Word returns the code, or "refused" for a code that this package does not know.
func (e *RefusedError) Word() string {
	if _, isKnown := statusOf[e.Code]; isKnown {
		return string(e.Code)
	}
	return "refused"
}

// Is makes errors.Is(err, twoefay.Conflict) possible.
func (e *RefusedError) Is(target error) bool { return target == error(e.Code) }

var (
	isNumber = regexp.MustCompile(`^[0-9]{2,6}$`).MatchString
	// isID knows an id of the relay: of a challenge, a phone, a user or a webhook. It fits in a
	// path and in a column.
	isID    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`).MatchString
	isPause = regexp.MustCompile(`^[0-9]{1,9}$`).MatchString
)

func refusedError(code Code, problem Object, status int, header http.Header) *RefusedError {
	refused := &RefusedError{
		Code: code, Status: status, Detail: textOf(problem["detail"]), Faults: map[string]string{},
		RequestID: header.Get("Request-Id"), Problem: problem,
	}
	faults, _ := problem["errors"].([]any)
	for _, entry := range faults {
		if fault, isObject := entry.(Object); isObject {
			refused.Faults[textOf(fault["parameter"])] = textOf(fault["code"])
		}
	}
	if wish := header.Get("Retry-After"); isPause(wish) {
		seconds, _ := strconv.Atoi(wish)
		refused.RetryAfter, refused.hasPause = time.Duration(seconds)*time.Second, true
	}
	// These stand in a page and in a path, so nothing else than their form is taken.
	if challenge := textOf(problem["challenge"]); code == ApprovalRequired && isID(challenge) {
		refused.Challenge = challenge
	}
	if number := textOf(problem["number"]); code == ApprovalRequired && isNumber(number) {
		refused.Number = number
	}
	return refused
}

// pauseOf returns the time that the relay named in a refusal.
func pauseOf(err error) time.Duration {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused.RetryAfter
	}
	return 0
}
