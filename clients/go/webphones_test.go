package twoefay

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Phones in browsers: what their bindings and their approvals count.

const (
	anApp    = "https://phone.example.com"
	audience = "https://login.example.com:8080#shop"
	shown    = `{"v":1,"website":"shop","display_name":"Shop","username":"ada","request":"r","number_digits":2}`
)

// webPhone is a phone in a browser, with a credential of WebAuthn.
type webPhone struct {
	t               *testing.T
	key, credential *ecdsa.PrivateKey
}

func newWebPhone(t *testing.T) webPhone {
	made := func() *ecdsa.PrivateKey {
		return must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	}
	return webPhone{t, made(), made()}
}

func jwkOf(key *ecdsa.PrivateKey) JWK {
	number := func(value *big.Int) string { return encode(value.FillBytes(make([]byte, 32))) }
	return JWK{Kty: "EC", Crv: "P-256", X: number(key.X), Y: number(key.Y)}
}

// record returns the pinned record.
func (p webPhone) record() JWK {
	key := jwkOf(p.key)
	key.App = anApp
	key.WebAuthn = &WebAuthn{RP: "example.com", ID: "aWQ", JWK: jwkOf(p.credential)}
	return key
}

func (p webPhone) json(value any) []byte { return must[[]byte](p.t)(json.Marshal(value)) }

// claims returns the claims of the binding of this phone, with changes. nil removes a claim.
func (p webPhone) claims(changes Object) Object {
	claims := Object{"v": 1, "aud": audience, "id_token": "t", "jwk": jwkOf(p.key), "app": anApp, "webauthn": Object{
		"rp": "example.com", "id": "aWQ", "jwk": jwkOf(p.credential),
	}}
	return merged(claims, changes)
}

func merged(values, changes Object) Object {
	for name, value := range changes {
		if values[name] = value; value == nil {
			delete(values, name)
		}
	}
	return values
}

// user returns the relay's answer about a user, with a binding of these claims.
func (p webPhone) user(k []byte, claims Object) string {
	signed := encode([]byte(`{"alg":"HS256","typ":"twoefay-binding+jwt"}`)) + "." + encode(p.json(claims))
	device := Object{
		"device": "d1", "state": "active", "jwk": jwkOf(p.key), "binding": signed + "." + encode(mac(k, []byte(signed))),
	}
	return string(p.json(Object{"token": "t", "devices": []any{device}, "factors": []any{}}))
}

// approval returns an approval without an assertion, as the relay reports it.
func (p webPhone) approval(said UserVerification) Object {
	context := sha256.Sum256([]byte(shown))
	signed := encode([]byte(`{"alg":"ES256","typ":"twoefay-decision+jwt","kid":"d1"}`)) + "." + encode(p.json(Object{
		"v": 1, "aud": audience, "challenge": askedLogin().Challenge, "decision": "approve", "nonce": "n",
		"context": encode(context[:]), "uv": said, "uv_age": 3, "iat": 1, "request": "r", "number": "47",
	}))
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, p.key, digest[:])
	if err != nil {
		p.t.Fatal(err)
	}
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return Object{
		"login": "success", "proof": "signed", "factor": "push", "assurance": "high", "device": "d1",
		"challenge": askedLogin().Challenge, "context": encode([]byte(shown)), "receipt": signed + "." + encode(signature),
	}
}

// assertionParts are those of an assertion. Tests change them.
type assertionParts struct {
	client  Object
	data    string
	rp      string
	flags   byte
	further int
}

