package twoefay

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"reflect"
	"sort"
	"strconv"
	"time"
)

// The check of a receipt: after it, the website need not trust the relay
// (docs/websites/receipts.md).
//
// Each fault has a stable word in ReceiptError. Nothing here spends the request: the caller does so
// last, so that a receipt that fails another check uses up nothing.

func unproved(reason string) error { return &ReceiptError{Reason: reason} }

const mostContext = 1 << 16

// ofRelay has the members of a context that the relay itself adds.
var ofRelay = map[string]bool{"place": true, "device": true, "created_at": true, "expires_at": true}

// mostOfCode is the most that a code of each factor assures (docs/websites/api.md).
var mostOfCode = map[string]Assurance{
	"totp": Substantial, "hotp": Substantial, "recovery": Substantial,
	"sms": Restricted, "mail": Low, "operator": Low,
}

// evidence is what the website has of its own about a success that the relay reports.
type evidence struct {
	policy    policy
	login     Login
	pins      map[string]JWK
	wasPinned bool
	now       time.Time
}

// finding is what counts of a success. The verification is "" if a word of the relay was accepted: a
// code, or the phone of a user of whom none was ever pinned.
type finding struct {
	assurance    Assurance
	verification UserVerification
}

// check checks a success.
func (e evidence) check(answer Object) (finding, error) {
	found, err := e.checkProof(answer)
	if err != nil {
		return finding{}, err
	}
	if answer["challenge"] != e.login.Challenge {
		return finding{}, unproved("challenge")
	}
	if err := e.checkStrength(answer, found.assurance); err != nil {
		return finding{}, err
	}
	if e.now.Unix()-e.login.AskedAt > int64(longestLife/time.Second) {
		return finding{}, unproved("age")
	}
	return found, nil
}

func (e evidence) checkProof(answer Object) (finding, error) {
	found := finding{assurance: Assurance(textOf(answer["assurance"]))}
	// An unpinned phone counts as well: the relay reports the unbinding of phones.
	trustsPhones := e.policy.allowUnpinned && !e.wasPinned && len(e.pins) == 0
	switch proof := textOf(answer["proof"]); {
	case proof == "code" && e.policy.acceptCodes:
		return found, nil
	case trustsPhones && (proof == "signed" || proof == "certificate" || proof == "website"):
		return found, nil
	case proof == "signed":
		seen, err := e.checkReceipt(answer)
		if found.assurance == High && !e.policy.countsAsHigh(e.pins[textOf(answer["device"])]) {
			found.assurance = Substantial
		}
		found.verification = seen
		return found, err
	default:
		return found, unproved("not_signed")
	}
}

// checkStrength compares the relay's word: an honest one must not be weaker than the website asked.
func (e evidence) checkStrength(answer Object, word Assurance) error {
	factor := textOf(answer["factor"])
	isCode := answer["proof"] == "code"
	most, isKnown := mostOfCode[factor]
	if isCode && !isKnown {
		return unproved("factor")
	}
	if e.login.Factors != nil && !isAmong(factor, e.login.Factors) {
		return unproved("factor")
	}
	if isCode && word.rank() > most.rank() {
		return unproved("assurance")
	}
	if least := e.login.MinAssurance; least != "" && (least.rank() < 0 || word.rank() < least.rank()) {
		return unproved("assurance")
	}
	return nil
}

func isAmong(factor string, asked []string) bool {
	if factor == "pull" { // a push that the phone fetched
		factor = "push"
	}
	for _, one := range asked {
		if factor == one {
			return true
		}
	}
	return false
}

// checkReceipt does the steps 1 to 11 of receipts.md. It returns the user verification that counts.
func (e evidence) checkReceipt(answer Object) (UserVerification, error) {
	device, hasDevice := answer["device"].(string)
	receipt, hasReceipt := answer["receipt"].(string)
	context, hasContext := answer["context"].(string)
	if !hasDevice || !hasReceipt || !hasContext {
		return "", unproved("incomplete")
	}
	key, isPinned := e.pins[device]
	if !isPinned {
		return "", unproved("unknown_device")
	}
	signed, claims, err := readReceipt(receipt, key)
	if err != nil {
		return "", err
	}
	number, hasNumber := claims["number"]
	switch {
	case claims["aud"] != e.policy.audience():
		return "", unproved("audience")
	case signed.header["kid"] != device:
		return "", unproved("device")
	case claims["decision"] != "approve":
		return "", unproved("decision")
	case claims["request"] != e.login.Sent.Request || e.login.Sent.Request == "":
		return "", unproved("request")
	case hasNumber != (e.login.Number != "") || hasNumber && number != e.login.Number:
		return "", unproved("number")
	}
	if err := e.checkContext(context, textOf(claims["context"])); err != nil {
		return "", err
	}
	if claims["challenge"] != e.login.Challenge {
		return "", unproved("challenge")
	}
	seen := key.verificationOf(UserVerification(textOf(claims["uv"])), signed, answer["webauthn"])
	if err := e.checkVerification(seen, claims["uv_age"]); err != nil {
		return "", err
	}
	if len(e.login.Number) < e.policy.leastDigits {
		return "", unproved("digits")
	}
	return seen, nil
}

