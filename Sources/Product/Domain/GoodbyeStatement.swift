import Bytes
import Crypto
import JSON
import World

/// The statement with which a phone leaves, or asks whether it was unbound: a
/// `twoefay-goodbye+jwt`.
///
/// The phone's key signs it, and it needs no other authentication: a phone that was unbound has none
/// any more. Its nonce comes back in the relay's answer. Its time must be close to the relay's, so
/// that an old statement does not unbind a phone that was bound again.
public struct GoodbyeStatement: Sendable {
    public static let type = "twoefay-goodbye+jwt"
    public static let maxBytes = 2048
    /// The greatest difference between its time and the relay's.
    public static let tolerance = Duration.seconds(300)

    public enum Fault: Error, Equatable {
        case statement
        case clock
    }

    /// The phone that the statement names. It is not verified yet.
    public let device: DeviceID
    private let object: JWSObject

    /// The content of a verified statement.
    public struct Content: Sendable, Equatable {
        public let nonce: String
        /// Whether the phone leaves; false if it only asks.
        public let leaves: Bool
    }

    /// Reads the header; nil if it is no such statement.
    public init?(_ compact: String) {
        guard let object = try? JWS.parse(compact, maxBytes: Self.maxBytes), object.type == Self.type,
            object.header.count == 3, let device = object.keyID.flatMap({ DeviceID($0) })
        else { return nil }
        self.device = device
        self.object = object
    }

    /// Returns the content. Throws if the phone has not signed it, or a claim is wrong.
    public func content(
        key: P256PublicKey, audience: String, at now: Timestamp
    ) throws(Fault) -> Content {
        guard object.verify(key), let claims = (try? JSONReader.read(object.payload))?.object, claims.count == 5,
            claims["v"] == 1, claims["aud"]?.string.map({ $0.utf8.elementsEqual(audience.utf8) }) == true,
            let nonce = claims["nonce"]?.string, (16...128).contains(nonce.utf8.count), Base64URL.decode(nonce) != nil,
            let leaves = claims["leaves"]?.bool, let issuedAt = claims["iat"]?.integer
        else { throw .statement }
        let age = now - Timestamp(seconds: issuedAt)
        guard age <= Self.tolerance, age >= .zero - Self.tolerance else { throw .clock }
        return Content(nonce: nonce, leaves: leaves)
    }
}
