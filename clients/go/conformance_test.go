package twoefay

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The cases of clients/conformance, which all languages run: good relays and lying ones.

type caseAnswer struct {
	Status  int
	Headers map[string]string
	Body    string
}

type caseUser struct {
	Token  *string
	K      []string
	Pinned map[string]JWK
}

type conformanceCase struct {
	Name, Call string
	Website    json.RawMessage
	Clock      int64
	Given      json.RawMessage
	Answer     *caseAnswer
	Answers    []*caseAnswer
	Expected   Object
}

// caseGiven has the members of all calls. K is a list or one text.
type caseGiven struct {
	Username, Token, Approval, Code, Device string
	K                                       json.RawMessage
	Pinned                                  map[string]JWK
	Others                                  map[string]caseUser
	Login                                   Login
	Open                                    bool
	Secrets                                 []string
	Headers                                 map[string]string
	Body                                    string
}

type run struct {
	t        *testing.T
	given    caseGiven
	one      conformanceCase
	clock    *fakeClock
	store    *MemoryStore
	relay    *Relay
	requests []request
	// unusable is the error of settings with which no client can be made.
	unusable error
}

func TestConformance(t *testing.T) {
	file := os.Getenv("TWOEFAY_CASES")
	if file == "" {
		file = "../conformance/cases.json"
	}
	var document struct {
		Defaults json.RawMessage
		Cases    []conformanceCase
	}
	data := must[[]byte](t)(os.ReadFile(file))
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	for _, one := range document.Cases {
		one := one
		t.Run(one.Name, func(t *testing.T) { newRun(t, document.Defaults, one).compare() })
	}
	if len(document.Cases) < 1135 {
		t.Error("cases are missing")
	}
}

func newRun(t *testing.T, defaults json.RawMessage, one conformanceCase) *run {
	var settings caseSettings
	made := &run{t: t, one: one, clock: newClock(one.Clock), store: NewMemoryStore()}
	for _, part := range []struct {
		data json.RawMessage
		into any
	}{{defaults, &settings}, {one.Website, &settings}, {one.Given, &made.given}} {
		if err := json.Unmarshal(part.data, part.into); err != nil {
			t.Fatal(err)
		}
	}
	if _, made.unusable = policyOf(settings.settings(), settings.Name); made.unusable != nil {
		return made
	}
	made.relay = fakeRelay(t, settings.settings(), made.store, made.clock, made.answer)
	made.relay.policy.website = settings.Name
	if keys := made.keys(); len(keys) == 1 && (one.Call == "register" || one.Call == "enrolment") {
		// Only k is chosen by the case: keys of requests must differ all the same.
		made.relay.random = func(into []byte) error {
			if len(into) == 32 {
				copy(into, keys[0])
				return nil
			}
			return random(into)
		}
	}
	return made
}

// keys returns the ks of a case.
func (r *run) keys() [][]byte {
	var texts []string
	if len(r.given.K) > 0 && json.Unmarshal(r.given.K, &texts) != nil {
		texts = []string{""}
		if err := json.Unmarshal(r.given.K, &texts[0]); err != nil {
			r.t.Fatal(err)
		}
	}
	var found [][]byte
	for _, one := range texts {
		found = append(found, must[[]byte](r.t)(decode(one)))
	}
	return found
}

func (r *run) answer(sent request) (*http.Response, error) {
	r.requests = append(r.requests, sent)
	answer := r.one.Answer
	if answer == nil {
		if len(r.requests) > len(r.one.Answers) {
			r.t.Fatal("one request too many")
		}
		answer = r.one.Answers[len(r.requests)-1]
	}
	if answer == nil {
		return nil, errLost
	}
	number := ""
	if len(sent.content) > 0 {
		number = textOf(object(r.t, sent.content)["number"])
	}
	return reply(answer.Status, answer.Headers, strings.ReplaceAll(answer.Body, "{number}", number)), nil
}

// MARK: The store

func (r *run) keep(username string, token string, keys [][]byte, pinned map[string]JWK) {
	at := r.clock.time()
	for device, key := range pinned {
		_ = r.store.AddSecret(background, username, nil, at)
		if isPinned, _ := r.store.Pin(background, username, device, key, nil); !isPinned {
			r.t.Fatal("not pinned")
		}
	}
	if token != "" {
		_ = r.store.AddUser(background, username, token)
	}
	for _, k := range keys {
		_ = r.store.AddSecret(background, username, k, at)
	}
}

func (r *run) keepAll(username string, keys [][]byte) {
	for other, known := range r.given.Others {
		var open [][]byte
		for _, k := range known.K {
			open = append(open, must[[]byte](r.t)(decode(k)))
		}
		token := ""
		if known.Token != nil {
			token = *known.Token
		}
		r.keep(other, token, open, known.Pinned)
	}
	r.keep(username, r.given.Token, keys, r.given.Pinned)
}