// readReceipt returns a receipt that the key has signed, and its claims.
func readReceipt(receipt string, key JWK) (jws, Object, error) {
	signed, err := parseJWS(receipt, "ES256")
	if err != nil {
		return jws{}, nil, unproved("malformed")
	}
	public, err := key.public()
	if err != nil {
		return jws{}, nil, errors.New("twoefay: the store holds an invalid key")
	}
	if !signed.isSignedBy(public) {
		return jws{}, nil, unproved("signature")
	}
	if signed.header["typ"] != "twoefay-decision+jwt" {
		return jws{}, nil, unproved("type")
	}
	claims, err := readObject(signed.payload)
	if err != nil || !areClaims(claims) {
		return jws{}, nil, unproved("claims")
	}
	return signed, claims, nil
}

func areClaims(claims Object) bool {
	for _, name := range []string{"aud", "challenge", "decision", "nonce", "context", "uv"} {
		if _, isText := claims[name].(string); !isText {
			return false
		}
	}
	// These are texts or absent: the number 7 is not the text "07".
	for _, name := range []string{"request", "number"} {
		value, isThere := claims[name]
		if _, isText := value.(string); isThere && !isText {
			return false
		}
	}
	age, hasAge := claims["uv_age"]
	return claims["v"] == json.Number("1") && UserVerification(textOf(claims["uv"])).rank() >= 0 &&
		isInteger(claims["iat"]) && (!hasAge || isInteger(age))
}

func (e evidence) checkVerification(seen UserVerification, age any) error {
	if seen.rank() < e.policy.leastUserVerification.rank() {
		return unproved("user_verification")
	}
	longest := e.policy.longestVerificationAge
	if longest == 0 {
		return nil
	}
	number, _ := age.(json.Number)
	seconds, err := number.Int64()
	if seen == NoVerification || err != nil || seconds < 0 || seconds > int64(longest/time.Second) {
		return unproved("user_verification_age")
	}
	return nil
}

// checkContext checks that the phone showed exactly what the website sent, and nothing else.
func (e evidence) checkContext(context, digest string) error {
	shown, err := decode(context)
	if err != nil || len(shown) > mostContext {
		return unproved("context")
	}
	if sum := sha256.Sum256(shown); encode(sum[:]) != digest {
		return unproved("context_digest")
	}
	members, err := readObject(shown)
	if err != nil {
		return unproved("context")
	}
	for _, one := range e.expected(members) {
		seen, isThere := members[one.name]
		if !isThere || !reflect.DeepEqual(seen, one.value) {
			return &ReceiptError{"field", one.name}
		}
		delete(members, one.name)
	}
	var foreign []string
	for name := range members {
		if !ofRelay[name] {
			foreign = append(foreign, name)
		}
	}
	if sort.Strings(foreign); len(foreign) > 0 {
		return &ReceiptError{"field", foreign[0]}
	}
	return nil
}

type member struct {
	name  string
	value any
}

// expected has the members that the context must have, as readObject would return them.
func (e evidence) expected(shown Object) []member {
	number := func(value int) any { return json.Number(strconv.Itoa(value)) }
	// The operator may rename a website, so its name counts only if the website demands one.
	name := shown["display_name"]
	if e.policy.displayName != "" {
		name = e.policy.displayName
	}
	sent := e.login.Sent
	found := []member{
		{"v", number(1)}, {"website", e.policy.website},
		{"number_digits", number(len(e.login.Number))}, {"display_name", name},
		{"username", sent.Username}, {"request", sent.Request},
	}
	for _, one := range []member{{"service", sent.Service}, {"action", sent.Action}} {
		if one.value != "" {
			found = append(found, one)
		}
	}
	if len(sent.Details) > 0 {
		details := make([]any, len(sent.Details))
		for i, one := range sent.Details {
			details[i] = Object{"label": one.Label, "value": one.Value}
		}
		found = append(found, member{"details", details})
	}
	for _, one := range []member{{"ip", sent.IP}, {"user_agent", sent.UserAgent}} {
		if one.value != "" {
			found = append(found, one)
		}
	}
	return found
}
