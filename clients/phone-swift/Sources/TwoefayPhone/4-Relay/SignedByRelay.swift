/// Statements that the relay signs with the key of its certificate: its time, notices, farewells.
extension JWS {
    /// Reads a statement of the relay, and checks what all of them have in common.
    ///
    /// - Parameters:
    ///   - certificate: the relay's certificate in the connection of the request.
    /// - Returns: nil if another certificate has signed it. The relay may have got a new one after
    ///   the connection was opened.
    package static func ofRelay(
        _ text: String, as type: String, by certificate: [UInt8], _ cryptography: any Cryptography
    ) -> JWS? {
        guard let jws = JWS(text), let parsed = Certificate(der: certificate),
            let key = VerificationKey(info: parsed.keyInfo),
            jws.header.has("x5t#S256", Base64URL.encode(cryptography.sha256(certificate))),
            jws.isSigned(as: type, by: key, cryptography), jws.claims["v"]?.integer == 1
        else { return nil }
        return jws
    }
}

/// The relay's signed statement of its time.
///
/// Invariant: it was made between the phone's request and the relay's answer, because it has the
/// nonce of the request. So the offset is wrong by half of the round trip at most.
public struct SignedTime: Sendable, Equatable {
    /// The relay's clock minus the phone's, in milliseconds.
    public let offset: Int64
    /// The greatest error of the offset.
    public let uncertainty: Int64

    /// Whoever delays the answer for longer cannot falsify the time.
    static let longestRoundTrip: Int64 = 10_000

    /// - Parameters:
    ///   - sent: the phone's time when it sent the request.
    ///   - roundTrip: the milliseconds until the answer came, by the monotonic clock.
    package init(
        _ statement: String, by certificate: [UInt8], origin: RelayOrigin, nonce: String, sent: Timestamp,
        roundTrip: Int64, _ cryptography: any Cryptography
    ) throws(PhoneError) {
        guard let jws = JWS.ofRelay(statement, as: "twoefay-time+jwt", by: certificate, cryptography) else {
            throw .odd("the time is not signed by the relay's certificate")
        }
        guard jws.claims.has("aud", origin.text), jws.claims.has("nonce", nonce),
            let time = jws.claims["time"]?.string.flatMap({ Timestamp(rfc3339: $0) })
        else { throw .odd("the time does not answer this request") }
        guard roundTrip <= Self.longestRoundTrip else { throw .odd("the time came too late") }
        uncertainty = roundTrip / 2
        offset = time.milliseconds - (sent.milliseconds + uncertainty)
    }
}

/// The relay's signed statement that this phone is unbound. Only with it the app deletes its keys.
public struct Farewell: Sendable, Equatable {
    /// The author of the end: `phone`, `code`, `website` or `operator`.
    public let by: String
    public let time: Timestamp
    /// The statement itself, as a proof for later.
    public let statement: String

    /// - Returns: nil if another certificate has signed it.
    package init?(
        _ statement: String, by certificate: [UInt8], audience: String, device: String, thumbprint: String,
        nonce: String, _ cryptography: any Cryptography
    ) throws(PhoneError) {
        guard let jws = JWS.ofRelay(statement, as: "twoefay-farewell+jwt", by: certificate, cryptography) else {
            return nil
        }
        let claims = jws.claims
        guard claims.has("aud", audience), claims.has("device", device), claims.has("thumbprint", thumbprint),
            claims.has("nonce", nonce), let by = claims["by"]?.string,
            let time = claims["time"]?.string.flatMap({ Timestamp(rfc3339: $0) })
        else { throw .odd("the farewell does not answer this phone's request") }
        self.by = ScreenText.visible(by, limit: 32)
        self.time = time
        self.statement = statement
    }
}

/// A statement of the relay's authority about the pins that phones have afterwards.
package struct PinStatement: Sendable, Equatable {
    package let pins: [[UInt8]]
    package let sequence: Int64

    /// Checks a statement by all five rules of the protocol; nil if the phone refuses it.
    ///
    /// - Parameter now: the relay's time.
    package init?(_ text: String, for enrolment: Enrolment, at now: Timestamp, _ cryptography: any Cryptography) {
        guard let jws = JWS(text), let key = jws.header["jwk"]?.object.flatMap({ P256PublicKey(jwk: $0) }),
            jws.isSigned(as: "twoefay-pins+jwt", by: VerificationKey(key), cryptography),
            jws.claims["v"]?.integer == 1
        else { return nil }
        let signer = cryptography.sha256(key.info)
        guard enrolment.pins.contains(signer), jws.claims.has("aud", enrolment.relay.text),
            let end = jws.claims["exp"]?.integer, end > now.seconds, let sequence = jws.claims["seq"]?.integer,
            sequence > enrolment.pinSequence, let list = jws.claims["pins"]?.array
        else { return nil }
        let pins = list.compactMap { $0.string.flatMap { Base64URL.decode($0) } }.filter { $0.count == 32 }
        guard pins.count == list.count, (1...2).contains(pins.count), Set(pins).count == pins.count,
            pins.contains(signer)
        else { return nil }
        self.pins = pins
        self.sequence = sequence
    }
}