// assertion returns the assertion over a receipt.
func (p webPhone) assertion(receipt any, parts assertionParts) Object {
	text := textOf(receipt)
	challenge := sha256.Sum256([]byte(text[:strings.LastIndex(text, ".")]))
	data := []byte(parts.data)
	if parts.data == "" {
		data = p.json(merged(Object{
			"type": "webauthn.get", "challenge": encode(challenge[:]), "origin": anApp, "crossOrigin": false,
		}, parts.client))
	}
	if parts.rp == "" {
		parts.rp = "example.com"
	}
	domain, hash := sha256.Sum256([]byte(parts.rp)), sha256.Sum256(data)
	authenticator := append(domain[:], parts.flags^5, 0, 0, 0, 7)
	authenticator = append(authenticator, make([]byte, parts.further)...)
	digest := sha256.Sum256(append(authenticator[:len(authenticator):len(authenticator)], hash[:]...))
	return Object{
		"authenticator_data": encode(authenticator), "client_data": encode(data),
		"signature": encode(must[[]byte](p.t)(ecdsa.SignASN1(rand.Reader, p.credential, digest[:]))),
	}
}

// proved returns an approval with its assertion.
func (p webPhone) proved(said UserVerification) Object {
	approval := p.approval(said)
	approval["webauthn"] = p.assertion(approval["receipt"], assertionParts{})
	return approval
}

// decide returns the decision of a website that has pinned this phone.
func (p webPhone) decide(answer Object, phone JWK, settings Settings, least Assurance) (Decision, error) {
	p.t.Helper()
	store, clock, login := NewMemoryStore(), newClock(now), askedLogin()
	login.MinAssurance = least
	_ = store.AddSecret(background, "ada", []byte("k"), clock.time())
	_, _ = store.Pin(background, "ada", "d1", phone, []byte("k"))
	_ = store.Open(background, "r", clock.time())
	return fakeRelay(p.t, settings, store, clock, func(request) (*http.Response, error) {
		return replyJSON(200, string(p.json(answer))), nil
	}).Wait(background, login, 0)
}

// counts requires the verification and the assurance that count, of an approval.
func (p webPhone) counts(answer Object, phone JWK, settings Settings, seen UserVerification, word Assurance) {
	p.t.Helper()
	decision, err := p.decide(answer, phone, settings, "")
	if err != nil || !decision.Approved() || decision.UserVerification != seen || decision.Assurance != word {
		p.t.Error(decision.State, decision.UserVerification, decision.Assurance, err)
	}
}

func (p webPhone) refused(answer Object, settings Settings, least Assurance, reason string) {
	p.t.Helper()
	var fault *ReceiptError
	if _, err := p.decide(answer, p.record(), settings, least); !errors.As(err, &fault) || fault.Reason != reason {
		p.t.Error(err, "not", reason)
	}
}

func TestOwnersProofCountsAsPasscode(t *testing.T) {
	phone := newWebPhone(t)
	for said, counts := range map[UserVerification]UserVerification{
		Biometric: Passcode, Passcode: Passcode, NoVerification: NoVerification,
	} {
		phone.counts(phone.proved(said), phone.record(), Settings{}, counts, Substantial)
	}
	phone.refused(phone.proved(Biometric), Settings{LeastUserVerification: Biometric}, "", "user_verification")
}

func TestPagesOwnWordDoesNotCount(t *testing.T) {
	phone, other := newWebPhone(t), newWebPhone(t)
	for _, assertion := range []any{
		nil, "x", 7, true, []any{}, Object{}, other.proved(Biometric)["webauthn"],
	} {
		answer := phone.approval(Biometric)
		answer["webauthn"] = assertion
		phone.counts(answer, phone.record(), Settings{}, NoVerification, Substantial)
		phone.refused(answer, Settings{LeastUserVerification: Passcode}, "", "user_verification")
	}
	record := phone.record()
	record.WebAuthn = nil
	phone.counts(phone.proved(Biometric), record, Settings{}, NoVerification, Substantial)
}

