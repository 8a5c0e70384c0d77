package twoefay

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

var background = context.Background()

var withNumber = AskOptions{Number: "47"}

func TestLostAnswersAreRepeatedUnderOneKey(t *testing.T) {
	relay := newScript(t, loses(), loses(), gateway(502),
		refuses(Unavailable, 503, map[string]string{"retry-after": "1"}), answers(201, aLogin))
	login, err := relay.relay().Ask(background, "ada", withNumber)
	if err != nil || login.Number != "47" {
		t.Fatal(login, err)
	}
	if keys, count := relay.keys(); len(keys) != 1 || count != 5 || !relay.bodiesAreEqual() {
		t.Error("the attempts differ", keys, count)
	}
	pauses := relay.clock.pauses
	for i := 1; i < len(pauses); i++ {
		if pauses[i] < pauses[i-1] {
			t.Error("pauses do not grow", pauses)
		}
	}
	if pauses[3] < time.Second {
		t.Error("the relay's pause is not kept", pauses)
	}
}

func TestCallThatStillRunsIsRepeated(t *testing.T) {
	relay := newScript(t, refuses(Conflict, 409, map[string]string{"retry-after": "1"}), answers(201, aLogin))
	if _, err := relay.relay().Ask(background, "ada", withNumber); err != nil {
		t.Fatal(err)
	}
	if keys, _ := relay.keys(); len(keys) != 1 || relay.clock.slept() != time.Second {
		t.Error(keys, relay.clock.pauses)
	}
}

func TestTwoCallsHaveTwoKeysAndRequests(t *testing.T) {
	relay := newScript(t, answers(201, aLogin), answers(201, aLogin))
	client := relay.relay()
	one := must[Login](t)(client.Ask(background, "ada", withNumber))
	other := must[Login](t)(client.Ask(background, "ada", withNumber))
	if keys, _ := relay.keys(); len(keys) != 2 || one.Sent.Request == other.Sent.Request {
		t.Error(keys)
	}
}

func TestNumberIsChosenHereWithItsZeros(t *testing.T) {
	store, clock := NewMemoryStore(), newClock(now)
	echo := func(sent request) (*http.Response, error) {
		number := object(t, sent.content)["number"].(string)
		return replyJSON(201, strings.Replace(aLogin, "47", number, 1)), nil
	}
	for _, digits := range []int{2, 6} {
		client := fakeRelay(t, Settings{LeastDigits: digits}, store, clock, echo)
		seen := map[string]bool{}
		for i := 0; i < 40; i++ {
			login := must[Login](t)(client.Ask(background, "ada", AskOptions{}))
			if len(login.Number) != digits {
				t.Fatal(login.Number)
			}
			seen[login.Number] = true
		}
		if digits == 6 && len(seen) < 30 {
			t.Error("the numbers repeat", seen)
		}
		client.random = func(bytes []byte) error { return nil }
		login := must[Login](t)(client.Ask(background, "ada", AskOptions{}))
		if login.Number != strings.Repeat("0", digits) {
			t.Error(login.Number)
		}
	}
}

func TestPatienceEnds(t *testing.T) {
	clock := newClock(now)
	lost := func(request) (*http.Response, error) { return nil, errLost }
	_, err := fakeRelay(t, Settings{}, NewMemoryStore(), clock, lost).Ask(background, "ada", withNumber)
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) || !errors.Is(err, errLost) {
		t.Fatal(err)
	}
	if slept := clock.slept(); slept <= 0 || slept > patience {
		t.Error(slept)
	}
}

func TestLongPauseIsToldAndNotSlept(t *testing.T) {
	for _, one := range []struct {
		code  Code
		pause string
	}{{Limited, "1"}, {Limited, "3600"}, {Unavailable, "30"}} {
		relay := newScript(t, refuses(one.code, statusOf[one.code], map[string]string{"retry-after": one.pause}))
		_, err := relay.relay().Ask(background, "ada", withNumber)
		var refused *RefusedError
		if !errors.Is(err, one.code) || !errors.As(err, &refused) || refused.RetryAfter == 0 {
			t.Error(err)
		}
		if len(relay.clock.pauses) != 0 {
			t.Error("slept", relay.clock.pauses)
		}
	}
}

