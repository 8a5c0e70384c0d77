package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"html/template"
	"log"
	"net/http"
	"sync"

	"twoefay"
)

// passwords stand for your own check.
var passwords = map[string]string{"ada": "correct horse", "bob": "battery staple", "cleo": "open sesame"}

const help = "No phone of yours counts here at present. Try again, or ask the help desk."

var pages = template.Must(template.New("").Parse(`
{{define "form"}}<!doctype html><title>Shop</title><form method="post" action="/login">
<label>Name <input name="username" autocomplete="username"></label>
<label>Password <input name="password" type="password" autocomplete="current-password"></label>
<button>Log in</button></form>{{end}}
{{define "home"}}<!doctype html><title>Shop</title><p>Welcome, {{.}}</p>{{end}}
{{define "code"}}<!doctype html><title>Shop</title>
<p>Let your phone read this code. Then <a href="/">log in</a> again.</p>
{{.QR}}
<p>On the phone itself: <a id="enrol" href="{{.URI}}">open the app</a></p>{{end}}
`))

// site is a website with a session of its own for each user who is logged in.
type site struct {
	relay  *twoefay.Relay
	store  twoefay.Store
	factor *twoefay.SecondFactor

	mutex    sync.Mutex
	sessions map[string]string
}

func newSite(relay *twoefay.Relay, store twoefay.Store, key []byte) (http.Handler, error) {
	pending, err := twoefay.NewCookieSessions(key)
	if err != nil {
		return nil, err
	}
	s := &site{relay: relay, store: store, sessions: map[string]string{}}
	s.factor = twoefay.NewSecondFactor(relay, pending, s.letIn)
	mux := http.NewServeMux()
	mux.Handle(s.factor.Path, s.factor)
	mux.HandleFunc("/login", s.login)
	mux.HandleFunc("/", s.home)
	return mux, nil
}

// letIn runs after the phone has approved and the receipt was checked.
func (s *site) letIn(w http.ResponseWriter, r *http.Request, username string) {
	var bytes [32]byte
	if _, err := rand.Read(bytes[:]); err != nil {
		http.Error(w, "no session", http.StatusInternalServerError)
		return
	}
	session := base64.RawURLEncoding.EncodeToString(bytes[:])
	s.mutex.Lock()
	s.sessions[session] = username
	s.mutex.Unlock()
	http.SetCookie(w, &http.Cookie{
		Name: "__Host-session", Value: session, Path: "/",
		Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (s *site) user(r *http.Request) string {
	cookie, err := r.Cookie("__Host-session")
	if err != nil {
		return ""
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.sessions[cookie.Value]
}

func (s *site) home(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	if user := s.user(r); user != "" {
		show(w, "home", user)
		return
	}
	show(w, "form", nil)
}

func show(w http.ResponseWriter, name string, value any) {
	w.Header().Set("Cache-Control", "no-store")
	if err := pages.ExecuteTemplate(w, name, value); err != nil {
		log.Print(err)
	}
}

func (s *site) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
	username, password := r.PostFormValue("username"), r.PostFormValue("password")
	if password == "" || subtle.ConstantTimeCompare([]byte(passwords[username]), []byte(password)) != 1 {
		http.Error(w, "Wrong name or password", http.StatusForbidden)
		return
	}
	code, err := s.firstCode(r.Context(), username)
	if err != nil {
		log.Printf("a phone cannot be bound: %q", err)
		http.Error(w, help, http.StatusForbidden)
		return
	}
	if code == nil {
		s.factor.Start(w, r, username, twoefay.AskOptions{Service: "Shop"})
		return
	}
	svg, err := code.QR()
	if err != nil {
		log.Print(err)
		http.Error(w, help, http.StatusForbidden)
		return
	}
	show(w, "code", map[string]any{"QR": template.HTML(svg), "URI": template.URL(code.URI)})
}

// firstCode returns the code for a user's first phone; nil if the user has a phone.
//
// It makes none for a user who had a phone: otherwise, who has only the password would get a code.
func (s *site) firstCode(ctx context.Context, username string) (*twoefay.Enrolment, error) {
	isEnrolled, err := s.relay.IsEnrolled(ctx, username)
	if err != nil {
		return nil, err
	}
	if isEnrolled {
		return nil, s.requirePhone(ctx, username)
	}
	code, err := s.relay.Register(ctx, username, twoefay.RegisterOptions{})
	if !errors.Is(err, twoefay.Conflict) {
		return &code, err
	}
	if pinned, err := s.relay.Confirm(ctx, username); err != nil || len(pinned) > 0 {
		return nil, err
	}
	code, err = s.relay.Enrolment(ctx, username, "")
	return &code, err
}

// requirePhone looks for a phone that counts, also for one that the help desk has let the user
// bind.
func (s *site) requirePhone(ctx context.Context, username string) error {
	pins, err := s.store.Pins(ctx, username)
	if err != nil || len(pins) > 0 {
		return err
	}
	pinned, err := s.relay.Confirm(ctx, username)
	if err == nil && len(pinned) == 0 {
		err = errors.New("the user has no phone any more")
	}
	return err
}
