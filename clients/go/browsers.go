package twoefay

import (
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"time"
)

// KnownBrowserLife is how long a cookie of KnownBrowsers counts. Use it as the cookie's MaxAge.
const KnownBrowserLife = 180 * 24 * time.Hour

// KnownBrowsers makes and checks a cookie that keeps an attacker who has a password from disturbing
// the owner's logins.
//
// It lets nobody in and is not a second factor. It only decides which logins share a limit. The
// form is that of the other clients, so that all servers of a website accept it.
type KnownBrowsers struct {
	key    []byte
	clock  func() time.Time
	random func([]byte) error
}

// NewKnownBrowsers takes a secret of the website, of at least 32 bytes.
func NewKnownBrowsers(key []byte) (*KnownBrowsers, error) {
	if len(key) < 32 {
		return nil, errors.New("twoefay: the key needs at least 32 bytes")
	}
	return &KnownBrowsers{key, time.Now, random}, nil
}

// Value returns the value of a cookie for this user. Set it with HttpOnly, Secure, SameSite=Lax and
// a MaxAge of KnownBrowserLife, after a login whose proof was checked.
func (b *KnownBrowsers) Value(username string) (string, error) {
	body := make([]byte, 20)
	binary.BigEndian.PutUint64(body, uint64(b.clock().Unix()))
	if err := b.random(body[8:]); err != nil {
		return "", err
	}
	return encode(append(body, b.tag(body, username)...)), nil
}

// Knows says whether the cookie was made for this user, and not before a time, such as that of the
// last change of the password. Pass the result as AskOptions.Known.
func (b *KnownBrowsers) Knows(value, username string, notBefore time.Time) bool {
	if len(value) > 100 {
		return false
	}
	data, err := decode(value)
	if err != nil || len(data) != 52 || !hmac.Equal(data[20:], b.tag(data[:20], username)) {
		return false
	}
	made := time.Unix(int64(binary.BigEndian.Uint64(data)), 0)
	now := b.clock()
	return !made.After(now.Add(time.Minute)) && now.Before(made.Add(KnownBrowserLife)) && !made.Before(notBefore)
}

func (b *KnownBrowsers) tag(body []byte, username string) []byte {
	message := append([]byte("twoefay known browser\x00"), body...)
	return mac(b.key, append(message, username...))
}
