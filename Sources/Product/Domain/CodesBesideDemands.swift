import Attestation

/// The conflict between codes that a phone shows and demands on this phone.
///
/// A code proves neither a PIN nor the state of the phone that shows it. If a phone could get codes
/// beside such a demand, a thief of the unlocked phone would log in by a code and meet no demand.
extension Policy {
    /// The key of a demand on phones that approve, beside which phones get no codes; nil if there is
    /// none.
    public var demandAgainstPhoneCodes: String? {
        if pin == .required { return "pin" }
        if attestation.ios == .required { return "attestation-ios" }
        if attestation.android == .required { return "attestation-android" }
        let none = Policy()
        let keys = [
            "min-app-android", "min-app-ios", "min-os-android", "min-os-ios", "min-patch-level", "screen-lock",
            "verified-boot",
        ]
        return keys.first { text(of: $0) != none.text(of: $0) }
    }
}
