import Attestation

/// The conflict between codes that a phone shows and demands on this phone.
///
/// A code does not prove the state of the phone that shows it, nor who unlocked it. If a phone could
/// get codes beside such a demand, a thief of the unlocked phone would log in by a code and meet no
/// demand. The PIN is no such demand: the phone gets its secret only with the PIN.
extension Policy {
    /// The key of a demand on phones that approve, beside which phones get no codes; nil if there is
    /// none.
    public var demandAgainstPhoneCodes: String? {
        if attestation.ios == .required { return "attestation-ios" }
        if attestation.android == .required { return "attestation-android" }
        let none = Policy()
        let keys = [
            "max-uv-age", "min-app-android", "min-app-ios", "min-os-android", "min-os-ios", "min-patch-level", "min-uv",
            "screen-lock", "verified-boot",
        ]
        return keys.first { text(of: $0) != none.text(of: $0) }
    }
}
