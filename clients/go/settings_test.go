package twoefay

import "time"

// caseSettings are those of the document, with the changes of a case.
type caseSettings struct {
	Origin, Name           string
	DisplayName            string `json:"display_name"`
	LeastUserVerification  string `json:"least_user_verification"`
	LongestVerificationAge *int   `json:"longest_verification_age"`
	LeastDigits            int    `json:"least_digits"`
	AllowUnpinned          bool   `json:"allow_unpinned"`
	AcceptCodes            bool   `json:"accept_codes"`
	Phones                 Phones
	AppOrigin              string   `json:"app_origin"`
	LoginOrigins           []string `json:"login_origins"`
}

func (s caseSettings) settings() Settings {
	digits := s.LeastDigits
	if digits == 0 {
		digits = NoNumber
	}
	var longest time.Duration
	if s.LongestVerificationAge != nil {
		// A demand of 0 seconds is one below a second: the zero value is no demand.
		longest = time.Duration(*s.LongestVerificationAge)*time.Second + time.Nanosecond
	}
	return Settings{
		Origin: s.Origin, DisplayName: s.DisplayName,
		LeastUserVerification:  UserVerification(s.LeastUserVerification),
		LongestVerificationAge: longest,
		LeastDigits:            digits, AllowUnpinned: s.AllowUnpinned, AcceptCodes: s.AcceptCodes,
		Phones: s.Phones, AppOrigin: s.AppOrigin, LoginOrigins: s.LoginOrigins,
	}
}
