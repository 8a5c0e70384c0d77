import Bytes
import Crypto
import HTTP
import JSON
import World

/// The relay's signed statement of its time, and what it says about the phone's clock.
///
/// Invariant: the statement was made between the phone's request and the relay's answer, because it
/// has the nonce of the request. So the offset is wrong by half of the round trip at most. Tested in
/// `SignedTimeTests.swift`.
public struct SignedTime: Sendable, Equatable {
    /// The relay's clock minus the phone's clock.
    public let offset: Duration
    /// The greatest error of the offset.
    public let uncertainty: Duration

    /// The longest round trip. An attacker who delays the answer for longer cannot falsify the time.
    static let longestRoundTrip: Duration = .seconds(10)

    /// The reason why the phone does not believe the statement.
    struct Malformed: Error, Equatable {
        let description: String
    }

    /// Checks a statement.
    ///
    /// - Parameters:
    ///   - statement: the JWS from the relay.
    ///   - certificate: the relay's certificate in the connection of the request.
    ///   - origin: the address of the relay.
    ///   - nonce: the nonce of the request.
    ///   - sent: the phone's time when it sent the request.
    ///   - roundTrip: the time until the answer came, by the monotonic clock.
    init(
        _ statement: String, by certificate: Certificate, origin: String, nonce: String, sent: Timestamp,
        roundTrip: Duration
    ) throws(Malformed) {
        guard let signed = certificate.verified(statement) else {
            throw Malformed(description: "its signature is not from the relay's certificate")
        }
        guard signed.type == "twoefay-time+jwt",
            signed.header["x5t#S256"]?.string == Base64URL.encode(certificate.thumbprint)
        else { throw Malformed(description: "it is another kind of statement, or names another certificate") }
        guard let claims = (try? JSONReader.read(signed.payload))?.object, claims["v"]?.integer == 1,
            claims["aud"]?.string == origin, claims["nonce"]?.string == nonce
        else { throw Malformed(description: "it does not answer this request") }
        guard let time = claims["time"]?.string.flatMap({ Timestamp(rfc3339: $0) }) else {
            throw Malformed(description: "it has no time")
        }
        guard roundTrip <= Self.longestRoundTrip else { throw Malformed(description: "it came too late") }
        uncertainty = roundTrip / 2
        offset = time - (sent + uncertainty)
    }
}

/// Asks a relay for its time, on a connection of its own.
///
/// The certificate of the relay must lead to the pinned authority, and must be for the relay's host.
/// Its dates are not checked, for this request alone: a phone whose clock is wrong cannot judge them.
/// `RelayConnection` checks them afterwards, at the time that it learned.
enum TimeRequest {
    static let path = "/time"

    static func send(
        over line: RelayConnection, randomness: any Randomness
    ) async throws(CallFailure) -> SignedTime {
        let nonce = Base64URL.encode(randomness.bytes(16))
        let (sent, start) = (line.clock.now(under: .zero), line.clock.instant())
        let answer = try await line.send(
            .init(path, method: "GET", fields: [.init("nonce", nonce)], timeout: SignedTime.longestRoundTrip))
        let roundTrip = line.clock.instant() - start
        let statement = try answer.text("time")
        guard let certificate = line.serverCertificate else {
            throw .ambiguous("the connection ended before its certificate was read")
        }
        do throws(SignedTime.Malformed) {
            return try SignedTime(
                statement, by: certificate, origin: line.relay.text, nonce: nonce, sent: sent, roundTrip: roundTrip)
        } catch {
            throw answer.odd("with a time that cannot be believed: \(error.description)")
        }
    }
}
