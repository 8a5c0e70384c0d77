import Crypto
import JSON
import World

/// A phone's request for the secret of its codes, which the phone has signed: a
/// `twoefay-secret+jwt`.
///
/// Invariant: the request names the key to which the secret is sealed. Somebody who changes that
/// key on its way to the relay, or in the store, changes what the phone has signed.
public struct SecretRequest: Equatable, Sendable {
    public static let type = "twoefay-secret+jwt"
    /// The greatest difference between `iat` and the relay's clock.
    public static let clockTolerance = DeviceReport.clockTolerance

    /// The reason why a request is refused.
    public enum Fault: Error, Equatable {
        /// It is no request that this phone has signed for this website at this relay.
        case statement
        /// Its time differs too much from the relay's clock.
        case clock
    }

    /// The key to which the secret is to be sealed.
    public let agreement: P256PublicKey
    /// The time of the request by the phone's clock. The relay answers no request that is not later
    /// than the one before.
    public let askedAt: Timestamp

    /// Reads a request. Unknown claims are ignored, because a newer app may ask for more.
    public init(
        _ compact: String, of device: DeviceID, key: P256PublicKey, audience: String, at now: Timestamp
    ) throws(Fault) {
        guard let object = try? JWS.parse(compact, maxBytes: 8192), object.type == Self.type,
            object.keyID == device.text, object.verify(key),
            let claims = (try? JSONReader.read(object.payload))?.object,
            claims["v"]?.integer == 1, claims["aud"]?.string == audience, let iat = claims["iat"]?.integer,
            let agreement = claims["agreement"].flatMap({ try? P256PublicKey(agreementJWK: $0) })
        else { throw .statement }
        let tolerance = Self.clockTolerance.components.seconds
        guard (now.seconds - tolerance...now.seconds + tolerance).contains(iat) else { throw .clock }
        self.agreement = agreement
        askedAt = Timestamp(seconds: iat)
    }
}
