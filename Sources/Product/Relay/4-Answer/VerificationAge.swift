import Crypto
import Domain
import JSON

/// The user verification that a phone signed with its approval, and its age.
public struct VerifiedUser: Sendable, Equatable {
    public let uv: UserVerification
    /// The age in seconds when the phone signed.
    public let age: Int64

    /// Reads the age from a receipt, which the relay verified when it came. Returns nil if the phone
    /// stated none.
    ///
    /// - Parameter uv: the verification that counted.
    init?(receipt: String, uv: UserVerification?) {
        guard let object = try? JWS.parse(receipt, maxBytes: SignedDecision.maxBytes),
            let claims = (try? JSONReader.read(object.payload))?.object, let age = claims["uv_age"]?.integer, let uv
        else { return nil }
        self.uv = uv
        self.age = age
    }
}

/// The age of the user verification that a phone signs as `uv_age`.
extension Relay {
    /// Returns the refusal of an approval whose user verification is older than the policy permits;
    /// nil if it is recent enough. The phone's clock does not matter, because the phone measures the
    /// age itself, with a clock that only runs forward.
    static func refusal(_ uv: UserVerification, age: Int?, _ policy: Policy) -> Refusal? {
        guard let most = policy.maxUVAge else { return nil }
        if uv != .none, let age, age <= most { return nil }
        return .forbidden(
            LocalizedText(
                "The website requires that the phone verified its user within the last \(most) seconds, signed as uv "
                    + "and uv_age. Nothing has changed: the phone may verify its user and answer again",
                de:
                    "Die Website verlangt, dass das Telefon seinen Benutzer in den letzten \(most) Sekunden verifiziert "
                    + "hat, signiert als uv und uv_age. Es wurde nichts geändert: Das Telefon darf seinen Benutzer "
                    + "verifizieren und erneut antworten"))
    }
}