func TestAssertionIsCheckedWhole(t *testing.T) {
	phone := newWebPhone(t)
	for _, one := range []struct {
		name   string
		parts  assertionParts
		counts UserVerification
	}{
		{"no crossOrigin", assertionParts{client: Object{"crossOrigin": nil}}, Passcode},
		{"further client data", assertionParts{client: Object{"other": []any{1}}}, Passcode},
		{"further flags and data", assertionParts{flags: 0x80, further: 987}, Passcode},
		{"type", assertionParts{client: Object{"type": "webauthn.create"}}, NoVerification},
		{"challenge", assertionParts{client: Object{"challenge": "x"}}, NoVerification},
		{"port", assertionParts{client: Object{"origin": anApp + ":8443"}}, NoVerification},
		{"slash", assertionParts{client: Object{"origin": anApp + "/"}}, NoVerification},
		{"crossOrigin", assertionParts{client: Object{"crossOrigin": true}}, NoVerification},
		{"crossOrigin 0", assertionParts{client: Object{"crossOrigin": 0}}, NoVerification},
		{"topOrigin", assertionParts{client: Object{"topOrigin": anApp}}, NoVerification},
		{"a name twice", assertionParts{data: `{"type":"webauthn.create","type":"webauthn.get"}`}, NoVerification},
		{"no object", assertionParts{data: "[]"}, NoVerification},
		{"rp", assertionParts{rp: "phone.example.com"}, NoVerification},
		{"not present", assertionParts{flags: 1}, NoVerification},
		{"not verified", assertionParts{flags: 4}, NoVerification},
		{"long authenticator data", assertionParts{further: 988}, NoVerification},
		{"long client data", assertionParts{client: Object{"other": strings.Repeat("x", 4096)}}, NoVerification},
	} {
		t.Run(one.name, func(t *testing.T) {
			phone := webPhone{t, phone.key, phone.credential}
			answer := phone.approval(Biometric)
			answer["webauthn"] = phone.assertion(answer["receipt"], one.parts)
			phone.counts(answer, phone.record(), Settings{}, one.counts, Substantial)
		})
	}
}

func TestMembersOfAnAssertionAreStrictTexts(t *testing.T) {
	phone := newWebPhone(t)
	answer := phone.proved(Biometric)
	right := answer["webauthn"].(Object)
	for _, name := range []string{"authenticator_data", "client_data", "signature"} {
		text := textOf(right[name])
		for _, odd := range []any{text + "=", text + "\n", "", text[:len(text)-4], nil, 7, []any{text}} {
			right[name] = odd
			phone.counts(answer, phone.record(), Settings{}, NoVerification, Substantial)
		}
		right[name] = text
	}
	right["user_handle"] = 7 // further members are ignored
	phone.counts(answer, phone.record(), Settings{}, Passcode, Substantial)
}

func TestAgeCountsOnlyWithProof(t *testing.T) {
	phone := newWebPhone(t)
	phone.counts(phone.proved(Biometric), phone.record(), Settings{LongestVerificationAge: 3 * time.Second}, Passcode, Substantial)
	phone.refused(phone.proved(Biometric), Settings{LongestVerificationAge: 2 * time.Second}, "", "user_verification_age")
	phone.refused(phone.approval(Biometric), Settings{LongestVerificationAge: time.Minute}, "", "user_verification_age")
}

func TestHighNeedsAnotherHostThanTheLogin(t *testing.T) {
	phone := newWebPhone(t)
	answer := phone.proved(Biometric)
	high := Settings{LoginOrigins: []string{"https://shop.example.com"}}
	phone.counts(answer, phone.record(), high, Passcode, High)
	if _, err := phone.decide(answer, phone.record(), high, High); err != nil {
		t.Error(err)
	}
	for _, origins := range [][]string{
		nil, {anApp}, {"https://shop.example.com", anApp + ":8443"}, {anApp + "."},
	} {
		settings := Settings{LoginOrigins: origins}
		phone.counts(answer, phone.record(), settings, Passcode, Substantial)
		phone.refused(answer, settings, High, "assurance")
		if _, err := phone.decide(answer, phone.record(), settings, Substantial); err != nil {
			t.Error(err)
		}
	}
	answer["assurance"] = "low" // only High changes
	phone.counts(answer, phone.record(), Settings{}, Passcode, Low)
}

