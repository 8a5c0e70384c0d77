package twoefay_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"twoefay"
	"twoefay/internal/realrelay"
)

// The whole conversation with a real relay and a real phone.

var background = context.Background()

const browser = "Mozilla/5.0 (X11; Linux x86_64) Firefox/144.0"

func TestMain(m *testing.M) { os.Exit(realrelay.Main(m)) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func enrolled(t *testing.T, real *realrelay.Relay, username string, store twoefay.Store) *twoefay.Relay {
	t.Helper()
	relay := real.Client(t, store)
	made, err := relay.Register(background, username, twoefay.RegisterOptions{})
	ok(t, err)
	real.Enrol(t, made.URI, username)
	if pinned, err := relay.Confirm(background, username); len(pinned) != 1 || err != nil {
		t.Fatal(pinned, err)
	}
	return relay
}

func ask(t *testing.T, relay *twoefay.Relay, username string, options twoefay.AskOptions) twoefay.Login {
	t.Helper()
	login, err := relay.Ask(background, username, options)
	ok(t, err)
	return login
}

func wait(t *testing.T, relay *twoefay.Relay, login twoefay.Login) twoefay.Decision {
	t.Helper()
	decision, err := relay.Wait(background, login, twoefay.UntilDecided)
	ok(t, err)
	return decision
}

func requireReason(t *testing.T, err error, reason string) {
	t.Helper()
	var receipt *twoefay.ReceiptError
	if !errors.As(err, &receipt) || receipt.Reason != reason {
		t.Error(err)
	}
}

func TestLoginIsApprovedOnce(t *testing.T) {
	real, store := realrelay.Shared(t), twoefay.NewMemoryStore()
	relay := real.Client(t, store)
	made, err := relay.Register(background, "anna", twoefay.RegisterOptions{Email: "anna@example.com"})
	ok(t, err)
	if svg, err := made.QR(); err != nil || !strings.HasPrefix(svg, "<svg") {
		t.Error(svg, err)
	}
	if pinned, err := relay.Confirm(background, "anna"); len(pinned) != 0 || err != nil {
		t.Error(pinned, err)
	}
	real.Enrol(t, made.URI, "anna")
	login := ask(t, relay, "anna", twoefay.AskOptions{
		IP: "192.0.2.7", UserAgent: browser, Service: "Payments", Action: "Pay",
		Details: []twoefay.Detail{{Label: "amount", Value: "EUR 40.00"}, {Label: "to", Value: "Café Zoë"}},
	})
	if decision, err := relay.Wait(background, login, 0); decision.State != twoefay.Open || err != nil {
		t.Error(decision, err)
	}
	real.Approve(t, login.Challenge, login.Number, "anna")
	decision := wait(t, relay, login) // it also pins the phone, which was bound since
	if !decision.Approved() || decision.Proof != "signed" || decision.UserVerification != twoefay.NoVerification {
		t.Error(decision)
	}
	isEnrolled, err := relay.IsEnrolled(background, "anna")
	secrets, errSecrets := store.Secrets(background, "anna", time.Now())
	if !isEnrolled || len(secrets) != 0 || err != nil || errSecrets != nil {
		t.Error(isEnrolled, secrets, err, errSecrets)
	}
	_, err = relay.Wait(background, login, 0)
	requireReason(t, err, "request_used")
	factors, err := relay.Factors(background, "anna")
	if err != nil || len(factors) != 2 || factors[0].Kind != "pull" || factors[1].Kind != "mail" {
		t.Error(factors, err)
	}
}

func TestWaitingEndsWithTheAnswer(t *testing.T) {
	real := realrelay.Shared(t)
	relay := enrolled(t, real, "bob", twoefay.NewMemoryStore())
	login := ask(t, relay, "bob", twoefay.AskOptions{})
	decisions := make(chan twoefay.Decision)
	go func() {
		decision, err := relay.Wait(background, login, twoefay.UntilDecided)
		if err != nil {
			t.Error(err)
		}
		decisions <- decision
	}()
	if status := real.Answer(t, "deny", login.Challenge, "", "bob"); status != 0 {
		t.Error(status)
	}
	if decision := <-decisions; decision.State != twoefay.Denied || decision.Reason != "denied" || decision.Approved() {
		t.Error(decision)
	}
}

func TestTwoThatWaitAtOnceLetInOnce(t *testing.T) {
	real := realrelay.Shared(t)
	relay := enrolled(t, real, "twins", twoefay.NewMemoryStore())
	login := ask(t, relay, "twins", twoefay.AskOptions{})
	approved := make(chan bool)
	for i := 0; i < 2; i++ {
		go func() {
			decision, err := relay.Wait(background, login, twoefay.UntilDecided)
			if !decision.Approved() {
				requireReason(t, err, "request_used")
			}
			approved <- decision.Approved()
		}()
	}
	real.Approve(t, login.Challenge, login.Number, "twins")
	if first, second := <-approved, <-approved; first == second {
		t.Error("let in twice, or never:", first)
	}
}

func TestWrongNumberIsDenied(t *testing.T) {
	real := realrelay.Shared(t)
	relay := enrolled(t, real, "cleo", twoefay.NewMemoryStore())
	login := ask(t, relay, "cleo", twoefay.AskOptions{})
	wrong := "11"
	if login.Number == wrong {
		wrong = "12"
	}
	if status := real.Answer(t, "approve", login.Challenge, wrong, "cleo"); status != 1 {
		t.Error(status)
	}
	if decision := wait(t, relay, login); decision.Reason != "wrong_number" {
		t.Error(decision)
	}
}

func TestClientChoosesTheNumberOfThePolicy(t *testing.T) {
	real := realrelay.Shared(t)
	for _, one := range []struct {
		digits string
		least  int
	}{{"2", 0}, {"6", 0}, {"6", 6}, {"0", twoefay.NoNumber}} {
		website := "digits" + one.digits
		if one.least != 6 { // there already
			real.Operate(t, "website", "add", website, "--number", one.digits)
		}
		store := twoefay.NewMemoryStore()
		settings := real.Settings(store, website)
		settings.LeastDigits = one.least
		relay, err := twoefay.New(settings)
		ok(t, err)
		username := "digits" + one.digits + string(rune('b'+one.least))
		made, err := relay.Register(background, username, twoefay.RegisterOptions{})
		ok(t, err)
		real.Enrol(t, made.URI, username)
		login := ask(t, relay, username, twoefay.AskOptions{})
		if len(login.Number) != int(one.digits[0]-'0') {
			t.Error(one, login.Number)
		}
		real.Approve(t, login.Challenge, login.Number, username)
		if !wait(t, relay, login).Approved() {
			t.Error(one)
		}
		relay.Close()
	}
}

func TestTextsOfABrowserRefuseNoLogin(t *testing.T) {
	real := realrelay.Shared(t)
	relay := enrolled(t, real, "dora", twoefay.NewMemoryStore())
	for _, agent := range []string{
		"", "Evil\u202e\u200b\x00/1\u3164", strings.Repeat("x", 9000), "\U000e0100\ufe0f",
		"Ünïcödé 😀", "latin \xe9\xff", strings.Repeat("😀", 600),
	} {
		login := ask(t, relay, "dora", twoefay.AskOptions{IP: "10.0.0.1:5555", UserAgent: agent})
		real.Approve(t, login.Challenge, login.Number, "dora")
		if !wait(t, relay, login).Approved() {
			t.Errorf("%q", agent)
		}
	}
}

func TestRenamedWebsiteStillLetsIn(t *testing.T) {
	real := realrelay.Shared(t)
	relay := enrolled(t, real, "emil", twoefay.NewMemoryStore())
	real.Operate(t, "website", "edit", "shop", "--display-name", "The Better Shop")
	login := ask(t, relay, "emil", twoefay.AskOptions{})
	real.Approve(t, login.Challenge, login.Number, "emil")
	if !wait(t, relay, login).Approved() {
		t.Error("not approved")
	}
}

func TestUserWithoutPinnedPhoneIsNotLetIn(t *testing.T) {
	real, store := realrelay.Shared(t), twoefay.NewMemoryStore()
	relay := enrolled(t, real, "fay", store)
	pins, err := store.Pins(background, "fay")
	ok(t, err)
	for device := range pins {
		ok(t, store.Unpin(background, "fay", device))
	}
	for _, one := range []struct{ trusting, isReset bool }{{false, false}, {true, false}, {true, true}} {
		if one.isReset {
			ok(t, relay.Reset(background, "fay"))
		}
		if isEnrolled, err := relay.IsEnrolled(background, "fay"); isEnrolled == one.isReset || err != nil {
			t.Error(isEnrolled, err)
		}
		settings := real.Settings(store, "shop")
		settings.AllowUnpinned = one.trusting
		relay, err := twoefay.New(settings)
		ok(t, err)
		login := ask(t, relay, "fay", twoefay.AskOptions{})
		real.Approve(t, login.Challenge, login.Number, "fay")
		decision, err := relay.Wait(background, login, twoefay.UntilDecided)
		if one.isReset && !decision.Approved() {
			t.Error(decision, err)
		}
		if !one.isReset {
			requireReason(t, err, "unknown_device")
		}
		relay.Close()
	}
}

func TestFurtherPhoneNeedsAnApproval(t *testing.T) {
	real, store := realrelay.Shared(t), twoefay.NewMemoryStore()
	relay := enrolled(t, real, "gil", store)
	_, err := relay.Enrolment(background, "gil", "")
	var refused *twoefay.RefusedError
	if !errors.Is(err, twoefay.ApprovalRequired) || !errors.As(err, &refused) {
		t.Fatal(err)
	}
	real.Approve(t, refused.Challenge, refused.Number, "gil")
	made, err := relay.Enrolment(background, "gil", refused.Challenge)
	ok(t, err)
	real.Enrol(t, made.URI, "gil2")
	pinned, err := relay.Confirm(background, "gil")
	if len(pinned) != 1 || err != nil {
		t.Fatal(pinned, err)
	}
	ok(t, relay.Unbind(background, "gil", pinned[0]))
	ok(t, relay.Unbind(background, "gil", pinned[0]))
	if pins, err := store.Pins(background, "gil"); len(pins) != 1 || err != nil {
		t.Error(pins, err)
	}
}

func TestRefusalsAreTypes(t *testing.T) {
	relay := realrelay.Shared(t).Client(t, twoefay.NewMemoryStore())
	_, err := relay.Register(background, "hal", twoefay.RegisterOptions{})
	ok(t, err)
	if _, err := relay.Register(background, "hal", twoefay.RegisterOptions{}); !errors.Is(err, twoefay.Conflict) {
		t.Error(err)
	}
	if made, err := relay.Enrolment(background, "hal", ""); made.URI == "" || err != nil {
		t.Error(err)
	}
	if _, err := relay.Factors(background, "nobody"); !errors.Is(err, twoefay.NotFound) {
		t.Error(err)
	}
	_, err = relay.Ask(background, "hal", twoefay.AskOptions{Service: strings.Repeat("x", 65)})
	var refused *twoefay.RefusedError
	if !errors.Is(err, twoefay.Invalid) || !errors.As(err, &refused) || refused.Faults["service"] == "" {
		t.Error(err)
	}
	ok(t, relay.Forget(background, "hal"))
	ok(t, relay.Forget(background, "hal"))
}

func TestCodesCountOnlyIfTheyAreAccepted(t *testing.T) {
	real, store := realrelay.Shared(t), twoefay.NewMemoryStore()
	relay := enrolled(t, real, "ida", store)
	_, err := relay.Call(background, "POST", "/user/ida/recovery-codes", twoefay.Object{})
	var refused *twoefay.RefusedError
	if !errors.As(err, &refused) || refused.Code != twoefay.ApprovalRequired {
		t.Fatal(err)
	}
	real.Approve(t, refused.Challenge, refused.Number, "ida")
	approved := twoefay.Object{"approval": refused.Challenge}
	answer, err := relay.Call(background, "POST", "/user/ida/recovery-codes", approved)
	ok(t, err)
	codes := answer["codes"].([]any)
	_, err = relay.Enter(background, ask(t, relay, "ida", twoefay.AskOptions{}), codes[0].(string))
	requireReason(t, err, "not_signed")
	settings := real.Settings(store, "shop")
	settings.AcceptCodes = true
	trusting, err := twoefay.New(settings)
	ok(t, err)
	defer trusting.Close()
	decision, err := trusting.Enter(background, ask(t, trusting, "ida", twoefay.AskOptions{}), codes[1].(string))
	if !decision.Approved() || decision.Proof != "code" || err != nil {
		t.Error(decision, err)
	}
	login := ask(t, relay, "ida", twoefay.AskOptions{})
	decision, err = relay.Enter(background, login, "aaaa-aaaa-aaaa-aaaa")
	if decision.State != twoefay.Open || err != nil {
		t.Error(decision, err)
	}
	ok(t, relay.Cancel(background, login))
	if decision := wait(t, relay, login); decision.Reason != "cancelled" {
		t.Error(decision)
	}
}

func TestWebhooksArriveAndAreChecked(t *testing.T) {
	real, store := realrelay.Shared(t), twoefay.NewMemoryStore()
	events := make(chan twoefay.Event)
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	real.Operate(t, "website", "add", "news", "--webhook", server.URL+"/twoefay")
	secret, err := os.ReadFile(filepath.Join(real.Directory, "news.secret"))
	ok(t, err)
	inbox, err := twoefay.NewWebhooks([]string{string(secret)}, store)
	ok(t, err)
	mux.Handle("/twoefay", inbox.Handler(func(_ context.Context, event twoefay.Event) error {
		events <- event
		return nil
	}))
	relay, err := twoefay.New(real.Settings(store, "news"))
	ok(t, err)
	defer relay.Close()
	made, err := relay.Register(background, "lea", twoefay.RegisterOptions{})
	ok(t, err)
	real.Enrol(t, made.URI, "lea")
	if event := <-events; event.Type != "device.bound" {
		t.Error(event.Type)
	}
	login := ask(t, relay, "lea", twoefay.AskOptions{})
	real.Approve(t, login.Challenge, login.Number, "lea")
	event := <-events
	if event.Type != "login.decided" || event.ID != login.Challenge {
		t.Error(event.Type, event.ID)
	}
	decision, err := relay.Check(background, login, event.Data) // as Wait would have, and only once
	if !decision.Approved() || err != nil {
		t.Error(decision, err)
	}
	_, err = relay.Wait(background, login, 0)
	requireReason(t, err, "request_used")
	pins, err := store.Pins(background, "lea")
	ok(t, err)
	for device := range pins {
		_, err := relay.Call(background, "DELETE", "/user/lea/devices/"+device, nil)
		ok(t, err)
	}
	if event := <-events; event.Type != "device.unbound" {
		t.Error(event.Type)
	}
	if pins, err := store.Pins(background, "lea"); len(pins) != 0 || err != nil {
		t.Error(pins, err)
	}
}

func TestWaitSurvivesARestart(t *testing.T) {
	real := realrelay.Shared(t)
	relay := enrolled(t, real, "kim", twoefay.NewMemoryStore())
	login := ask(t, relay, "kim", twoefay.AskOptions{})
	real.Stop()
	decisions := make(chan twoefay.Decision)
	go func() {
		decision, err := relay.Wait(background, login, twoefay.UntilDecided)
		if err != nil {
			t.Error(err)
		}
		decisions <- decision
	}()
	real.Start(t)
	real.Approve(t, login.Challenge, login.Number, "kim")
	if !(<-decisions).Approved() {
		t.Error("not approved")
	}
}
