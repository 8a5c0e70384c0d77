package twoefay

import (
	"bytes"
	"context"
	"crypto/hmac"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log"
	"net"
	"net/http"
	"strings"
	"time"
)

//go:embed waiting.html
var waitingHTML string

var waitingPage = template.Must(template.New("waiting").Parse(waitingHTML))

// SecondFactor is the second factor of a website: a handler with the page on which the visitor
// waits.
//
//	factor := twoefay.NewSecondFactor(relay, sessions, letIn)
//	mux.Handle(factor.Path, factor)
//
// After the right password, call Start. The page shows how the login stands, unchecked, and that
// lets nobody in. Only its POST checks the receipt, so a request of another site cannot let anybody
// in.
type SecondFactor struct {
	// Path is that of the page, with a slash at its end: /second-factor/.
	Path string
	// Home is where a visitor goes who has no open login: /. It must be of the same origin.
	Home string
	// Page replaces the template of the page; waiting.html shows its variables.
	Page *template.Template
	// Log gets the reasons of errors.
	Log *log.Logger

	relay      *Relay
	sessions   Sessions
	onApproved func(http.ResponseWriter, *http.Request, string)
}

// NewSecondFactor makes a handler. onApproved runs with the user's name after the phone has
// approved and the receipt was checked: it begins a new session of the website, and answers.
func NewSecondFactor(
	relay *Relay, sessions Sessions, onApproved func(http.ResponseWriter, *http.Request, string),
) *SecondFactor {
	return &SecondFactor{"/second-factor/", "/", waitingPage, log.Default(), relay, sessions, onApproved}
}

// pending is the login in the visitor's session. The token proves that a form is from this page.
type pending struct {
	Login Login  `json:"login"`
	Token string `json:"token"`
}

// notice is what the visitor is told.
type notice struct {
	message    string
	status     int
	isEnded    bool
	retryAfter time.Duration
}

// staleForm is for a form of another login, and for one that another site has sent.
var staleForm = notice{message: "This page was out of date. Try again.", status: http.StatusForbidden}