func TestNativePhoneIsAsBefore(t *testing.T) {
	phone := newWebPhone(t)
	for _, said := range []UserVerification{Biometric, Passcode, NoVerification} {
		answer := phone.approval(said)
		answer["webauthn"] = Object{"signature": "x"}
		phone.counts(answer, jwkOf(phone.key), Settings{}, said, High)
	}
	if text := phone.json(jwkOf(phone.key)); strings.Contains(string(text), "app") || strings.Count(string(text), ":") != 4 {
		t.Error("the record of a native phone has changed", string(text))
	}
}

// pin returns the record that is pinned for a binding of these claims, or the reason of its fault.
func (p webPhone) pin(claims Object, settings Settings) (JWK, string) {
	p.t.Helper()
	store, clock, k := NewMemoryStore(), newClock(now), []byte(strings.Repeat("k", 32))
	_ = store.AddUser(background, "ada", "t")
	_ = store.AddSecret(background, "ada", k, clock.time())
	_, err := fakeRelay(p.t, settings, store, clock, func(request) (*http.Response, error) {
		return replyJSON(200, p.user(k, claims)), nil
	}).Confirm(background, "ada")
	pins, _ := store.Pins(background, "ada")
	var fault *BindingError
	if errors.As(err, &fault) && len(pins) == 0 {
		return JWK{}, fault.Reason
	}
	if err != nil || len(pins) != 1 {
		p.t.Error(err, pins)
	}
	return pins["d1"], ""
}

func TestRecordHasTheMembersOfAWebPhone(t *testing.T) {
	phone := newWebPhone(t)
	claims := phone.claims(nil)
	claims["webauthn"].(Object)["origin"] = anApp // further members are ignored
	if record, reason := phone.pin(claims, Settings{}); !reflect.DeepEqual(record, phone.record()) {
		t.Error(record, reason)
	}
	claims = phone.claims(Object{"webauthn": nil, "app": anApp + ":8443"})
	expected := jwkOf(phone.key)
	expected.App = anApp + ":8443"
	if record, reason := phone.pin(claims, Settings{}); record != expected {
		t.Error(record, reason)
	}
	claims = phone.claims(Object{"webauthn": nil, "app": nil, "jwk": phone.record()}) // members of the key itself are none
	if record, reason := phone.pin(claims, Settings{}); record != jwkOf(phone.key) {
		t.Error(record, reason)
	}
}

func TestOddClaimsOfAWebPhoneAreRefused(t *testing.T) {
	phone := newWebPhone(t)
	refuse := func(claims Object) {
		t.Helper()
		if _, reason := phone.pin(claims, Settings{}); reason != "claims" {
			t.Error(claims["app"], claims["webauthn"], reason)
		}
	}
	null := json.RawMessage("null")
	for _, app := range []any{
		null, 7, true, "", "https://", "https://:1", "http://a.example", "https://A.example", "https://a.example/",
		"https://a.example#", "https://u@a.example", "https://a.example:", "https://a.example:123456",
		"https://a.example\n", "https://[::1]", "https://" + strings.Repeat("a", 121), nil, // without an app
	} {
		refuse(phone.claims(Object{"app": app}))
		if app != nil {
			refuse(phone.claims(Object{"app": app, "webauthn": nil}))
		}
	}
	for _, odd := range []any{null, "x", true, []any{}, Object{}} {
		refuse(phone.claims(Object{"webauthn": odd}))
	}
	for _, changes := range []Object{
		{"rp": nil}, {"rp": ""}, {"rp": "xample.com"}, {"rp": "a.phone.example.com"}, {"rp": "Phone.example.com"},
		{"id": nil}, {"id": ""}, {"id": "aWQ="}, {"id": "a"}, {"id": strings.Repeat("a", 257)}, {"id": 7},
		{"jwk": nil}, {"jwk": JWK{Kty: "EC", Crv: "P-256"}},
	} {
		claims := phone.claims(nil)
		merged(claims["webauthn"].(Object), changes)
		refuse(claims)
	}
}

