package twoefay

import (
	"crypto/hmac"
	"errors"
	"net/http"
	"strings"
)

// Sessions keeps a visitor's login while the phone is asked. Use the website's own sessions if they
// are on the server, and CookieSessions otherwise.
type Sessions interface {
	// Load returns what was saved for this visitor, or nil.
	Load(request *http.Request) ([]byte, error)
	// Save replaces what was saved. Use an id that is new then: what somebody else has put into
	// this browser must not be let in.
	Save(writer http.ResponseWriter, request *http.Request, pending []byte) error
	// Clear removes what was saved.
	Clear(writer http.ResponseWriter, request *http.Request) error
}

const (
	cookieName  = "__Host-twoefay"
	mostCookie  = 4000
	cookieLabel = "twoefay pending login\x00"
)

// CookieSessions keeps a login in a signed cookie, which ends with the login. The visitor can read
// it, but not change it, and it lets in once: the request of a login is spent in the store.
type CookieSessions struct {
	key []byte
}

// NewCookieSessions takes a secret of the website, of at least 32 bytes, the same in all processes.
func NewCookieSessions(key []byte) (*CookieSessions, error) {
	if len(key) < 32 {
		return nil, errors.New("twoefay: the key needs at least 32 bytes")
	}
	return &CookieSessions{key}, nil
}

// Load implements Sessions. It ignores a cookie that the website has not signed.
func (s *CookieSessions) Load(request *http.Request) ([]byte, error) {
	cookie, err := request.Cookie(cookieName)
	if err != nil || len(cookie.Value) > mostCookie {
		return nil, nil
	}
	body, tag, _ := strings.Cut(cookie.Value, ".")
	pending, errBody := decode(body)
	given, errTag := decode(tag)
	if errBody != nil || errTag != nil || !hmac.Equal(given, s.tag(pending)) {
		return nil, nil
	}
	return pending, nil
}

// Save implements Sessions.
func (s *CookieSessions) Save(writer http.ResponseWriter, _ *http.Request, pending []byte) error {
	value := encode(pending) + "." + encode(s.tag(pending))
	if len(value) > mostCookie {
		return errors.New("twoefay: the login is too long for a cookie: keep it on the server")
	}
	http.SetCookie(writer, s.cookie(value, int(longestLife.Seconds())))
	return nil
}

// Clear implements Sessions.
func (s *CookieSessions) Clear(writer http.ResponseWriter, _ *http.Request) error {
	http.SetCookie(writer, s.cookie("", -1))
	return nil
}

// cookie has a name that neither another host nor a page without TLS can set.
func (s *CookieSessions) cookie(value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: maxAge,
		Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

func (s *CookieSessions) tag(pending []byte) []byte {
	return mac(s.key, append([]byte(cookieLabel), pending...))
}