func TestOddPauseIsNone(t *testing.T) {
	for _, wish := range []string{"", "soon", "-1", "1.5", strings.Repeat("9", 40), "\u0661"} {
		relay := newScript(t, refuses(Limited, 429, map[string]string{"retry-after": wish}))
		_, err := relay.relay().Ask(background, "ada", withNumber)
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.RetryAfter != 0 {
			t.Error(wish, err)
		}
	}
}

func TestConflictWithoutPauseIsFinal(t *testing.T) {
	relay := newScript(t, refuses(Conflict, 409, nil))
	if _, err := relay.relay().Register(background, "ada", RegisterOptions{}); !errors.Is(err, Conflict) {
		t.Error(err)
	}
}

func TestPatchIsNotRepeated(t *testing.T) {
	for _, one := range []step{loses(), gateway(502)} {
		relay := newScript(t, one)
		if _, err := relay.relay().Call(background, "PATCH", "/user/ada", Object{}); err == nil {
			t.Error("no error")
		}
	}
}

func TestAuthTakesNoKey(t *testing.T) {
	relay := newScript(t, answers(200, `{"login": "wait"}`), answers(200, aDenial))
	decision, err := relay.relay().Wait(background, askedLogin(), UntilDecided)
	if err != nil || decision.Reason != "denied" || decision.Approved() || !decision.Ended() {
		t.Fatal(decision, err)
	}
	for _, one := range relay.requests {
		if one.Header.Get("Idempotency-Key") != "" || one.Header.Get("Prefer") != "wait=60" {
			t.Error(one.Header)
		}
	}
}

func TestWaitingInAVisitorsRequestDoesNotSleepForALimit(t *testing.T) {
	relay := newScript(t, refuses(Limited, 429, map[string]string{"retry-after": "4"}))
	_, err := relay.relay().Wait(background, askedLogin(), 10*time.Second)
	if !errors.Is(err, Limited) || len(relay.clock.pauses) != 0 {
		t.Error(err, relay.clock.pauses)
	}
}

func TestHeldRequestThatIsLostIsRepeated(t *testing.T) {
	for _, within := range []time.Duration{UntilDecided, 120 * time.Second} {
		for _, fault := range []step{loses(), gateway(504), refuses(Unavailable, 503, nil)} {
			relay := newScript(t, fault.later(58*time.Second), answers(200, aDenial))
			decision, err := relay.relay().Wait(background, askedLogin(), within)
			if err != nil || decision.Reason != "denied" {
				t.Error(decision, err)
			}
		}
	}
}

func TestWaitUntilDecidedSurvivesALongOutage(t *testing.T) {
	for _, fault := range []step{loses(), gateway(504), refuses(Unavailable, 503, nil)} {
		var steps []step
		for i := 0; i < 40; i++ {
			steps = append(steps, fault.later(2*time.Second))
		}
		relay := newScript(t, append(steps, answers(200, aDenial))...)
		decision, err := relay.relay().Wait(background, askedLogin(), UntilDecided)
		if err != nil || decision.Reason != "denied" {
			t.Error(decision, err)
		}
	}
}

func TestWaitUntilDecidedEndsWithTheChallenge(t *testing.T) {
	clock := newClock(now)
	lost := func(request) (*http.Response, error) { return nil, errLost }
	_, err := fakeRelay(t, Settings{}, NewMemoryStore(), clock, lost).Wait(background, askedLogin(), UntilDecided)
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) {
		t.Fatal(err)
	}
	// With the patience of the last call.
	if took := clock.time().Sub(time.Unix(now, 0)); took < 590*time.Second || took > 604*time.Second {
		t.Error(took)
	}
	for _, one := range []step{gateway(404), refuses(NotFound, 404, nil)} {
		if _, err := newScript(t, one).relay().Wait(background, askedLogin(), UntilDecided); err == nil {
			t.Error("no error")
		}
	}
}

