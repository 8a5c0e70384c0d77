package twoefay

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"time"
	"unicode/utf8"
)

// UntilDecided lets Wait wait to the challenge's end, at most ten minutes.
const UntilDecided time.Duration = -1

const longestHold = 60 * time.Second

// AskOptions describe a login. IP, UserAgent and AcceptLanguage may stand as the browser sent them:
// they are cleaned or left out.
type AskOptions struct {
	IP, UserAgent string
	// Service, Action and Details are shown by the phone, and signed.
	Service, Action string
	Details         []Detail
	// Number is for the visitor. Empty: one is chosen.
	Number string
	// Factors and MinAssurance are demands on this login. No Factors are no demand.
	Factors      []string
	MinAssurance Assurance
	// Known says that the browser is known: see KnownBrowsers.
	Known bool
	// ExpiresIn is the life of the challenge. 0: that of the relay's settings.
	ExpiresIn time.Duration
	// AcceptLanguage is the browser's header field, ChosenLanguage what the visitor chose.
	AcceptLanguage, ChosenLanguage string
}

// question is the body of POST /login.
type question struct {
	Sent
	Number       string    `json:"number,omitempty"`
	Factors      []string  `json:"factors,omitempty"`
	MinAssurance Assurance `json:"min_assurance,omitempty"`
	Known        bool      `json:"known,omitempty"`
	ExpiresIn    int       `json:"expires_in,omitempty"`
}

// Ask opens a login, after the right password. Keep the result in the visitor's session.
func (r *Relay) Ask(ctx context.Context, username string, options AskOptions) (Login, error) {
	if options.Factors != nil && len(options.Factors) == 0 {
		// As JSON in a session it would become no demand.
		return Login{}, errors.New("twoefay: an empty list of factors lets nobody in: leave it out")
	}
	request, err := r.randomID()
	if err != nil {
		return Login{}, err
	}
	sent := Sent{
		Username: username, Request: request, Service: options.Service, Action: options.Action,
		Details: options.Details, IP: cleanAddress(options.IP), UserAgent: cleanBrowser(options.UserAgent),
	}
	if !isUTF8(sent) {
		return Login{}, errors.New("twoefay: a text that the phone shows is not UTF-8")
	}
	now := r.clock()
	if err := r.store.Open(ctx, request, now); err != nil {
		return Login{}, err
	}
	answer, err := r.open(ctx, question{
		sent, options.Number, options.Factors, options.MinAssurance, options.Known,
		int(options.ExpiresIn / time.Second),
	}, options)
	if err != nil {
		return Login{}, err
	}
	challenge, err := identity(answer, "challenge")
	if err != nil {
		return Login{}, err
	}
	factor, err := optional(answer, "factor")
	if err != nil {
		return Login{}, err
	}
	return Login{
		Challenge: challenge, Number: textOf(answer["number"]), AskedAt: now.Unix(), Sent: sent,
		Factors: options.Factors, MinAssurance: options.MinAssurance, Factor: factor,
		HasPhone: answer["login"] == "verified", CodesLocked: answer["codes"] == "locked",
		Missing: words(answer, "missing"),
	}, nil
}

// isUTF8 finds texts that JSON would change, so that no receipt could ever match them.
func isUTF8(sent Sent) bool {
	isText := utf8.ValidString(sent.Username) && utf8.ValidString(sent.Service) && utf8.ValidString(sent.Action)
	for _, one := range sent.Details {
		isText = isText && utf8.ValidString(one.Label) && utf8.ValidString(one.Value)
	}
	return isText
}

// State returns the relay's own answer, unchecked: for a page that shows how things stand. It lets
// nobody in. The relay holds its answer for at most this time, until the login ends.
func (r *Relay) State(ctx context.Context, login Login, hold time.Duration) (Object, error) {
	made, err := newCall(http.MethodPost, "/auth", Object{"challenge": login.Challenge})
	if err != nil {
		return nil, err
	}
	if hold > longestHold {
		hold = longestHold
	}
	if seconds := int(hold / time.Second); seconds > 0 {
		made.hold = hold
		made.fields["Prefer"] = fmt.Sprintf("wait=%d", seconds)
	}
	answer, err := r.send(ctx, made, http.StatusOK)
	if err != nil {
		return nil, err
	}
	return answer, requireWord(answer)
}

