package twoefay

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Object is an object of JSON. Its numbers are json.Number, its lists []any.
type Object = map[string]any

// mostDepth is far above what the relay sends, and far below what costs memory.
const mostDepth = 64

// readObject reads an object of JSON strictly: it refuses what two parsers could read differently,
// such as a name that occurs twice. encoding/json alone would keep one of the two values.
func readObject(data []byte) (Object, error) {
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, errors.New("not JSON")
	}
	if hasHalfCharacter(data) {
		return nil, errors.New("half of a surrogate pair")
	}
	reader := json.NewDecoder(bytes.NewReader(data))
	reader.UseNumber()
	value, err := readValue(reader, 0)
	if err != nil {
		return nil, err
	}
	object, isObject := value.(Object)
	if !isObject {
		return nil, errors.New("not an object")
	}
	return object, nil
}

func readValue(reader *json.Decoder, depth int) (any, error) {
	token, err := reader.Token()
	if err != nil {
		return nil, err
	}
	if depth == mostDepth {
		return nil, errors.New("nested too deeply")
	}
	switch token {
	case json.Delim('{'):
		return readMembers(reader, depth)
	case json.Delim('['):
		return readEntries(reader, depth)
	default:
		return token, nil
	}
}

func readMembers(reader *json.Decoder, depth int) (Object, error) {
	object := Object{}
	for reader.More() {
		token, err := reader.Token()
		if err != nil {
			return nil, err
		}
		name, isText := token.(string)
		if _, isThere := object[name]; isThere || !isText {
			return nil, errors.New("a name occurs twice")
		}
		if object[name], err = readValue(reader, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := reader.Token()
	return object, err
}

func readEntries(reader *json.Decoder, depth int) ([]any, error) {
	list := []any{}
	for reader.More() {
		value, err := readValue(reader, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	_, err := reader.Token()
	return list, err
}

// hasHalfCharacter finds an escape such as \ud800 without its second half. encoding/json would
// replace it, and so read another text than was signed. The data must be valid JSON.
func hasHalfCharacter(data []byte) bool {
	for i := bytes.IndexByte(data, '\\'); i >= 0 && i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		i++
		if data[i] != 'u' {
			continue
		}
		switch unit := escaped(data, i-1); {
		case 0xdc00 <= unit && unit <= 0xdfff:
			return true
		case 0xd800 <= unit && unit <= 0xdbff:
			if second := escaped(data, i+5); second < 0xdc00 || second > 0xdfff {
				return true
			}
			i += 6
		}
	}
	return false
}

// escaped returns the unit of UTF-16 whose escape begins at a place of valid JSON, or 0 for none.
func escaped(data []byte, at int) uint64 {
	if at+6 > len(data) || data[at] != '\\' || data[at+1] != 'u' {
		return 0
	}
	unit, _ := strconv.ParseUint(string(data[at+2:at+6]), 16, 16)
	return unit
}

// isInteger says whether a value is a number without fraction and exponent: true and 1.0 are not.
func isInteger(value any) bool {
	number, isNumber := value.(json.Number)
	return isNumber && !strings.ContainsAny(number.String(), ".eE")
}

// textOf returns a value that is a text, and "" for all others.
func textOf(value any) string {
	text, _ := value.(string)
	return text
}
