package twoefay

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// The page, with a scripted relay; the tests of the example site have a real one.

const (
	aSuccess = `{"login": "success", "proof": "code", "factor": "totp", "assurance": "restricted",` +
		` "challenge": "cccccccccccccccccccccccccccccccc"}`
	aForm = "form_token=t"
)

// oneSession is the session of one visitor.
type oneSession struct{ data []byte }

func (s *oneSession) Load(*http.Request) ([]byte, error) { return s.data, nil }

func (s *oneSession) Save(_ http.ResponseWriter, _ *http.Request, data []byte) error {
	s.data = data
	return nil
}

func (s *oneSession) Clear(http.ResponseWriter, *http.Request) error {
	s.data = nil
	return nil
}

// leavingStore is a store that the visitor's end reaches just before the login is spent.
type leavingStore struct {
	*MemoryStore
	leave func()
}

func (s leavingStore) Spend(ctx context.Context, request string) (bool, error) {
	if s.leave(); ctx.Err() != nil {
		return false, ctx.Err()
	}
	return s.MemoryStore.Spend(ctx, request)
}

// visit is one visitor with an open login.
type visit struct {
	ctx     context.Context
	page    *SecondFactor
	session *oneSession
	letIn   []*http.Request
}

func newVisit(t *testing.T, relay *script) *visit {
	t.Helper()
	ctx, leave := context.WithCancel(background)
	t.Cleanup(leave)
	store := leavingStore{NewMemoryStore(), leave}
	_ = store.Open(background, "r", relay.clock.time())
	client := fakeRelay(t, Settings{AcceptCodes: true}, store, relay.clock, relay.answer)
	data := must[[]byte](t)(json.Marshal(pending{askedLogin(), "t"}))
	v := &visit{ctx: ctx, session: &oneSession{data}}
	v.page = NewSecondFactor(client, v.session, func(w http.ResponseWriter, r *http.Request, username string) {
		v.letIn = append(v.letIn, r)
		_, _ = io.WriteString(w, "in")
	})
	v.page.Log = log.New(io.Discard, "", 0)
	return v
}

func (v *visit) send(method, path, form string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, strings.NewReader(form)).WithContext(v.ctx)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	recorder := httptest.NewRecorder()
	v.page.ServeHTTP(recorder, request)
	return recorder
}

func (v *visit) post(form string) *httptest.ResponseRecorder {
	return v.send(http.MethodPost, "/second-factor/", form)
}

func TestVisitorWhoLeavesIsLetInOnceSpent(t *testing.T) {
	for _, form := range []string{aForm, aForm + "&code=" + url.QueryEscape("123 456")} {
		v := newVisit(t, newScript(t, answers(200, aSuccess)))
		answer := v.post(form)
		if answer.Body.String() != "in" || len(v.letIn) != 1 || v.session.data != nil {
			t.Fatal(answer.Code, answer.Body, v.letIn)
		}
		if v.ctx.Err() == nil || v.letIn[0].Context().Err() != nil {
			t.Error("the website's part ends with the visitor")
		}
	}
}

func TestCodeAfterTheDecisionShowsTheDecision(t *testing.T) {
	late := refuses(AlreadyDecided, 409, nil)
	v := newVisit(t, newScript(t, late, answers(200, aSuccess)))
	if answer := v.post(aForm + "&code=123456"); answer.Body.String() != "in" {
		t.Error(answer.Code, answer.Body)
	}
	v = newVisit(t, newScript(t, late, answers(200, aDenial)))
	if answer := v.post(aForm + "&code=123456"); answer.Code != 403 || v.session.data != nil || len(v.letIn) != 0 {
		t.Error(answer.Code, answer.Body)
	}
}

func TestLoginThatTheRelayHasForgottenEnds(t *testing.T) {
	gone := refuses(NotFound, 404, nil)
	v := newVisit(t, newScript(t, gone, gone))
	answer := v.send(http.MethodGet, "/second-factor/state", "")
	if answer.Code != 200 || answer.Body.String() != `{"ended": true}` {
		t.Error(answer.Code, answer.Body)
	}
	answer = v.post(aForm)
	if answer.Code != 403 || v.session.data != nil || strings.Contains(answer.Body.String(), "<form") {
		t.Error(answer.Code, answer.Body)
	}
}

func TestOddSessionLetsNobodyIn(t *testing.T) {
	for data, expected := range map[string]int{"": 303, "{}": 503, "null": 503, "[": 503} {
		v := newVisit(t, newScript(t))
		v.session.data = []byte(data)
		if answer := v.post("form_token="); answer.Code != expected || len(v.letIn) != 0 {
			t.Error(data, answer.Code, answer.Body)
		}
	}
}