func (r *run) requireOthersAsBefore() {
	for other, known := range r.given.Others {
		pins, _ := r.store.Pins(background, other)
		secrets, _ := r.store.Secrets(background, other, r.clock.time())
		if len(pins) != len(known.Pinned) || len(pins) > 0 && !reflect.DeepEqual(pins, known.Pinned) ||
			len(secrets) != len(known.K) {
			r.t.Error("another user has changed", other)
		}
	}
}

// MARK: Calls

func (r *run) outcome() Object {
	calls := map[string]func() (Object, error){
		"decide": func() (Object, error) {
			return r.decide(func() (Decision, error) { return r.relay.Wait(background, r.given.Login, 0) })
		},
		"enter": func() (Object, error) {
			return r.decide(func() (Decision, error) { return r.relay.Enter(background, r.given.Login, r.given.Code) })
		},
		"confirm": r.confirm, "ask": r.ask, "register": r.register, "enrolment": r.enrolment,
		"unbind": r.unbind, "factors": r.factors, "webhook": r.webhook,
	}
	call, isKnown := calls[r.one.Call]
	if !isKnown {
		r.t.Fatal("unknown call", r.one.Call)
	}
	if r.unusable != nil {
		return failure(r.unusable)
	}
	outcome, err := call()
	if err != nil {
		return failure(err)
	}
	return outcome
}

func failure(err error) Object {
	var (
		receipt *ReceiptError
		binding *BindingError
		webhook *WebhookError
		refused *RefusedError
		other   Error
	)
	switch {
	case errors.As(err, &receipt):
		return Object{"outcome": "refused", "error": receipt.Word(), "reason": receipt.Reason, "field": receipt.Field}
	case errors.As(err, &binding):
		return Object{"outcome": "refused", "error": binding.Word(), "reason": binding.Reason}
	case errors.As(err, &webhook):
		return Object{"outcome": "refused", "error": webhook.Word(), "reason": webhook.Reason}
	case errors.As(err, &refused):
		found := Object{
			"outcome": "error", "error": refused.Word(), "code": string(refused.Code), "challenge": refused.Challenge,
		}
		if refused.Number != "" {
			found["number"] = refused.Number
		}
		if refused.hasPause {
			found["retry_after"] = refused.RetryAfter.Seconds()
		}
		return found
	case errors.As(err, &other):
		return Object{"outcome": "error", "error": other.Word()}
	default:
		return Object{"outcome": "unusable", "why": err.Error()}
	}
}

func (r *run) decide(call func() (Decision, error)) (Object, error) {
	login := r.given.Login
	var keys [][]byte
	if len(r.given.K) > 0 {
		keys = r.keys()
	}
	r.keepAll("ada", keys)
	if r.given.Open {
		_ = r.store.Open(background, login.Sent.Request, time.Unix(login.AskedAt, 0))
	}
	decision, err := call()
	// A login lets in once: the request is spent exactly if the decision is an approval.
	isOpen, _ := r.store.Spend(background, login.Sent.Request)
	if isOpen != (r.given.Open && !decision.Approved()) {
		r.t.Error("the request was spent, or was not")
	}
	r.requireOthersAsBefore()
	if err != nil {
		return nil, err
	}
	found := Object{"outcome": string(decision.State), "reason": decision.Reason}
	if decision.Approved() {
		found["device"], found["proof"] = decision.Device, decision.Proof
		for name, value := range map[string]string{
			"assurance": string(decision.Assurance), "user_verification": string(decision.UserVerification),
		} {
			if found[name] = nil; value != "" {
				found[name] = value
			}
		}
	}
	return found, nil
}

func (r *run) pinned(username string) any {
	pins := must[map[string]JWK](r.t)(r.store.Pins(background, username))
	return object(r.t, must[[]byte](r.t)(json.Marshal(pins)))
}

func (r *run) confirm() (Object, error) {
	r.keepAll(r.given.Username, r.keys())
	_, err := r.relay.Confirm(background, r.given.Username)
	r.requireOthersAsBefore()
	return Object{"outcome": "pinned", "pinned": r.pinned(r.given.Username)}, err
}

