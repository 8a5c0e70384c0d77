// Package twoefay lets the users of a website confirm logins with their phones, by a Twoefay relay.
//
// Start with README.md. Relay is the client, Store keeps the pinned keys, Webhooks receives events,
// and SecondFactor is a ready waiting page for net/http. The package needs the standard library
// only.
//
// The strong form is the default: a login counts only with a receipt that a pinned phone has
// signed, so the relay can refuse or delay a login, but let nobody in.
package twoefay