func requireWord(answer Object) error {
	switch answer["login"] {
	case "success", "failure", "wait":
		return nil
	default:
		return odd("login must be success, failure or wait")
	}
}

// Wait waits for the decision, and checks it. Let the user in only if it is approved.
//
// It waits for this time, 0 for none, and the decision may then be open. With UntilDecided, outages
// and limits end the wait only with the challenge's life. An approval is returned once: a second
// call for the same login returns a ReceiptError.
func (r *Relay) Wait(ctx context.Context, login Login, within time.Duration) (Decision, error) {
	isPatient := within < 0
	if isPatient {
		within = longestLife
	}
	end := r.clock().Add(within)
	for {
		begun := r.clock()
		hold := end.Sub(begun).Truncate(time.Second)
		if hold < 0 {
			hold = 0
		}
		answer, err := r.State(ctx, login, hold)
		if err != nil {
			if err := r.bear(ctx, err, isPatient, end); err != nil {
				return Decision{}, err
			}
			continue
		}
		if answer["login"] != "wait" || !r.clock().Before(end) || hold == 0 {
			return r.Check(ctx, login, answer)
		}
		// A relay that shuts down answers early; a repetition at once would meet it again.
		if r.clock().Sub(begun) < time.Second/2 {
			if err := r.pause(ctx, time.Second/2); err != nil {
				return Decision{}, err
			}
		}
	}
}

// bear pauses after a failure that may pass before the end, and returns all others.
func (r *Relay) bear(ctx context.Context, err error, isPatient bool, end time.Time) error {
	next := pauseOf(err)
	if next == 0 {
		next = 5 * time.Second
	}
	passes := errors.Is(err, Limited) || mayPass(err, http.MethodPost)
	if !passes || !isPatient || r.clock().Add(next).After(end) {
		return err
	}
	return r.pause(ctx, next)
}

// Enter submits a code that the visitor typed. After a wrong one the decision is open. It returns a
// ReceiptError unless the client accepts codes (Settings.AcceptCodes).
func (r *Relay) Enter(ctx context.Context, login Login, code string) (Decision, error) {
	made, err := newCall(http.MethodPost, "/backup", Object{"challenge": login.Challenge, "otp": code})
	if err != nil {
		return Decision{}, err
	}
	answer, err := r.send(ctx, made, http.StatusOK)
	if err != nil {
		return Decision{}, err
	}
	if answer["login"] == "failure" && answer["reason"] == nil {
		return Decision{State: Open, Answer: answer}, nil // a wrong code: the challenge goes on
	}
	return r.Check(ctx, login, answer)
}

// Begin begins a factor now, or sends its code again.
func (r *Relay) Begin(ctx context.Context, login Login, factor string) error {
	challenge, err := segment(login.Challenge)
	if err != nil {
		return err
	}
	made, err := newCall(http.MethodPost, "/challenge/"+challenge+"/factor", Object{"factor": factor})
	if err != nil {
		return err
	}
	_, err = r.send(ctx, made, http.StatusAccepted)
	return err
}

// Cancel cancels a login, for example because the visitor left.
func (r *Relay) Cancel(ctx context.Context, login Login) error {
	challenge, err := segment(login.Challenge)
	if err != nil {
		return err
	}
	made, err := newCall(http.MethodDelete, "/challenge/"+challenge, nil)
	if err != nil {
		return err
	}
	_, err = r.send(ctx, made, http.StatusNoContent)
	return err
}