func (r *run) ask() (Object, error) {
	var given struct {
		Username, IP, Service, Action, Number string
		UserAgent                             string `json:"user_agent"`
		Details                               []Detail
		Factors                               []string
		MinAssurance                          Assurance `json:"min_assurance"`
		Known                                 bool
		ExpiresIn                             int    `json:"expires_in"`
		AcceptLanguage                        string `json:"accept_language"`
		ChosenLanguage                        string `json:"chosen_language"`
	}
	reader := json.NewDecoder(bytes.NewReader(r.one.Given))
	reader.DisallowUnknownFields()
	if err := reader.Decode(&given); err != nil {
		r.t.Fatal(err)
	}
	login, err := r.relay.Ask(background, given.Username, AskOptions{
		IP: given.IP, UserAgent: given.UserAgent, Service: given.Service, Action: given.Action,
		Details: given.Details, Number: given.Number, Factors: given.Factors,
		MinAssurance: given.MinAssurance, Known: given.Known,
		ExpiresIn:      time.Duration(given.ExpiresIn) * time.Second,
		AcceptLanguage: given.AcceptLanguage, ChosenLanguage: given.ChosenLanguage,
	})
	if err != nil {
		return nil, err
	}
	sent := object(r.t, r.requests[len(r.requests)-1].content)
	if len(textOf(sent["request"])) != 32 || sent["request"] != login.Sent.Request {
		r.t.Error("no request", sent)
	}
	for name, value := range object(r.t, must[[]byte](r.t)(json.Marshal(login.Sent))) {
		if !reflect.DeepEqual(sent[name], value) {
			r.t.Error("the record differs", name)
		}
	}
	delete(sent, "request")
	found := Object{"outcome": "asked", "sends": sent}
	if login.Number != "" {
		found["number"] = login.Number
	}
	return found, nil
}

func (r *run) register() (Object, error) {
	made, err := r.relay.Register(background, r.given.Username, RegisterOptions{})
	return r.enrolled(made), err
}

func (r *run) enrolment() (Object, error) {
	r.keep(r.given.Username, r.given.Token, nil, nil)
	made, err := r.relay.Enrolment(background, r.given.Username, r.given.Approval)
	return r.enrolled(made), err
}

func (r *run) enrolled(made Enrolment) Object {
	secrets, _ := r.store.Secrets(background, r.given.Username, r.clock.time())
	if (made.URI == "") != (len(secrets) == 0) {
		r.t.Error("k was kept, or was not")
	}
	for _, one := range r.requests {
		for _, k := range r.keys() {
			if strings.Contains(string(one.content), encode(k)) {
				r.t.Error("k was sent")
			}
		}
	}
	found := Object{"outcome": "enrolment"}
	for name, value := range map[string]string{"uri": made.URI, "sent_to": made.SentTo, "awaits": made.Awaits} {
		if value != "" {
			found[name] = value
		}
	}
	return found
}

func (r *run) unbind() (Object, error) {
	r.keepAll(r.given.Username, nil)
	found := Object{"outcome": "done"}
	if err := r.relay.Unbind(background, r.given.Username, r.given.Device); err != nil {
		found = failure(err)
	}
	r.requireOthersAsBefore()
	found["pinned"] = r.pinned(r.given.Username)
	found["enrolled"] = must[bool](r.t)(r.relay.IsEnrolled(background, r.given.Username))
	return found, nil
}

func (r *run) factors() (Object, error) {
	factors, err := r.relay.Factors(background, r.given.Username)
	kinds := []any{}
	for _, one := range factors {
		kinds = append(kinds, one.Kind)
	}
	return Object{"outcome": "factors", "kinds": kinds}, err
}

func (r *run) webhook() (Object, error) {
	inbox, err := NewWebhooks(r.given.Secrets, r.store)
	if err != nil {
		return nil, err
	}
	inbox.clock = r.clock.time
	header := http.Header{}
	for name, value := range r.given.Headers {
		header.Set(name, value)
	}
	event, err := inbox.Verify(header, []byte(r.given.Body))
	return Object{"outcome": "event", "type": event.Type, "id": event.ID}, err
}

// MARK: The comparison

func (r *run) compare() {
	outcome := r.outcome()
	for name, value := range r.one.Expected {
		if name == "requests" {
			if sent := r.sent(); !matches(value, sent) {
				r.t.Errorf("sent %v, not %v", sent, value)
			}
		} else if !matches(value, outcome[name]) {
			r.t.Errorf("%s is %v, not %v: %v", name, outcome[name], value, outcome)
		}
	}
}

// sent returns the requests, with their keys numbered by first use.
func (r *run) sent() any {
	numbers, contents := map[string]float64{}, map[string][]byte{}
	sent := []any{}
	for _, one := range r.requests {
		entry := Object{"method": one.Method, "path": one.URL.RequestURI(), "body": nil, "key": nil}
		if len(one.content) > 0 {
			body := object(r.t, one.content)
			if one.URL.Path == "/login" {
				delete(body, "request")
			}
			entry["body"] = any(body)
		}
		if key := one.Header.Get("Idempotency-Key"); key != "" {
			if _, isThere := numbers[key]; !isThere {
				numbers[key], contents[key] = float64(len(numbers)+1), one.content
			}
			if !bytes.Equal(contents[key], one.content) {
				r.t.Error("one key, two bodies")
			}
			entry["key"] = numbers[key]
		}
		sent = append(sent, entry)
	}
	return sent
}
