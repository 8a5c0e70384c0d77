package twoefay

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// NoNumber is a value of Settings.LeastDigits for a website that needs no number. It weakens the
// check: a dishonest relay could leave the number out.
const NoNumber = -1

const mostDigits = 6

// Settings are those of one website at one relay. The zero values are the strong form.
type Settings struct {
	// Origin is the relay's, exactly as in its settings: https://login.example.com:8080.
	Origin string
	// CA is the path of the relay's ca.pem; Certificate and Key are those of the website's files.
	CA, Certificate, Key string
	// Store keeps the pinned keys.
	Store Store

	// DisplayName is the name that phones must show. Empty: the operator may rename the website.
	DisplayName string
	// LeastUserVerification is what the phone must have done to verify its user.
	LeastUserVerification UserVerification
	// LongestVerificationAge is how old that may be, in whole seconds. 0: of any age.
	LongestVerificationAge time.Duration
	// LeastDigits is the least length of the number. 0 means two digits.
	LeastDigits int

	// AllowUnpinned trusts the relay for users of whom no phone was ever pinned.
	AllowUnpinned bool
	// AcceptCodes trusts the relay's word that a code was right. No phone signs it.
	AcceptCodes bool

	// Phones says which phones Confirm pins. Empty: AnyPhones.
	Phones Phones
	// AppOrigin is the origin of the only web app whose phones Confirm pins. The QR code then opens
	// that app. It must not be at the relay's host. Empty: any web app but those at that host.
	AppOrigin string
	// LoginOrigins are the origins of your own pages on which users type their password. Without
	// them, the success of a web phone never counts as High; with them, that of an app at another
	// host does.
	LoginOrigins []string
}

// Relay is the client of one website at its relay. Make one for the process, and share it: all its
// methods may be called at once.
type Relay struct {
	policy policy
	store  Store
	http   atomic.Pointer[http.Client]

	// Tests replace these.
	clock  func() time.Time
	limit  func(context.Context, time.Duration) (context.Context, context.CancelFunc)
	pause  func(context.Context, time.Duration) error
	random func([]byte) error
}

// New makes a client. It reads the files, and connects with the first call.
func New(settings Settings) (*Relay, error) {
	website, err := websiteOf(settings.Certificate)
	if err != nil {
		return nil, err
	}
	rules, err := policyOf(settings, website)
	if err != nil {
		return nil, err
	}
	if err := requireStore(settings.Store); err != nil {
		return nil, err
	}
	client, err := httpClient(settings.CA, settings.Certificate, settings.Key)
	if err != nil {
		return nil, err
	}
	made := &Relay{
		policy: rules, store: settings.Store,
		clock: time.Now, limit: context.WithTimeout, pause: pause, random: random,
	}
	made.http.Store(client)
	return made, nil
}

// Close closes the idle connections.
func (r *Relay) Close() { r.http.Load().CloseIdleConnections() }

// policy is what a website requires of a login and its proof.
type policy struct {
	origin, website, displayName string
	leastUserVerification        UserVerification
	longestVerificationAge       time.Duration
	leastDigits                  int
	allowUnpinned, acceptCodes   bool
	phones                       Phones
	appOrigin                    string
	loginOrigins                 []string
}

// longestLife is that of a challenge: a later approval was held back.
const longestLife = 600 * time.Second

func policyOf(settings Settings, website string) (policy, error) {
	rules := policy{
		settings.Origin, website, settings.DisplayName, settings.LeastUserVerification,
		settings.LongestVerificationAge, settings.LeastDigits,
		settings.AllowUnpinned, settings.AcceptCodes,
		settings.Phones, settings.AppOrigin, append([]string(nil), settings.LoginOrigins...),
	}
	if rules.phones == "" {
		rules.phones = AnyPhones
	}
	if err := requireOrigin(rules.origin); err != nil {
		return policy{}, err
	}
	switch {
	case rules.leastDigits == 0:
		rules.leastDigits = 2
	case rules.leastDigits == NoNumber:
		rules.leastDigits = 0
	case rules.leastDigits < 0 || rules.leastDigits > mostDigits:
		return policy{}, errors.New("twoefay: LeastDigits must be at most 6, or NoNumber")
	}
	if rules.leastUserVerification == "" {
		rules.leastUserVerification = NoVerification
	}
	if rules.leastUserVerification.rank() < 0 || rules.longestVerificationAge < 0 {
		return policy{}, errors.New("twoefay: the demand for user verification is unknown")
	}
	return rules, rules.requirePhones()
}

func (p policy) audience() string { return p.origin + "#" + p.website }

func pause(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func random(bytes []byte) error {
	if _, err := rand.Read(bytes); err != nil {
		return fmt.Errorf("twoefay: no random bytes: %w", err)
	}
	return nil
}

// randomID returns 128 random bits in hexadecimal digits.
func (r *Relay) randomID() (string, error) {
	var bytes [16]byte
	err := r.random(bytes[:])
	return hex.EncodeToString(bytes[:]), err
}