// Check checks an answer that came another way: the data of the webhook login.decided. It decides
// by the answer, and spends the request of an approval as the last step.
func (r *Relay) Check(ctx context.Context, login Login, answer Object) (Decision, error) {
	if err := requireWord(answer); err != nil {
		return Decision{}, err
	}
	decision := Decision{
		State: Open, Factor: textOf(answer["factor"]), Proof: textOf(answer["proof"]),
		Assurance: Assurance(textOf(answer["assurance"])), Answer: answer,
	}
	switch answer["login"] {
	case "wait":
		return decision, nil
	case "failure":
		decision.State, decision.Reason = Denied, textOf(answer["reason"])
		return decision, nil
	}
	pins, err := r.pinsFor(ctx, login, answer)
	if err != nil {
		return Decision{}, err
	}
	wasPinned, err := r.store.WasPinned(ctx, login.Sent.Username)
	if err != nil {
		return Decision{}, err
	}
	found, err := evidence{r.policy, login, pins, wasPinned, r.clock()}.check(answer)
	if err != nil {
		return Decision{}, err
	}
	isFirst, err := r.store.Spend(ctx, login.Sent.Request)
	if err != nil {
		return Decision{}, err
	}
	if !isFirst {
		return Decision{}, unproved("request_used")
	}
	decision.State, decision.Device = Approved, textOf(answer["device"])
	decision.Assurance, decision.UserVerification = found.assurance, found.verification
	return decision, nil
}

// pinsFor returns the pinned keys. The phone may have been bound since the login began: its binding
// proves its key now as well as then.
func (r *Relay) pinsFor(ctx context.Context, login Login, answer Object) (map[string]JWK, error) {
	username := login.Sent.Username
	pins, err := r.store.Pins(ctx, username)
	if err != nil {
		return nil, err
	}
	if _, isPinned := pins[textOf(answer["device"])]; isPinned || answer["proof"] != "signed" {
		return pins, nil
	}
	secrets, err := r.store.Secrets(ctx, username, r.clock())
	if err != nil || len(secrets) == 0 {
		return pins, err
	}
	if _, err := r.Confirm(ctx, username); err != nil {
		return nil, err
	}
	return r.store.Pins(ctx, username)
}

// open opens the login with a number that the website chose. A relay that chose it could show two
// visitors the same one, and have the user approve the login of the other.
func (r *Relay) open(ctx context.Context, asked question, options AskOptions) (Object, error) {
	if asked.Number != "" || r.policy.leastDigits == 0 {
		return r.post(ctx, asked, options)
	}
	var err error
	if asked.Number, err = r.chooseNumber(larger(2, r.policy.leastDigits)); err != nil {
		return nil, err
	}
	answer, err := r.post(ctx, asked, options)
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Code != Invalid || r.policy.leastDigits == mostDigits ||
		len(refused.Faults) != 1 || refused.Faults["number"] != "length" {
		return answer, err
	}
	// The operator may have raised the number of digits. Only that choice is the relay's.
	if asked.Number, err = r.chooseNumber(mostDigits); err != nil {
		return nil, err
	}
	return r.post(ctx, asked, options)
}

func (r *Relay) chooseNumber(digits int) (string, error) {
	var bytes [16]byte
	if err := r.random(bytes[:]); err != nil {
		return "", err
	}
	// The remainder of 128 random bits favours no number by more than 2^-108.
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
	chosen := new(big.Int).SetBytes(bytes[:])
	return fmt.Sprintf("%0*d", digits, chosen.Mod(chosen, limit)), nil
}

func (r *Relay) post(ctx context.Context, asked question, options AskOptions) (Object, error) {
	made, err := newCall(http.MethodPost, "/login", asked)
	if err != nil {
		return nil, err
	}
	if field := cleanLanguage(options.AcceptLanguage); field != "" {
		made.fields["Accept-Language"] = field
	}
	if field := cleanLanguage(options.ChosenLanguage); field != "" {
		made.fields["Accept-User-Language"] = field
	}
	answer, err := r.send(ctx, made, http.StatusCreated)
	if err != nil {
		return nil, err
	}
	number, err := optional(answer, "number")
	if err != nil {
		return nil, err
	}
	if answer["number"] != nil && !isNumber(number) {
		return nil, odd("the number must have two to six digits")
	}
	// Without a number, no phone can answer.
	if number != "" && asked.Number != "" && number != asked.Number {
		return nil, odd("the number differs from the one that was asked for")
	}
	return answer, nil
}
