package twoefay

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"
)

func browsersAt(t *testing.T, first byte, seconds int64) *KnownBrowsers {
	key := make([]byte, 32)
	for i := range key {
		key[i] = first + byte(i)
	}
	made := must[*KnownBrowsers](t)(NewKnownBrowsers(key))
	made.clock = func() time.Time { return time.Unix(seconds, 0) }
	return made
}

func TestCookieIsForOneUserAndHalfAYear(t *testing.T) {
	value := must[string](t)(browsersAt(t, 0, now).Value("ada"))
	never := time.Time{}
	for _, one := range []struct {
		seconds   int64
		username  string
		notBefore time.Time
		expected  bool
	}{
		{now, "ada", never, true}, {now - 60, "ada", never, true}, {now - 61, "ada", never, false},
		{now + 180*86_400 - 1, "ada", never, true}, {now + 180*86_400, "ada", never, false},
		{now, "bob", never, false}, {now, "ada", time.Unix(now+1, 0), false}, {now, "ada", time.Unix(now, 0), true},
	} {
		if browsersAt(t, 0, one.seconds).Knows(value, one.username, one.notBefore) != one.expected {
			t.Error(one)
		}
	}
	if browsersAt(t, 1, now).Knows(value, "ada", never) {
		t.Error("another key")
	}
}

func TestOtherTextsAreNoCookies(t *testing.T) {
	for _, value := range []string{
		"", "x", "é", strings.Repeat("A", 70), strings.Repeat("=", 70), strings.Repeat("A", 1<<20),
	} {
		if browsersAt(t, 0, now).Knows(value, "ada", time.Time{}) {
			t.Error(value)
		}
	}
	if _, err := NewKnownBrowsers(make([]byte, 31)); err == nil {
		t.Error("short key")
	}
}

func TestFormIsThatOfTheOtherClients(t *testing.T) {
	browsers := browsersAt(t, 0, now)
	body := make([]byte, 20)
	binary.BigEndian.PutUint64(body, now)
	tag := mac(browsers.key, []byte("twoefay known browser\x00"+string(body)+"ada"))
	if !browsers.Knows(encode(append(body, tag...)), "ada", time.Time{}) {
		t.Error("not known")
	}
}
