package twoefay

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

const mostCharacters = 512

// ignorable has the characters without a glyph that are letters, marks or symbols: Unicode's
// Default_Ignorable_Code_Point, without the categories that isHidden knows.
var ignorable = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x034f, Hi: 0x034f, Stride: 1}, {Lo: 0x115f, Hi: 0x1160, Stride: 1},
		{Lo: 0x17b4, Hi: 0x17b5, Stride: 1}, {Lo: 0x180b, Hi: 0x180f, Stride: 1},
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, {Lo: 0xfe00, Hi: 0xfe0f, Stride: 1},
		{Lo: 0xffa0, Hi: 0xffa0, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0xe0100, Hi: 0xe01ef, Stride: 1}},
}

// cleanBrowser returns the User-Agent as the relay accepts it, or "" if nothing of it is visible.
// Texts from a browser are cleaned and clipped, and never a reason to refuse a login.
func cleanBrowser(userAgent string) string {
	visible := func(r rune) rune {
		isAssigned := unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Zs)
		if !isAssigned || unicode.Is(ignorable, r) {
			return -1
		}
		return r
	}
	seen := strings.TrimSpace(strings.Map(visible, strings.ToValidUTF8(userAgent, "")))
	if utf8.RuneCountInString(seen) > mostCharacters {
		seen = strings.TrimSpace(string([]rune(seen)[:mostCharacters]))
	}
	return seen
}

// cleanAddress returns the visitor's address in its short form, or "" if the text is no address.
func cleanAddress(ip string) string {
	address, err := netip.ParseAddr(ip)
	if err != nil || address.Zone() != "" {
		return ""
	}
	return address.Unmap().String() // a socket for both families maps addresses of version 4
}

// cleanLanguage returns a header field that selects languages, or "" if the relay would ignore it.
func cleanLanguage(field string) string {
	for i := 0; i < len(field); i++ {
		if field[i] < ' ' || field[i] > '~' {
			return ""
		}
	}
	if len(field) > 256 {
		return ""
	}
	return field
}

// segment returns a value as one segment of a path. Servers resolve "." and "..".
func segment(value string) (string, error) {
	if value == "" || value == "." || value == ".." || !utf8.ValidString(value) {
		return "", fmt.Errorf("twoefay: %q cannot be a segment of a path", value)
	}
	return url.PathEscape(value), nil
}