// Start asks the user's phone, and sends the visitor to the page. The address, the browser and its
// languages are those of the request, unless the options have others: behind a proxy, set IP.
func (f *SecondFactor) Start(w http.ResponseWriter, r *http.Request, username string, options AskOptions) {
	if options.IP == "" {
		options.IP, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	if options.UserAgent == "" {
		options.UserAgent = r.UserAgent()
	}
	if options.AcceptLanguage == "" {
		options.AcceptLanguage = r.Header.Get("Accept-Language")
	}
	login, err := f.relay.Ask(r.Context(), username, options)
	if err == nil {
		err = f.save(w, r, login)
	}
	if err != nil {
		said := f.explain(err)
		said.isEnded = true // there is no login to go on with
		f.show(w, nil, said)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, f.Path, http.StatusSeeOther)
}

func (f *SecondFactor) save(w http.ResponseWriter, r *http.Request, login Login) error {
	token, err := f.relay.randomID()
	if err != nil {
		return err
	}
	data, err := json.Marshal(pending{login, token})
	if err != nil {
		return err
	}
	return f.sessions.Save(w, r, data)
}

func (f *SecondFactor) load(r *http.Request) (*pending, error) {
	data, err := f.sessions.Load(r)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	var found pending
	if err := json.Unmarshal(data, &found); err != nil {
		return nil, err
	}
	if found.Token == "" {
		return nil, errors.New("twoefay: the session has no login of this page")
	}
	return &found, nil
}

// ServeHTTP serves the page at Path, and its state below.
func (f *SecondFactor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	methods := map[string]string{f.Path: "GET, HEAD, POST", f.Path + "state": "GET, HEAD"}[r.URL.Path]
	switch {
	case methods == "":
		http.NotFound(w, r)
		return
	case !isIn(methods, r.Method):
		w.Header().Set("Allow", methods)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	found, err := f.load(r)
	switch {
	case err != nil:
		f.show(w, nil, f.explain(err))
	case r.URL.Path != f.Path:
		f.state(w, r, found)
	case found == nil:
		// Also the second submission of a form: the first one has let the visitor in.
		http.Redirect(w, r, f.Home, http.StatusSeeOther)
	case r.Method == http.MethodPost:
		f.finish(w, r, found)
	default:
		f.show(w, found, notice{status: http.StatusOK})
	}
}

func isIn(methods, method string) bool {
	for _, one := range strings.Split(methods, ", ") {
		if one == method {
			return true
		}
	}
	return false
}

func (f *SecondFactor) state(w http.ResponseWriter, r *http.Request, found *pending) {
	status, isEnded := http.StatusOK, true
	if found != nil {
		answer, err := f.relay.State(r.Context(), found.Login, 0)
		// A challenge that the relay does not know any more has ended, too: the submission tells.
		isEnded = err == nil && answer["login"] != "wait" || errors.Is(err, NotFound)
		if !isEnded && err != nil {
			status = http.StatusServiceUnavailable
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"ended": %t}`, isEnded)
}

func (f *SecondFactor) finish(w http.ResponseWriter, r *http.Request, found *pending) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
	if r.ParseForm() != nil || !hmac.Equal([]byte(r.PostForm.Get("form_token")), []byte(found.Token)) {
		f.show(w, found, staleForm) // the login stays open: another site must not end it
		return
	}
	code := strings.TrimSpace(r.PostForm.Get("code"))
	decision, err := f.decide(r, found.Login, code)
	r = r.WithContext(lasting{r.Context()})
	var unproved *ReceiptError
	switch {
	case errors.As(err, &unproved) && unproved.Reason == "request_used":
		// The form came twice, and another submission has let the visitor in. This answer changes
		// no session, so it can neither log the visitor out nor in again.
		http.Redirect(w, r, f.Home, http.StatusSeeOther)
	case err != nil:
		f.end(w, r, found, f.explain(err))
	case decision.Approved():
		if err := f.sessions.Clear(w, r); err != nil {
			f.show(w, nil, f.explain(err))
			return
		}
		f.onApproved(w, r, found.Login.Sent.Username)
	case decision.Ended():
		f.end(w, r, found, notice{
			message: "The login was not approved.", status: http.StatusForbidden, isEnded: true,
		})
	case code != "":
		f.show(w, found, notice{message: "This code is wrong.", status: http.StatusOK})
	default:
		f.show(w, found, notice{status: http.StatusOK})
	}
}

func (f *SecondFactor) decide(r *http.Request, login Login, code string) (Decision, error) {
	last := lasting{r.Context()}
	if code != "" {
		decision, err := f.relay.Enter(last, login, code)
		if !errors.Is(err, AlreadyDecided) {
			return decision, err
		} // the phone was faster, or the code came twice: the state says how it ended
	}
	answer, err := f.relay.State(r.Context(), login, 0)
	if err != nil {
		return Decision{}, err
	}
	return f.relay.Check(last, login, answer)
}

// lasting is a context without an end. A visitor who leaves, or submits the form again, ends the
// context of the request. Between the spending of the login and the new session, that would leave a
// login that is used up, with nobody let in.
type lasting struct{ context.Context }

func (lasting) Deadline() (time.Time, bool) { return time.Time{}, false }
func (lasting) Done() <-chan struct{}       { return nil }
func (lasting) Err() error                  { return nil }

// explain returns what the visitor is told of an error. Nobody is let in, and the log has the
// reason.
func (f *SecondFactor) explain(err error) notice {
	var (
		refused  *RefusedError
		receipt  *ReceiptError
		binding  *BindingError
		unproved = errors.As(err, &receipt) || errors.As(err, &binding)
	)
	switch {
	case errors.Is(err, Limited) && errors.As(err, &refused):
		pause := refused.RetryAfter
		if pause == 0 {
			pause = 5 * time.Second
		}
		return notice{
			message: fmt.Sprintf("Too many attempts. Try again in %d seconds.", pause/time.Second),
			status:  http.StatusTooManyRequests, retryAfter: pause,
		}
	case errors.Is(err, CodesLocked):
		return notice{
			message: "No code is accepted at present. Answer on your phone.", status: http.StatusForbidden,
		}
	case errors.Is(err, Invalid):
		return notice{message: "This input was not accepted.", status: http.StatusBadRequest}
	case errors.Is(err, NotFound): // the relay has deleted the challenge, or the user
		f.Log.Printf("twoefay: second factor: %q", err)
		return notice{message: "Log in again.", status: http.StatusForbidden, isEnded: true}
	case unproved:
		f.Log.Printf("twoefay: login refused, the relay's answer is not proved: %q", err)
		return notice{
			message: "The login could not be verified.", status: http.StatusForbidden, isEnded: true,
		}
	default:
		f.Log.Printf("twoefay: second factor: %q", err)
		return notice{
			message: "The second factor cannot be reached at present. Try again.",
			status:  http.StatusServiceUnavailable, retryAfter: 5 * time.Second,
		}
	}
}

// end shows a notice, and clears the session if it is the last.
func (f *SecondFactor) end(w http.ResponseWriter, r *http.Request, found *pending, said notice) {
	if said.isEnded {
		if err := f.sessions.Clear(w, r); err != nil {
			f.Log.Printf("twoefay: session: %q", err)
		}
	}
	f.show(w, found, said)
}

func (f *SecondFactor) show(w http.ResponseWriter, found *pending, said notice) {
	nonce, err := f.relay.randomID()
	if err != nil {
		f.Log.Printf("%v", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	values := map[string]any{
		"Message": said.message, "Ended": said.isEnded || found == nil, "Nonce": nonce,
		"StateURL": f.Path + "state", "Codes": f.relay.policy.acceptCodes, "TokenName": "form_token",
		"Number": "", "Token": "",
	}
	if found != nil {
		values["Number"], values["Token"] = found.Login.Number, found.Token
	}
	var page bytes.Buffer
	if err := f.Page.Execute(&page, values); err != nil {
		f.Log.Printf("twoefay: page: %v", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	header := w.Header()
	// Nothing from elsewhere, and no script but the one with this nonce.
	header.Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+nonce+"'; style-src 'nonce-"+nonce+
		"'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Type", "text/html; charset=utf-8")
	if said.retryAfter > 0 {
		header.Set("Retry-After", fmt.Sprint(int(said.retryAfter/time.Second)))
	}
	w.WriteHeader(said.status)
	_, _ = page.WriteTo(w)
}
