import Bytes
import Crypto
import JSON
import World

/// The relay's signed statement that this phone is unbound.
///
/// Invariant: a value exists only if the relay's certificate has signed it for this phone, its key,
/// this website and the nonce of the phone's own request. So the phone may delete its keys. Tested
/// in `GoodbyeTests.swift`.
public struct SignedFarewell: Sendable, Equatable {
    /// The author of the end: `phone`, `code`, `website` or `operator`.
    public let by: String
    /// The relay's time when it signed.
    public let time: Timestamp
    /// The statement itself, as a proof for later.
    public let statement: String

    /// The reason why the phone does not believe the statement.
    struct Malformed: Error, Equatable {
        let description: String
        /// Another certificate has signed, which the relay may have got meanwhile.
        static let unsigned = Malformed(description: "its signature is not from the relay's certificate")
    }

    init(
        _ statement: String, by certificate: Certificate, for enrolment: Enrolment, device: String, nonce: String
    ) throws(Malformed) {
        guard let signed = certificate.verified(statement),
            signed.header["x5t#S256"]?.string == Base64URL.encode(certificate.thumbprint)
        else { throw .unsigned }
        guard signed.type == "twoefay-farewell+jwt" else {
            throw Malformed(description: "it is another kind of statement")
        }
        guard let claims = (try? JSONReader.read(signed.payload))?.object, claims["v"]?.integer == 1,
            claims["aud"]?.string == enrolment.audience, claims["device"]?.string == device,
            claims["thumbprint"]?.string == enrolment.thumbprint, claims["nonce"]?.string == nonce
        else { throw Malformed(description: "it does not answer this phone's request") }
        guard let by = claims["by"]?.string, let time = claims["time"]?.string.flatMap({ Timestamp(rfc3339: $0) })
        else { throw Malformed(description: "it has no author or no time") }
        self.by = ScreenText.visible(by, limit: 32)
        self.time = time
        self.statement = statement
    }
}

extension Responder {
    /// Leaves: the phone signs its goodbye, and the relay signs that the phone is unbound, now or
    /// before. Only then the caller may delete the phone's keys.
    public func leave() async throws(CallFailure) -> SignedFarewell {
        guard let farewell = try await goodbye(leaves: true) else {
            throw .refused(
                RelayRefusal(status: 200, code: nil, detail: "the relay says that the phone is still bound"))
        }
        return farewell
    }

    /// Asks whether the phone was unbound. Returns nil if it is bound.
    public func farewell() async throws(CallFailure) -> SignedFarewell? { try await goodbye(leaves: false) }

    /// Sends a goodbye. If the relay gives no answer, the same bytes are sent again: a relay that
    /// learns late that the phone was unbound ends its connections, also this one. A statement by
    /// another certificate than that of the connection is asked for once more over a new connection,
    /// as the relay may have got another certificate meanwhile.
    private func goodbye(leaves: Bool) async throws(CallFailure) -> SignedFarewell? {
        let nonce = Base64URL.encode(line.randomness.bytes(16))
        let body: JSONObject
        do throws(CryptoFailure) {
            body = [
                "goodbye": .string(
                    try SignedStatement.goodbye(
                        leaves: leaves, nonce: nonce, of: enrolment, device: device, at: line.clock.now()))
            ]
        } catch {
            throw .unable(error.description)
        }
        var hasRepeated = false
        while true {
            do throws(CallFailure) {
                let answer = try await line.send(.init("/device/goodbye", body: body))
                if try answer.accepted()["bound"]?.bool == true { return nil }
                let statement = try answer.text("farewell")
                guard let certificate = line.serverCertificate else {
                    throw .ambiguous("the connection ended before its certificate was read")
                }
                do throws(SignedFarewell.Malformed) {
                    return try SignedFarewell(
                        statement, by: certificate, for: enrolment, device: device, nonce: nonce)
                } catch {
                    guard error == .unsigned, !hasRepeated else {
                        throw answer.odd("with a goodbye that cannot be believed: \(error.description)")
                    }
                    line.disconnect()
                }
            } catch {
                guard error.hasNoAnswer, !hasRepeated else { throw error }
            }
            hasRepeated = true
        }
    }
}

extension CallFailure {
    /// Whether the relay gave no answer, or was not reached at all.
    fileprivate var hasNoAnswer: Bool {
        switch self {
        case .notSent, .ambiguous: true
        case .refused, .unable, .unbound: false
        }
    }
}
