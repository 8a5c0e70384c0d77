/// Binding the phone.
extension Phone {
    /// The relay's answer to an attempt to bind the phone.
    public enum Binding: Sendable, Equatable {
        /// The phone is bound. Show the revocation code once, for the person to write down, and do
        /// not store it. It is nil if the answer with it was lost.
        case bound(revocationCode: String?)
        /// Another phone of the user has to approve: show the number, which the person types there,
        /// and `thumbprint`.
        case waits(number: String?)
    }

    /// Creates the keys of a new enrolment, and stores it before anything is sent. Call it after
    /// the person has seen the website and the relay of the activation, and agrees.
    public static func begin(
        _ activation: Activation, _ options: EnrolmentOptions = EnrolmentOptions(), _ parts: PhoneParts
    ) throws(PhoneError) -> Phone {
        let enrolment = try signing {
            let key = try parts.keys.makeSigningKey()
            let agreement = options.hasCodes ? try parts.keys.makeAgreementKey() : nil
            let enrolment = Enrolment(
                activation, id: Base64URL.encode(parts.cryptography.random(16)), key: key.stored,
                agreementKey: agreement?.stored, options: options)
            try parts.storage.store(enrolment)
            return enrolment
        }
        return try Phone(enrolment, parts)
    }

    /// Binds the phone: sends the same request until the phone is bound or refused, or ten minutes
    /// are over. If the app was ended meanwhile, call it again for the stored enrolment.
    ///
    /// - Parameter show: called with `waits` when another phone has to approve, and whenever the
    ///   number changes.
    /// - Returns: the revocation code; nil if the relay does not show it again.
    public func enrol(
        showing show: @Sendable (Binding) async -> Void = { _ in }
    ) async throws(PhoneError) -> String? {
        let body = try await enrolmentBody()
        let end = parts.clock.monotonic() + 600_000
        var (pause, shown): (Int64, Binding?) = (2000, nil)
        while true {
            do throws(PhoneError) {
                let binding = try await attempt(body)
                if case .bound(let code) = binding { return code }
                if binding != shown { await show(binding) }
                shown = binding
                pause = 2000
            } catch {
                guard case .refused(let refusal) = error else {
                    guard error.hasNoAnswer, parts.clock.monotonic() < end else { throw error }
                    await parts.clock.sleep(milliseconds: pause)
                    pause = min(pause * 2, 30_000)
                    continue
                }
                if refusal.status == 401 { return try await afterRefusal(refusal) }
                guard refusal.status >= 500, parts.clock.monotonic() < end else { throw error }
                await parts.clock.sleep(milliseconds: refusal.retryAfter.map { $0 * 1000 } ?? pause)
                pause = min(pause * 2, 30_000)
                continue
            }
            guard parts.clock.monotonic() < end else { throw .unable("nobody approved this phone in time") }
            await parts.clock.sleep(milliseconds: 2000)
        }
    }

    /// Makes one attempt to bind the phone.
    private func attempt(_ body: JSONObject) async throws(PhoneError) -> Binding {
        let answer = try await exchange(RelayRequest("POST", "/verify", body))
        let device = try answer.id("device")
        switch try answer.text("login") {
        case "verified":
            let code = try answer.id("revocation_code")
            let verdict = try answer.accepted()["attestation"]?.object?["verdict"]?.string
            try change {
                $0.state = .bound(device: device)
                $0.verdict = verdict.map { ScreenText.visible($0, limit: 32) }
            }
            return .bound(revocationCode: code)
        case "wait":
            guard let number = try answer.accepted()["number"], !number.isNull else { return .waits(number: nil) }
            guard let digits = number.string, (1...9).contains(digits.utf8.count), Int64(digits: digits) != nil else {
                throw .odd("number is not one")
            }
            return .waits(number: digits)
        default: throw .odd("login has an unknown value")
        }
    }

    private func enrolmentBody() async throws(PhoneError) -> JSONObject {
        guard case .begun(let code, let websiteKey) = enrolment.state else { throw .unable("the phone is bound") }
        let (enrolment, now) = (enrolment, now)
        let agreement = try signing {
            try enrolment.agreementKey.map { try parts.keys.agreementKey(stored: $0).publicKey }
        }
        var body: JSONObject = ["id_token": .string(enrolment.token), "activation_code": .string(code)]
        body["dev_token"] = enrolment.pushToken.map { .string($0) }
        let claims = Statement.proof(enrolment, code: code, agreement: agreement, at: now)
        body["proof"] = .string(
            try signing { try JWS.sign("twoefay-enrol+jwt", ("jwk", .object(key.publicKey.jwk)), claims, by: key) })
        if let websiteKey {
            let claims = Statement.binding(enrolment, key: key.publicKey, agreement: agreement)
            body["binding"] = .string(
                JWS.authenticate("twoefay-binding+jwt", claims, key: websiteKey, cryptography))
        }
        if let attester = parts.attester {
            let data = AppAttestation.clientData(enrolment, code: code, key: key.publicKey, cryptography)
            do {
                body["attestation"] = .object(try await attester.attest(cryptography.sha256(data), for: enrolment.id))
            } catch {
                throw .unable("\(error)")
            }
        }
        body["name"] = enrolment.name.map { .string($0) }
        body["platform"] = .string(enrolment.platform.rawValue)
        body["environment"] = .string(enrolment.environment.rawValue)
        return body
    }

    /// Finds out whether a refused key is bound all the same: the answer of an earlier attempt may
    /// have been lost. A key that is not bound is removed.
    ///
    /// The thrown error is not a 401 if the relay could not say it: the key is kept then, and
    /// `enrol` may be called again.
    private func afterRefusal(_ refusal: Refusal) async throws(PhoneError) -> String? {
        let answer = try await send(RelayRequest("POST", "/device", ["certificate": true]))
        if answer.status == 401 {
            if answer.fields["www-authenticate"]?.contains("invalid_dpop_proof") == true {
                try forget()
                throw .refused(refusal)
            }
            throw .odd("the relay does not say whether this phone is bound")
        }
        let device = try answer.id("device")
        try change { $0.state = .bound(device: device) }
        return nil
    }
}
