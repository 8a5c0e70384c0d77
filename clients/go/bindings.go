package twoefay

import "encoding/json"

// checkBinding checks a phone's entry of devices[] under each open secret. It returns the key to
// pin, with the members of a web phone, and its k.
//
// The website adds a secret k to the activation URI and draws the QR code itself, so the relay
// never sees k. The phone makes an HMAC with it over its own key. So the key is pinned without
// trust in the relay.
func checkBinding(rules policy, device Object, token string, secrets [][]byte) (JWK, []byte, error) {
	none := func(reason string) (JWK, []byte, error) { return JWK{}, nil, &BindingError{reason} }
	binding, isText := device["binding"].(string)
	if !isText {
		return none("incomplete")
	}
	signed, err := parseJWS(binding, "HS256")
	if err != nil {
		return none("malformed")
	}
	var used []byte
	for _, k := range secrets {
		if signed.isMadeWith(k) {
			used = k
		}
	}
	if used == nil {
		return none("code")
	}
	if signed.header["typ"] != "twoefay-binding+jwt" {
		return none("type")
	}
	claims, err := readObject(signed.payload)
	if err != nil {
		return none("claims")
	}
	key, err := publicJWK(claims["jwk"])
	if err != nil {
		return none("claims")
	}
	agreement, hasAgreement := JWK{}, false
	if value, isThere := claims["agreement"]; isThere {
		if agreement, err = publicJWK(value); err != nil {
			return none("claims")
		}
		hasAgreement = true
	}
	if err := key.readApp(claims); err != nil || claims["v"] != json.Number("1") {
		return none("claims")
	}
	refusal := rules.refusalOf(key.App)
	switch {
	case claims["aud"] != rules.audience():
		return none("audience")
	case claims["id_token"] != token:
		return none("token")
	case refusal != "":
		return none(refusal)
	// Secrets are sealed to `agreement`, so the relay must name the one that the phone names.
	case !reports(device["jwk"], key, true) || !reports(device["agreement"], agreement, hasAgreement):
		return none("key")
	}
	return key, used, nil
}

// reports says whether the relay names the same key as the phone, or none if the phone has none.
func reports(value any, key JWK, hasKey bool) bool {
	if value == nil || !hasKey {
		return value == nil && !hasKey
	}
	reported, err := publicJWK(value)
	return err == nil && reported.isSameKey(key)
}
