package twoefay

// Detail is a pair that the phone shows and signs.
type Detail struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// Sent has the values of a login that went to the relay and that the phone shows. Empty ones were
// not sent.
type Sent struct {
	Username string `json:"username"`
	// Request is random, and ties a receipt to one login of one browser.
	Request   string   `json:"request"`
	Service   string   `json:"service,omitempty"`
	Action    string   `json:"action,omitempty"`
	Details   []Detail `json:"details,omitempty"`
	IP        string   `json:"ip,omitempty"`
	UserAgent string   `json:"user_agent,omitempty"`
}

// Login is the website's own record of one login. Keep it, as JSON, in the visitor's session until
// the login ends. Check compares the receipt with it.
type Login struct {
	Challenge string `json:"challenge"`
	// Number is for the visitor, who enters it on the phone. It is empty if no phone can answer.
	Number string `json:"number,omitempty"`
	// AskedAt is in seconds since 1970, by the website's clock.
	AskedAt      int64     `json:"asked_at"`
	Sent         Sent      `json:"sent"`
	Factors      []string  `json:"factors,omitempty"`
	MinAssurance Assurance `json:"min_assurance,omitempty"`
	// Factor, HasPhone, CodesLocked and Missing are the relay's word, for a page.
	Factor      string   `json:"factor,omitempty"`
	HasPhone    bool     `json:"has_phone"`
	CodesLocked bool     `json:"codes_locked"`
	Missing     []string `json:"missing,omitempty"`
}

// UserVerification says how the phone verified its user.
type UserVerification string

// The values of UserVerification, from weak to strong.
const (
	NoVerification UserVerification = "none"
	Passcode       UserVerification = "passcode"
	Biometric      UserVerification = "biometric"
)

func (v UserVerification) rank() int { return rank(string(v), "none", "passcode", "biometric") }

// Assurance says how strong a factor is.
type Assurance string

// The values of Assurance, from weak to strong.
const (
	Low         Assurance = "low"
	Restricted  Assurance = "restricted"
	Substantial Assurance = "substantial"
	High        Assurance = "high"
)

func (a Assurance) rank() int { return rank(string(a), "low", "restricted", "substantial", "high") }

// rank returns the place of a word, or -1 for another word.
func rank(word string, order ...string) int {
	for i, other := range order {
		if word == other {
			return i
		}
	}
	return -1
}

// State says how a login stands.
type State string

// The values of State.
const (
	Approved State = "approved"
	Denied   State = "denied"
	Open     State = "open"
)

// Decision is how a login stands, after all checks. Let the user in only if Approved returns true.
type Decision struct {
	State State
	// Reason says why it was denied: denied, fraud, expired, …
	Reason string
	Factor string
	Proof  string
	// Assurance is the relay's word. High becomes Substantial for an approval by a web phone that
	// may not count as High: see Settings.LoginOrigins.
	Assurance Assurance
	Device    string
	// UserVerification is the phone's own word, from the checked receipt. That of a web phone counts
	// only with an assertion of WebAuthn, and then as Passcode.
	UserVerification UserVerification
	// Answer is what the relay answered. Beyond the members above, it is unchecked.
	Answer Object
}

// Approved says whether the user may be let in: approved, and proved.
func (d Decision) Approved() bool { return d.State == Approved }

// Ended says whether the login is over.
func (d Decision) Ended() bool { return d.State == Approved || d.State == Denied }
