/// The state of the phone's PIN at the relay.
public struct PINStatus: Sendable, Equatable {
    public enum State: String, Sendable {
        case none, set, locked
    }

    public let state: State
    /// The number of changes so far.
    public let version: Int64
    public let triesLeft: Int64
    public let pukTriesLeft: Int64

    init(_ answer: RelayAnswer) throws(PhoneError) {
        guard let pin = try answer.accepted()["pin"]?.object,
            let state = pin["state"]?.string.flatMap({ State(rawValue: $0) }), let version = pin["version"]?.integer,
            let triesLeft = pin["tries_left"]?.integer, let pukTriesLeft = pin["puk_tries_left"]?.integer
        else { throw .odd("the state of the PIN is missing") }
        self.state = state
        self.version = version
        self.triesLeft = triesLeft
        self.pukTriesLeft = pukTriesLeft
    }
}

/// The PIN of the phone. The relay alone notices a wrong one. What the person types is in memory
/// only, and nothing that depends on it is stored.
extension Phone {
    /// A change of the PIN, with what proves it.
    public enum PINChange: Sendable {
        /// Sets the first PIN.
        case set
        case change(old: String)
        case reset(puk: String)
        /// Sets a new PIN by a code that the help desk has read out.
        case unlock(code: String)
    }

    public func pinStatus() async throws(PhoneError) -> PINStatus {
        try PINStatus(try await send(RelayRequest("GET", "/device/pin")))
    }

    /// Changes the PIN.
    ///
    /// - Parameter pin: the new PIN, which the person has typed twice.
    /// - Returns: the new PUK; nil after `change`. Show it once, and do not store it.
    public func changePIN(to pin: String, _ change: PINChange) async throws(PhoneError) -> String? {
        guard PINSecret.isPIN(pin) else { throw .unable("a PIN has 4 to 12 digits") }
        if enrolment.pinSecret == nil { try self.change { $0.pinSecret = PINSecret(cryptography.random(32)) } }
        let version = try await pinStatus().version + 1
        var (word, puk, code): (String, String?, String?) = ("set", PINSecret.newPUK(cryptography), nil)
        var proof: (member: String, digits: String, purpose: PINSecret.Purpose)?
        switch change {
        case .set: break
        case .change(let old): (word, puk, proof) = ("change", nil, ("pin_signature", old, .pin))
        case .reset(let former): (word, proof) = ("reset", ("puk_signature", former, .puk))
        case .unlock(let typed): (word, code) = ("unlock", typed.filter { $0 != " " && $0 != "-" })
        }
        let key = try pinKey(pin, .pin).publicKey
        let pukKey = try puk.map { digits throws(PhoneError) in try pinKey(digits, .puk).publicKey }
        let claims = Statement.pin(
            word, version: version, pin: key, puk: pukKey, unlockCode: code, for: enrolment.audience, at: now)
        let statement = try sign("twoefay-pin+jwt", claims)
        var body: JSONObject = ["pin": .string(statement)]
        if let proof {
            body[proof.member] = .string(try pinSignature(proof.digits, proof.purpose, beside: statement))
        }
        // The same body counts once.
        let answer = try await sendUntilAnswered(RelayRequest("POST", "/device/pin", body), within: 30_000)
        _ = try PINStatus(answer)
        return puk
    }

    private func pinKey(_ digits: String, _ purpose: PINSecret.Purpose) throws(PhoneError) -> any SigningKey {
        guard let secret = enrolment.pinSecret else { throw .unable("this phone has no PIN") }
        return try signing { try secret.key(of: digits, for: purpose, cryptography) }
    }

    /// Signs a statement with the key of the PIN or PUK, too.
    func pinSignature(
        _ digits: String, _ purpose: PINSecret.Purpose, beside statement: String
    ) throws(PhoneError) -> String {
        let key = try pinKey(digits, purpose)
        return try signing { try JWS.signature(beside: statement, by: key) }
    }
}
