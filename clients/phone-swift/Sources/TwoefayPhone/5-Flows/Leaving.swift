/// The end of an enrolment. Both sides sign it.
extension Phone {
    /// Unbinds the phone, and deletes its keys when the relay has signed that it is unbound. It
    /// also works for a phone that its website, an operator or its revocation code has unbound.
    public func leave() async throws(PhoneError) -> Farewell {
        guard let farewell = try await goodbye(leaves: true) else { throw .odd("the phone is still bound") }
        try forget()
        return farewell
    }

    /// Asks whether the phone was unbound; nil if it is bound.
    public func farewell() async throws(PhoneError) -> Farewell? { try await goodbye(leaves: false) }

    func goodbye(leaves: Bool) async throws(PhoneError) -> Farewell? {
        let nonce = Base64URL.encode(cryptography.random(16))
        let offset = enrolment.clockOffset
        var body = try goodbyeBody(leaves: leaves, nonce: nonce)
        // The same goodbye is sent once more if no answer came, or if the relay has got a new
        // certificate after the connection was opened; and with another time if that was wrong.
        for isFresh in [false, true] {
            do throws(PhoneError) {
                let answer = try await exchange(RelayRequest("POST", "/device/goodbye", body), isFresh: isFresh)
                if answer.refusesTime, !isFresh {
                    if enrolment.clockOffset == offset { _ = await hasCorrectedClock(by: answer, above: 60_000) }
                    body = try goodbyeBody(leaves: leaves, nonce: nonce)
                    continue
                }
                if try answer.accepted()["bound"]?.bool == true { return nil }
                let farewell = try Farewell(
                    try answer.text("farewell"), by: answer.certificate, audience: enrolment.audience,
                    device: try device(), thumbprint: thumbprint, nonce: nonce, cryptography)
                if let farewell { return farewell }
            } catch {
                guard error.hasNoAnswer, !isFresh else { throw error }
            }
        }
        throw .odd("the farewell is not signed by the relay")
    }

    private func goodbyeBody(leaves: Bool, nonce: String) throws(PhoneError) -> JSONObject {
        let claims = Statement.goodbye(leaves: leaves, nonce: nonce, for: enrolment.audience, at: now)
        return ["goodbye": .string(try sign("twoefay-goodbye+jwt", claims))]
    }
}

/// Unbinding a lost phone from anywhere, by the code that the person wrote down.
public enum Revocation {
    /// Unbinds the phone with this code. The relay does not say whether there was one.
    public static func revoke(
        _ code: String, at relay: RelayOrigin, pins: [[UInt8]], over transport: any Transport
    ) async throws(PhoneError) {
        let request = RelayRequest("POST", "/revoke", ["revocation_code": .string(code)])
        let server = ServerTrust(origin: relay, pins: pins, dates: .checked(offset: 0))
        let reply: RelayReply
        do throws(TransportFailure) {
            reply = try await transport.send(request, to: server, isFresh: false)
        } catch {
            throw PhoneError(error)
        }
        try RelayAnswer(reply).accepted()
    }
}
