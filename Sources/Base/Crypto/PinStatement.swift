import Bytes
import JSON
import World

/// The statement of the server's authority about the keys that phones pin. The operator's tool signs
/// it with the key of the present authority, so the relay cannot make one.
///
/// Purpose: phones pin the key of the authority. The statement names the next one, so that the
/// authority can be replaced and no phone has to be bound again.
///
/// Invariant: a value exists only if the text is a JWS of `twoefay-pins+jwt`, signed by the key in
/// its header, and names one or two pins. Whoever relies on it must know the signer's pin already.
///
/// Failure: a thief of the authority's key can sign statements, too. After such a theft, all phones
/// must be bound again. Tested in `PinStatementTests.swift`.
public struct PinStatement: Sendable, Equatable {
    public static let type = "twoefay-pins+jwt"
    /// The most pins that a phone holds.
    public static let mostPins = 2

    /// The SHA-256 of the signer's SubjectPublicKeyInfo.
    public let signer: [UInt8]
    /// The origin of the relay. The statement is for its phones alone.
    public let audience: String
    /// A later statement has a higher number.
    public let sequence: Int64
    /// The pins that a phone has afterwards; the signer's is among them.
    public let pins: [[UInt8]]
    public let signedAt: Timestamp
    /// From then on no phone takes it.
    public let expiresAt: Timestamp
    /// The JWS.
    public let text: String

    public struct Malformed: Error, Sendable, Equatable, CustomStringConvertible {
        public let description: String
    }

    /// Signs a statement with the key of the authority that phones pin now.
    public static func sign(
        _ pins: [[UInt8]], sequence: Int64, audience: String, expiresAt: Timestamp, by key: P256PrivateKey,
        at now: Timestamp
    ) throws(CryptoFailure) -> String {
        let claims: JSONObject = [
            "v": 1, "aud": .string(audience), "seq": .integer(sequence),
            "pins": .array(pins.map { .string(Base64URL.encode($0)) }), "iat": .integer(now.seconds),
            "exp": .integer(expiresAt.seconds),
        ]
        return try JWS.sign(
            header: ["typ": .string(type), "jwk": .object(key.publicKey.jwk)], payload: JSONWriter.write(claims),
            key: key)
    }

    /// Reads a statement, and verifies that the key in its header has signed it.
    public init(_ text: String) throws(Malformed) {
        let parsed: JWSObject
        do throws(JWSError) {
            parsed = try JWS.parse(text, maxBytes: 4096)
        } catch {
            throw Malformed(description: error.description)
        }
        guard parsed.type == Self.type else { throw Malformed(description: "it is another kind of statement") }
        guard let jwk = parsed.header["jwk"], let key = try? P256PublicKey(jwk: jwk), parsed.verify(key) else {
            throw Malformed(description: "its signature is wrong")
        }
        guard let claims = (try? JSONReader.read(parsed.payload))?.object, claims["v"]?.integer == 1,
            let audience = claims["aud"]?.string, let sequence = claims["seq"]?.integer, sequence > 0,
            let signed = claims["iat"]?.integer, let end = claims["exp"]?.integer,
            let texts = claims["pins"]?.array
        else { throw Malformed(description: "its claims are incomplete") }
        let pins = texts.compactMap { $0.string.flatMap { Base64URL.decode($0) } }.filter { $0.count == 32 }
        guard pins.count == texts.count, (1...Self.mostPins).contains(pins.count), Set(pins).count == pins.count else {
            throw Malformed(description: "it must name one or two pins")
        }
        guard pins.contains(key.spkiThumbprint) else {
            throw Malformed(description: "its signer is not among the pins")
        }
        signer = key.spkiThumbprint
        self.audience = audience
        self.sequence = sequence
        self.pins = pins
        signedAt = Timestamp(seconds: signed)
        expiresAt = Timestamp(seconds: end)
        self.text = text
    }

    /// Returns the reason why a phone does not take the statement; nil if it takes it.
    ///
    /// - Parameters:
    ///   - pinned: the pins that the phone has.
    ///   - last: the sequence number of the statement that the phone took last; 0 for none.
    public func refusal(
        by origin: String, pinned: [[UInt8]], last: Int64, at now: Timestamp
    ) -> Malformed? {
        if audience != origin { return Malformed(description: "it is for another relay") }
        if !pinned.contains(signer) { return Malformed(description: "its signer is not pinned") }
        if sequence <= last { return Malformed(description: "it is older than the one before") }
        if expiresAt <= now { return Malformed(description: "it has expired") }
        return nil
    }
}
