/// The relay's answer to the person's decision. The challenge has ended in both cases.
public enum Outcome: String, Sendable {
    case success
    /// After deny and fraud: as intended. After approve: the number was wrong, or the website
    /// refuses the place.
    case failure
}

extension Phone {
    /// Signs and sends the person's decision about a challenge that the person has seen.
    ///
    /// Refusals leave the challenge open: with the codes `pin_required`, `pin_wrong`, `pin_locked`,
    /// `posture_unmet`, `forbidden` (the website wants another user verification) and `limited`
    /// (after a wrong number) the person may answer again. `already_decided` has the result of
    /// another phone as `login` in its body. After 401 ask `pending`, and act on its answer.
    public func answer(_ answer: Answer, to challenge: Challenge) async throws(PhoneError) -> Outcome {
        if case .approve(let number) = answer.decision {
            let digits = number.map { Int64(digits: $0) == nil ? -1 : $0.utf8.count } ?? 0
            guard digits == challenge.context.numberDigits else {
                throw .unable("the number has \(challenge.context.numberDigits) digits")
            }
        }
        let claims = Statement.decision(answer, to: challenge, for: enrolment.audience, at: now, cryptography)
        let statement = try sign("twoefay-decision+jwt", claims)
        var body: JSONObject = ["challenge": .string(challenge.id), "answer": .string(statement)]
        var path = "/failure"
        if case .approve = answer.decision {
            path = "/success"
            if let attester = parts.attester, challenge.demands != nil {
                let digest = cryptography.sha256(Array(statement.utf8))
                do {
                    body["assertion"] = .string(Base64URL.encode(try await attester.assert(digest, for: enrolment.id)))
                } catch {
                    // Only a website that requires assertions refuses the answer without one.
                    if challenge.demands?.needsAssertion == true { throw .unable("\(error)") }
                }
            }
            if challenge.demands?.pin == .sign, let pin = answer.pin {
                body["pin_signature"] = .string(try pinSignature(pin, .pin, beside: statement))
            }
        }
        let request = RelayRequest("POST", path, body)
        let reply = try await sendUntilAnswered(request, within: max(0, challenge.timeLeft))
        guard let outcome = Outcome(rawValue: try reply.text("login")) else {
            throw .odd("login has an unknown value")
        }
        return outcome
    }
}
