package twoefay

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"math/big"
	"strings"
)

// JWK is a public key of P-256. A pinned one also says what is known of the phone: a Store keeps
// all members.
type JWK struct {
	Kty string `json:"kty"`
	Crv string `json:"crv"`
	X   string `json:"x"`
	Y   string `json:"y"`
	// App is the origin of the page that is a web phone. It is empty for a native phone.
	App string `json:"app,omitempty"`
	// WebAuthn is the credential of a web phone's owner, if there is one.
	WebAuthn *WebAuthn `json:"webauthn,omitempty"`
}

func encode(data []byte) string {
	return base64.RawURLEncoding.EncodeToString(data)
}

// decode decodes base64url without padding. Each value has exactly one text.
func decode(text string) ([]byte, error) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	// The decoder skips line breaks, even if it is strict.
	if err != nil || len(text) != base64.RawURLEncoding.EncodedLen(len(data)) {
		return nil, errors.New("not base64url")
	}
	return data, nil
}

// jws is a compact JWS with one fixed algorithm. The header never chooses it: that is how `none`
// gets in. Read no claim before isSignedBy or isMadeWith has returned true.
type jws struct {
	header    Object
	payload   []byte
	signed    []byte
	signature []byte
}

func parseJWS(token, algorithm string) (jws, error) {
	head, rest, _ := strings.Cut(token, ".")
	body, last, isThere := strings.Cut(rest, ".")
	if !isThere || strings.Contains(last, ".") {
		return jws{}, errors.New("not a compact JWS")
	}
	var decoded [3][]byte
	for i, part := range []string{head, body, last} {
		data, err := decode(part)
		if err != nil {
			return jws{}, err
		}
		decoded[i] = data
	}
	header, err := readObject(decoded[0])
	if err != nil {
		return jws{}, err
	}
	if header["alg"] != algorithm {
		return jws{}, errors.New("another algorithm")
	}
	if _, isThere := header["crit"]; isThere {
		return jws{}, errors.New("the header demands an unknown extension")
	}
	signature := decoded[2]
	if len(signature) == 0 || algorithm == "ES256" && len(signature) != 64 {
		return jws{}, errors.New("the signature has another length")
	}
	return jws{header, decoded[1], []byte(token[:len(head)+1+len(body)]), signature}, nil
}

func (j jws) isSignedBy(key *ecdsa.PublicKey) bool {
	digest := sha256.Sum256(j.signed)
	r, s := new(big.Int).SetBytes(j.signature[:32]), new(big.Int).SetBytes(j.signature[32:])
	return ecdsa.Verify(key, digest[:], r, s)
}

func (j jws) isMadeWith(key []byte) bool {
	// HMAC takes a key of any length. A short one can be guessed, so it proves nothing.
	return len(key) >= 32 && hmac.Equal(mac(key, j.signed), j.signature)
}

func mac(key, message []byte) []byte {
	hash := hmac.New(sha256.New, key)
	hash.Write(message)
	return hash.Sum(nil)
}

// publicJWK returns the four members of a key that is a point of P-256, without any others.
func publicJWK(value any) (JWK, error) {
	object, _ := value.(Object)
	var key JWK
	for name, member := range map[string]*string{"kty": &key.Kty, "crv": &key.Crv, "x": &key.X, "y": &key.Y} {
		text, isText := object[name].(string)
		if !isText {
			return JWK{}, errors.New("the key lacks members")
		}
		*member = text
	}
	_, err := key.public()
	return key, err
}

func (k JWK) public() (*ecdsa.PublicKey, error) {
	x, errX := decode(k.X)
	y, errY := decode(k.Y)
	if k.Kty != "EC" || k.Crv != "P-256" || errX != nil || errY != nil || len(x) != 32 || len(y) != 32 {
		return nil, errors.New("not a key of P-256")
	}
	curve := elliptic.P256()
	point := append(append([]byte{4}, x...), y...)
	pointX, pointY := elliptic.Unmarshal(curve, point) // nil unless it is a point of the curve
	if pointX == nil {
		return nil, errors.New("not a point of P-256")
	}
	return &ecdsa.PublicKey{Curve: curve, X: pointX, Y: pointY}, nil
}
