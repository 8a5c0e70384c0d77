package twoefay

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// answer is an HTTP answer of the relay, or of whoever answers in its place.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) kind() string {
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// read returns the object of an answer with one of these statuses. Everything else is an error.
func (a answer) read(statuses ...int) (Object, error) {
	isExpected := false
	for _, status := range statuses {
		isExpected = isExpected || a.status == status
	}
	if !isExpected {
		return nil, a.refusal()
	}
	if a.status == http.StatusNoContent {
		return Object{}, nil
	}
	if a.kind() != "application/json" {
		return nil, &OddAnswerError{"the answer is not JSON", a.status}
	}
	object, err := readObject(a.body)
	if err != nil {
		return nil, &OddAnswerError{"the answer is not an object of JSON: " + err.Error(), a.status}
	}
	return object, nil
}

// refusal returns the refusal, if it is one of a relay. What a proxy answers states nothing.
func (a answer) refusal() error {
	foreign := &OddAnswerError{"the answer is not from a relay", a.status}
	if a.kind() != "application/problem+json" || a.status < 400 {
		return foreign
	}
	problem, err := readObject(a.body)
	if err != nil {
		return foreign
	}
	code := Code(textOf(problem["code"]))
	status, isKnown := statusOf[code]
	if code == "" || problem["status"] != json.Number(strconv.Itoa(a.status)) || isKnown && status != a.status {
		return foreign
	}
	return refusedError(code, problem, a.status, a.header)
}

// text returns a member that must be a text.
func text(object Object, name string) (string, error) {
	value, isText := object[name].(string)
	if !isText {
		return "", odd(name + " is not a text")
	}
	return value, nil
}

// identity returns a member that must be an id of the relay.
func identity(object Object, name string) (string, error) {
	value, err := text(object, name)
	if err == nil && !isID(value) {
		err = odd(name + " is not an id of a relay")
	}
	return value, err
}

// optional returns a member that must be a text if it is there, and "" otherwise.
func optional(object Object, name string) (string, error) {
	if object[name] == nil {
		return "", nil
	}
	return text(object, name)
}

// objects returns a member that must be a list of objects.
func objects(object Object, name string) ([]Object, error) {
	list, isList := object[name].([]any)
	found := make([]Object, len(list))
	for i, entry := range list {
		value, isObject := entry.(Object)
		isList = isList && isObject
		found[i] = value
	}
	if !isList {
		return nil, odd(name + " is not a list of objects")
	}
	return found, nil
}

// words returns the texts of a member that may be a list.
func words(object Object, name string) []string {
	var found []string
	list, _ := object[name].([]any)
	for _, entry := range list {
		if word, isText := entry.(string); isText {
			found = append(found, word)
		}
	}
	return found
}