func TestLongestRecordFitsIntoTheColumn(t *testing.T) {
	phone := newWebPhone(t)
	claims := phone.claims(Object{"app": "https://" + strings.Repeat("a", 120)})
	merged(claims["webauthn"].(Object), Object{"rp": strings.Repeat("a", 120), "id": strings.Repeat("a", 256)})
	record, reason := phone.pin(claims, Settings{})
	if reason != "" || len(phone.json(record)) > 1000 {
		t.Error(reason, len(phone.json(record)))
	}
}

func TestWebsiteChoosesItsPhones(t *testing.T) {
	phone, other := newWebPhone(t), newWebPhone(t)
	native := Object{"app": nil, "webauthn": nil}
	app := func(origin string) Object { return Object{"app": origin, "webauthn": nil} }
	relays := app("https://login.example.com")
	for i, one := range []struct {
		changes  Object
		settings Settings
		reason   string
	}{
		{nil, Settings{Phones: NativePhones}, "phone"},
		{native, Settings{Phones: WebPhones}, "phone"},
		{native, Settings{Phones: NativePhones}, ""},
		{nil, Settings{Phones: WebPhones, AppOrigin: anApp}, ""},
		{native, Settings{AppOrigin: anApp}, ""},
		{app(anApp + ":8443"), Settings{AppOrigin: anApp}, "app"},
		{app("https://a.phone.example.com"), Settings{AppOrigin: anApp}, "app"},
		{relays, Settings{}, "app"},
		{app("https://login.example.com:1"), Settings{}, "app"},
		{app("https://login.example.com.:8080"), Settings{}, "app"},
		{merged(Object{"id_token": "x"}, relays), Settings{Phones: NativePhones}, "token"},
		{relays, Settings{Phones: NativePhones}, "phone"},
		{merged(Object{"jwk": jwkOf(other.key)}, relays), Settings{}, "app"},
		{Object{"jwk": jwkOf(other.key)}, Settings{}, "key"},
	} {
		if _, reason := phone.pin(phone.claims(one.changes), one.settings); reason != one.reason {
			t.Error(i, reason, "not", one.reason)
		}
	}
}

func TestCodeLeadsToTheChosenApp(t *testing.T) {
	const parts = "relay=https%3A%2F%2Flogin.example.com&code=x"
	activation := Object{"uri": "twoefay://enrol?" + parts, "expires_at": "2026-11-22T14:13:20Z"}
	for _, one := range []struct {
		settings Settings
		uri      string
	}{
		{Settings{}, "twoefay://enrol?" + parts + "&k=aw"},
		{Settings{Phones: AnyPhones}, "twoefay://enrol?" + parts + "&k=aw"},
		{Settings{Phones: NativePhones}, "twoefay://enrol?" + parts + "&phones=native&k=aw"},
		{Settings{AppOrigin: anApp + ":8443"}, anApp + ":8443/phone/#" + parts + "&k=aw"},
		{Settings{AppOrigin: anApp, Phones: WebPhones}, anApp + "/phone/#" + parts + "&phones=web&k=aw"},
	} {
		one.settings.Origin = "https://login.example.com:8080"
		rules := must[policy](t)(policyOf(one.settings, "shop"))
		if made, err := readEnrolment(rules, "t", activation, []byte("k")); err != nil || made.URI != one.uri {
			t.Error(made.URI, err)
		}
	}
}

func TestOddSettingsOfPhonesAreRefused(t *testing.T) {
	for _, settings := range []Settings{
		{Phones: "Web"}, {AppOrigin: "phone.example.com"}, {AppOrigin: anApp + "/"},
		{AppOrigin: "https://login.example.com"}, {AppOrigin: "https://login.example.com.:8443"},
		{LoginOrigins: []string{"shop.example.com"}}, {LoginOrigins: []string{"https://shop.example.com/"}},
		{LoginOrigins: []string{""}},
	} {
		settings.Origin = "https://login.example.com:8080"
		if _, err := policyOf(settings, "shop"); err == nil {
			t.Error("accepted", settings)
		}
	}
}