func TestContextEndsPausesAndRequests(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	relay := newScript(t, step{0, func() (*http.Response, error) { cancel(); return nil, errLost }})
	if _, err := relay.relay().Ask(ctx, "ada", withNumber); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := pause(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestLostAnswerOfARegistrationLeadsToAnotherCode(t *testing.T) {
	relay := newScript(t, refuses(ShownOnce, 409, nil), answers(200, `{"token": "t", "factors": [], "devices": []}`),
		answers(201, `{"uri": "twoefay://enrol?code=abc", "expires_at": "2026-11-22T08:10:00.000Z"}`))
	client := relay.relay()
	made, err := client.Register(background, "ada", RegisterOptions{Email: "ada@example.com"})
	if err != nil || !strings.HasPrefix(made.URI, "twoefay://enrol?code=abc&k=") {
		t.Fatal(made.URI, err)
	}
	if token, _ := client.store.Token(background, "ada"); token != "t" {
		t.Error(token)
	}
	if keys, _ := relay.keys(); len(keys) != 2 {
		t.Error(keys)
	}
	expected := Object{"username": "ada", "email": "ada@example.com"}
	if sent := object(t, relay.requests[0].content); !reflect.DeepEqual(sent, expected) {
		t.Error(sent)
	}
}

func TestNameThatIsNoSegmentOfAPathIsRefusedHere(t *testing.T) {
	client := newScript(t).relay()
	for _, name := range []string{"", ".", "..", "\xff"} {
		_, errFactors := client.Factors(background, name)
		_, errConfirm := client.Confirm(background, name)
		_, errEnrolment := client.Enrolment(background, name, "")
		_, errRegister := client.Register(background, name, RegisterOptions{})
		for _, err := range []error{errFactors, errConfirm, errEnrolment, errRegister} {
			if err == nil || !strings.Contains(err.Error(), "segment") {
				t.Error(name, err)
			}
		}
	}
}

func TestNameCannotLeadToAnotherRoute(t *testing.T) {
	relay := newScript(t, answers(200, `{"token": "t", "factors": [], "devices": []}`))
	must[[]Factor](t)(relay.relay().Factors(background, "../health?x=%2e&y#z"))
	if path := relay.requests[0].URL.RequestURI(); path != "/user/..%2Fhealth%3Fx=%252e&y%23z" {
		t.Error(path)
	}
}

type endless struct{}

func (endless) Read(into []byte) (int, error) { return len(into), nil }

func TestEndlessAnswerEnds(t *testing.T) {
	count := 0
	answer := func(request) (*http.Response, error) {
		count++
		response := replyJSON(200, "")
		response.Body = io.NopCloser(endless{})
		return response, nil
	}
	_, err := fakeRelay(t, Settings{}, NewMemoryStore(), newClock(now), answer).Factors(background, "ada")
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) || count == 0 {
		t.Error(err)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	elsewhere := map[string]string{"location": "https://login.example.org/login"}
	relay := newScript(t, step{0, func() (*http.Response, error) { return reply(307, elsewhere, ""), nil }})
	_, err := relay.relay().Ask(background, "ada", withNumber)
	var foreign *OddAnswerError
	if !errors.As(err, &foreign) || foreign.Status != 307 {
		t.Error(err)
	}
}

func TestRecordSurvivesASession(t *testing.T) {
	options := AskOptions{Number: "47", IP: "192.0.2.7", Details: []Detail{{"a", "b"}}, Factors: []string{"push"}}
	login := must[Login](t)(newScript(t, answers(201, aLogin)).relay().Ask(background, "ada", options))
	var back Login
	err := json.Unmarshal(must[[]byte](t)(json.Marshal(login)), &back)
	if err != nil || !reflect.DeepEqual(back, login) {
		t.Error(back, err)
	}
	if !login.HasPhone || login.Factor != "push" {
		t.Error(login)
	}
}

func TestLanguagesArePassedOnIfTheyAreShort(t *testing.T) {
	relay := newScript(t, answers(201, aLogin), answers(201, aLogin))
	client := relay.relay()
	options := AskOptions{Number: "47", AcceptLanguage: "de-AT, en;q=0.5", ChosenLanguage: "de"}
	must[Login](t)(client.Ask(background, "ada", options))
	options.AcceptLanguage, options.ChosenLanguage = strings.Repeat("x", 257), "d\u00e9\n"
	must[Login](t)(client.Ask(background, "ada", options))
	first, second := relay.requests[0].Header, relay.requests[1].Header
	if first.Get("Accept-Language") != "de-AT, en;q=0.5" || first.Get("Accept-User-Language") != "de" {
		t.Error(first)
	}
	if second.Get("Accept-Language") != "" || second.Get("Accept-User-Language") != "" {
		t.Error(second)
	}
}

func TestEmptyListOfFactorsIsRefusedHere(t *testing.T) {
	if _, err := newScript(t).relay().Ask(background, "ada", AskOptions{Factors: []string{}}); err == nil {
		t.Error("no error")
	}
}

func TestTextThatNoReceiptCanMatchIsRefusedHere(t *testing.T) {
	for _, options := range []AskOptions{{Service: "\xff"}, {Details: []Detail{{"a", "\xff"}}}} {
		if _, err := newScript(t).relay().Ask(background, "ada", options); err == nil {
			t.Error("no error")
		}
	}
}

func TestWeakSettingsAreRefused(t *testing.T) {
	good := Settings{Origin: "https://login.example.com:8080"}
	for _, change := range []func(*Settings){
		func(s *Settings) { s.Origin = "http://login.example.com:8080" },
		func(s *Settings) { s.Origin = "https://login.example.com:8080/" },
		func(s *Settings) { s.Origin = "https://a@login.example.com" },
		func(s *Settings) { s.Origin = "https://" },
		func(s *Settings) { s.LeastDigits = -2 },
		func(s *Settings) { s.LeastDigits = 7 },
		func(s *Settings) { s.LeastUserVerification = "finger" },
		func(s *Settings) { s.LongestVerificationAge = -1 },
	} {
		changed := good
		change(&changed)
		if _, err := policyOf(changed, "shop"); err == nil {
			t.Errorf("accepted: %+v", changed)
		}
	}
	rules, err := policyOf(good, "shop")
	if err != nil || rules.leastDigits != 2 || rules.audience() != good.Origin+"#shop" {
		t.Error(rules, err)
	}
}

func TestEnrolmentIsNotLogged(t *testing.T) {
	made := Enrolment{Token: "t", URI: "twoefay://enrol?code=secret&k=secret"}
	asJSON := string(must[[]byte](t)(json.Marshal(&made)))
	for _, text := range []string{made.String(), made.GoString(), asJSON} {
		if strings.Contains(text, "secret") {
			t.Error(text)
		}
	}
}

// awayStore is a store whose database is away.
type awayStore struct{ *MemoryStore }

func (awayStore) WasPinned(context.Context, string) (bool, error) {
	return false, errors.New("the database is away")
}

func TestOutageOfTheStoreMeansEnrolled(t *testing.T) {
	client := fakeRelay(t, Settings{}, awayStore{NewMemoryStore()}, newClock(now), nil)
	if isEnrolled, err := client.IsEnrolled(background, "ada"); !isEnrolled || err == nil {
		t.Error(isEnrolled, err)
	}
}

// countingStore counts the questions for secrets.
type countingStore struct {
	*MemoryStore
	count int
}

func (s *countingStore) Secrets(ctx context.Context, username string, now time.Time) ([][]byte, error) {
	s.count++
	return s.MemoryStore.Secrets(ctx, username, now)
}

func TestLongAnswerCostsTheStoreNoMoreThanAShortOne(t *testing.T) {
	device := `{"device": "d", "state": "active", "binding": 0}`
	for _, devices := range []int{1, 1000} {
		store := &countingStore{MemoryStore: NewMemoryStore()}
		_ = store.AddSecret(background, "ada", []byte("k"), time.Unix(now, 0))
		list := strings.Repeat(device+",", devices-1) + device
		client := fakeRelay(t, Settings{}, store, newClock(now),
			newScript(t, answers(200, `{"token": "t", "devices": [`+list+`]}`)).answer)
		_, err := client.Confirm(background, "ada")
		var unproved *BindingError
		if !errors.As(err, &unproved) || store.count != 1 {
			t.Error(devices, store.count, err)
		}
	}
}

func TestMethodMayHaveSmallLetters(t *testing.T) {
	relay := newScript(t, loses(), answers(200, "{}"))
	if _, err := relay.relay().Call(background, "post", "/register", Object{}); err != nil {
		t.Error(err)
	}
	if keys, count := relay.keys(); len(keys) != 1 || count != 2 || relay.requests[0].Method != "POST" {
		t.Error(keys, count, relay.requests)
	}
	var lost *UnreachableError
	if _, err := newScript(t, loses()).relay().Call(background, "patch", "/user/ada", Object{}); !errors.As(err, &lost) {
		t.Error(err)
	}
}

func TestPathCannotChangeTheHost(t *testing.T) {
	for _, path := range []string{"", ".evil.example/x", "@evil.example/", "1/x"} {
		if _, err := newScript(t).relay().Call(background, "GET", path, nil); err == nil {
			t.Error(path)
		}
	}
}
