package twoefay

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// A web phone is a phone whose app is a page in a browser. Its binding names the origin of the page
// and, if the browser can check its owner, a credential of WebAuthn. Both are pinned with the key.
// What the page says of its user counts only with an assertion of that credential.

// Phones says which phones a website accepts.
type Phones string

// The values of Phones.
const (
	AnyPhones    Phones = "any"
	NativePhones Phones = "native"
	WebPhones    Phones = "web"
)

// WebAuthn is the credential by which a browser checks the owner of a web phone.
type WebAuthn struct {
	// RP is the domain that the credential belongs to.
	RP string `json:"rp"`
	// ID is the credential's id in base64url.
	ID  string `json:"id"`
	JWK JWK    `json:"jwk"`
}

const (
	mostOrigin             = 128
	mostCredentialID       = 256
	leastAuthenticatorData = 37
	mostAuthenticatorData  = 1024
	mostClientData         = 4096
	mostSignature          = 256
	userPresent            = 1 << 0
	userVerified           = 1 << 2
)

var isPlainOrigin = regexp.MustCompile(`^https://[a-z0-9.-]+(:[0-9]{1,5})?$`).MatchString

// isAppOrigin says whether a text has the form of the origin of a web app.
func isAppOrigin(origin string) bool { return len(origin) <= mostOrigin && isPlainOrigin(origin) }

// hostOf returns the host of an origin, without its port.
func hostOf(origin string) string {
	parts, err := url.Parse(origin)
	if err != nil {
		return ""
	}
	return parts.Hostname()
}

// areOneHost compares the hosts of two origins. A browser reaches the same server by a name in
// capitals, and by one with a dot at its end.
func areOneHost(one, other string) bool {
	plain := func(origin string) string { return strings.TrimSuffix(strings.ToLower(hostOf(origin)), ".") }
	return plain(one) == plain(other)
}

// requirePhones checks the settings about web phones.
func (p policy) requirePhones() error {
	if p.phones != AnyPhones && p.phones != NativePhones && p.phones != WebPhones {
		return errors.New("twoefay: Phones must be AnyPhones, NativePhones or WebPhones")
	}
	if p.appOrigin != "" && !isAppOrigin(p.appOrigin) {
		return errors.New("twoefay: AppOrigin must be like https://phone.example.com, in small letters")
	}
	if p.appOrigin != "" && areOneHost(p.appOrigin, p.origin) {
		return errors.New("twoefay: AppOrigin has the host of the relay, which could read k there")
	}
	for _, origin := range p.loginOrigins {
		if !isAppOrigin(origin) {
			return errors.New("twoefay: LoginOrigins must be like https://shop.example.com, in small letters")
		}
	}
	return nil
}

// refusalOf returns the reason to refuse a phone with this app, and "" for none. The app of a
// native phone is "".
func (p policy) refusalOf(app string) string {
	switch {
	case app == "" && p.phones == WebPhones || app != "" && p.phones == NativePhones:
		return "phone"
	case app == "":
		return ""
	case p.appOrigin != "" && app != p.appOrigin:
		return "app"
	case areOneHost(app, p.origin): // the relay can read k in each page of its host
		return "app"
	default:
		return ""
	}
}

// countsAsHigh says whether the phone can be a second factor beside the website's own pages: a web
// app at the host where users type their password is not.
func (p policy) countsAsHigh(phone JWK) bool {
	if phone.App == "" {
		return true
	}
	for _, origin := range p.loginOrigins {
		if areOneHost(origin, phone.App) {
			return false
		}
	}
	return len(p.loginOrigins) > 0
}

// readApp adds the members of a web phone to its key. A native phone's binding has none.
func (k *JWK) readApp(claims Object) error {
	app, hasApp := claims["app"]
	credential, hasCredential := claims["webauthn"]
	if !hasApp {
		if hasCredential {
			return errors.New("a credential without an app")
		}
		return nil
	}
	k.App = textOf(app)
	if !isAppOrigin(k.App) {
		return errors.New("the app is not an origin")
	}
	if !hasCredential {
		return nil
	}
	members, _ := credential.(Object)
	found := WebAuthn{RP: textOf(members["rp"]), ID: textOf(members["id"])}
	host := hostOf(k.App)
	if found.RP == "" || host != found.RP && !strings.HasSuffix(host, "."+found.RP) {
		return errors.New("the credential belongs to another domain")
	}
	if _, err := decode(found.ID); err != nil || found.ID == "" || len(found.ID) > mostCredentialID {
		return errors.New("the credential has no id")
	}
	var err error
	found.JWK, err = publicJWK(members["jwk"])
	k.WebAuthn = &found
	return err
}

// isSameKey compares the keys alone.
func (k JWK) isSameKey(other JWK) bool {
	return k.Kty == other.Kty && k.Crv == other.Crv && k.X == other.X && k.Y == other.Y
}

// verificationOf returns the user verification that counts. That of a web phone needs an assertion,
// which does not say how the browser checked the owner: it counts as a passcode.
func (k JWK) verificationOf(claimed UserVerification, receipt jws, assertion any) UserVerification {
	switch {
	case k.App == "" || claimed == NoVerification:
		return claimed
	case k.hasAsserted(receipt, assertion):
		return Passcode
	default:
		return NoVerification
	}
}

// hasAsserted says whether an assertion of the phone's credential belongs to this receipt
// (WebAuthn Level 2, 7.2). Members that it does not know are ignored.
func (k JWK) hasAsserted(receipt jws, assertion any) bool {
	members, isObject := assertion.(Object)
	if !isObject || k.WebAuthn == nil {
		return false
	}
	authenticator, hasAuthenticator := bytesOf(members, "authenticator_data", leastAuthenticatorData, mostAuthenticatorData)
	client, hasClient := bytesOf(members, "client_data", 1, mostClientData)
	signature, hasSignature := bytesOf(members, "signature", 1, mostSignature)
	if !hasAuthenticator || !hasClient || !hasSignature || !k.isClientData(client, receipt) {
		return false
	}
	domain := sha256.Sum256([]byte(k.WebAuthn.RP))
	flags := authenticator[len(domain)]
	if string(authenticator[:len(domain)]) != string(domain[:]) || flags&userPresent == 0 || flags&userVerified == 0 {
		return false
	}
	public, err := k.WebAuthn.JWK.public()
	if err != nil {
		return false
	}
	hash := sha256.Sum256(client)
	digest := sha256.Sum256(append(authenticator, hash[:]...))
	return ecdsa.VerifyASN1(public, digest[:], signature)
}

// isClientData says whether the browser asserted this receipt, in the page of the phone's app.
func (k JWK) isClientData(data []byte, receipt jws) bool {
	client, err := readObject(data)
	if err != nil {
		return false
	}
	challenge := sha256.Sum256(receipt.signed)
	crossOrigin, hasCrossOrigin := client["crossOrigin"]
	_, hasTopOrigin := client["topOrigin"]
	return client["type"] == "webauthn.get" && client["challenge"] == encode(challenge[:]) &&
		client["origin"] == k.App && (!hasCrossOrigin || crossOrigin == false) && !hasTopOrigin
}

// bytesOf returns a member in base64url, if it has a length within these limits.
func bytesOf(members Object, name string, least, most int) ([]byte, bool) {
	text, isText := members[name].(string)
	data, err := decode(text)
	return data, isText && err == nil && len(data) >= least && len(data) <= most
}
