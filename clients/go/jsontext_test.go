package twoefay

import (
	"strings"
	"testing"
)

func TestUnambiguousObjectsAreRead(t *testing.T) {
	deep := strings.Repeat("[", mostDepth-1) + strings.Repeat("]", mostDepth-1)
	for _, text := range []string{
		`{}`, ` {"a": [1, {"b": null}], "c": "\ud83d\ude00"} `, `{"\\ud800": "\\ud800"}`, `{"a": ` + deep + `}`,
		`{"a": {"b": 1}, "b": {"b": 1}}`,
	} {
		if _, err := readObject([]byte(text)); err != nil {
			t.Error(text, err)
		}
	}
}

func TestWhatParsersReadDifferentlyIsRefused(t *testing.T) {
	for _, text := range []string{
		``, `[]`, `null`, `7`, `"a"`, `{`, `{"a": 1,}`, `{"a": 1} x`,
		`{} {}`, `{"a": NaN}`, `{"a": 01}`, "\ufeff{}", "{\"\xff\": 1}",
		`{"a": 1, "a": 1}`, `{"a": 1, "\u0061": 1}`, `{"x": [{"a": 1, "a": 2}]}`,
		`{"a": "\ud800"}`, `{"a": "\udc00"}`, `{"a": "\ud800\ud800"}`, `{"a": "\ud800x"}`,
		`{"a": "\ud83d\ude00\uDE00"}`, `{"\uD800": 1}`,
		`{"a": ` + strings.Repeat("[", mostDepth) + strings.Repeat("]", mostDepth) + `}`,
		strings.Repeat(`{"a":`, 1<<18),
	} {
		if value, err := readObject([]byte(text)); err == nil {
			t.Errorf("%.80s was read as %v", text, value)
		}
	}
}

func TestBase64HasOneTextForEachValue(t *testing.T) {
	for _, text := range []string{"YQ==", "YR", "Y", "YQ\n", "Y\nQ", "Y+", "é"} {
		if _, err := decode(text); err == nil {
			t.Errorf("%q", text)
		}
	}
	if data, err := decode("YQ"); err != nil || string(data) != "a" {
		t.Error(data, err)
	}
}

func FuzzReadObject(f *testing.F) {
	f.Add([]byte(`{"a": ["\ud83d\ude00", {"b": 1.5e3}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = readObject(data)
		_, _ = parseJWS(string(data), "ES256")
	})
}
