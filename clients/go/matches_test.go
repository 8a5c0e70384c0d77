package twoefay

import "regexp"

var chosen = regexp.MustCompile(`^\{([26]) digits\}$`)

// matches says whether two values are equal; {2 digits} stands for a number that the client chose.
func matches(expected, actual any) bool {
	switch expected := expected.(type) {
	case Object:
		other, isObject := actual.(Object)
		if !isObject || len(other) != len(expected) {
			return false
		}
		for name, value := range expected {
			if entry, isThere := other[name]; !isThere || !matches(value, entry) {
				return false
			}
		}
		return true
	case []any:
		other, isList := actual.([]any)
		for i := range expected {
			isList = isList && len(other) == len(expected) && matches(expected[i], other[i])
		}
		return isList && len(other) == len(expected)
	case string:
		if digits := chosen.FindStringSubmatch(expected); digits != nil {
			form := regexp.MustCompile(`^[0-9]{` + digits[1] + `}$`)
			return form.MatchString(textOf(actual))
		}
	}
	return expected == actual
}
