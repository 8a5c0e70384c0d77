import Bytes
import Crypto
import Domain
import JSON
import Relay
import TestSupport
import World

/// A website that uses PINs, and Ada's bound phone. The keys of PINs are made from the wire
/// protocol; how a phone derives them does not matter to the relay.
struct PINShop: Sendable {
    typealias Outcome = Result<ChallengeLife.Result, Refusal>

    let shop: AttestedShop
    let bound: RelayRig.BoundPhone
    let pin = PINShop.newKey()
    let puk = PINShop.newKey()

    var rig: RelayRig { shop.rig }

    init(
        _ kind: StoreKind, pin: PINUse = .required, _ policies: [String: String] = [:], webhook: String? = nil,
        email: String? = nil, phone: TestPhone? = nil
    ) async throws {
        shop = try await AttestedShop(
            kind, policies.merging(["pin": pin.rawValue]) { $1 }, webhook: webhook, email: email)
        bound = try await shop.bound(nil, nil, phone)
    }

    /// The same user with a further phone, which has a PIN of its own.
    init(beside other: PINShop) async throws {
        shop = other.shop
        bound = try await shop.bound(nil, code: try await shop.ada.furtherCode())
    }

    static func newKey() -> P256PrivateKey {
        guard let key = try? P256PrivateKey.generate() else { fatalError("no key") }
        return key
    }

    /// The phone as the relay reads it with each request.
    func credential(_ relay: RelayRig? = nil) async throws -> PhoneCredential {
        let bound = bound.credential
        return try await (relay ?? rig).on { relay in
            try await relay.device(bound.id, key: bound.key, isCertified: true)
        }
    }

    // MARK: Statements

    static func signature(_ compact: String, by key: P256PrivateKey) throws -> String {
        let input = compact.split(separator: ".").dropLast().joined(separator: ".")
        return Base64URL.encode(try key.sign(Array(input.utf8)))
    }

    func statement(
        _ change: String, _ version: Int, pin: P256PrivateKey, puk: P256PrivateKey? = nil,
        by signer: P256PrivateKey? = nil, _ edit: (inout JSONObject) -> Void = { _ in }
    ) throws -> String {
        var claims: JSONObject = [
            "v": 1, "aud": .string("\(RelayRig.origin)#shop"), "change": .string(change),
            "version": .integer(Int64(version)), "pin": .object(pin.publicKey.jwk),
            "iat": .integer(rig.time.now().seconds),
        ]
        claims.set("puk", (puk?.publicKey.jwk).map { .object($0) })
        edit(&claims)
        return try JWS.sign(
            header: ["typ": "twoefay-pin+jwt", "kid": .string(bound.credential.id.text)],
            payload: JSONWriter.write(.object(claims)), key: signer ?? bound.phone.key)
    }

    /// Sends a statement with the signatures of these keys over it.
    func send(
        _ statement: String, pin: P256PrivateKey? = nil, puk: P256PrivateKey? = nil, pinSignature made: String? = nil,
        to relay: RelayRig? = nil
    ) async throws -> Result<PhonePIN, Refusal> {
        let (pinSignature, pukSignature) = (
            try made ?? pin.map { try Self.signature(statement, by: $0) },
            try puk.map { try Self.signature(statement, by: $0) }
        )
        let phone = try await credential(relay)
        return try await Self.outcome {
            try await (relay ?? rig).on { relay in
                try await relay.changePIN(
                    statement, pinSignature: pinSignature, pukSignature: pukSignature, by: phone)
            }
        }
    }

    /// Sets the first PIN.
    func set() async throws {
        _ = try await send(try statement("set", 1, pin: pin, puk: puk)).get()
    }

    static func outcome<Value>(_ body: () async throws -> Value) async throws -> Result<Value, Refusal> {
        do { return .success(try await body()) } catch let refusal as Refusal { return .failure(refusal) }
    }

    // MARK: Answers

    func ask() async throws -> ChallengeID {
        let challenge = try await shop.ada.login().challenge
        await rig.settled()
        return challenge
    }

    func answer(
        _ challenge: ChallengeID, pin: P256PrivateKey?, number: String? = nil, over other: ChallengeID? = nil
    ) async throws -> PhoneAnswer {
        let signed = try await rig.signed(.approve, challenge, number: number, by: bound)
        let covered = if let other { try await rig.signed(.approve, other, number: number, by: bound) } else { signed }
        return PhoneAnswer(
            approves: true, signed: signed, pinSignature: try pin.map { try Self.signature(covered, by: $0) })
    }

    func post(
        _ answer: PhoneAnswer, _ challenge: ChallengeID, by phone: PhoneCredential? = nil, to relay: RelayRig? = nil
    ) async throws -> Outcome {
        let current = try await credential(relay)
        return try await Self.outcome {
            try await (relay ?? rig).on { relay in
                try await relay.answer(challenge, answer, by: phone ?? current)
            }
        }
    }

    /// Approves a challenge, signed with the key of a PIN; nil for an approval without one.
    func approve(_ challenge: ChallengeID, pin: P256PrivateKey?) async throws -> Outcome {
        try await post(try await answer(challenge, pin: pin), challenge)
    }

    /// Approves with that many wrong PINs.
    func guessWrong(_ challenge: ChallengeID, _ count: Int) async throws {
        for _ in 0..<count { _ = try await approve(challenge, pin: Self.newKey()) }
    }

    /// The numbers of webhooks and of mails that announce this event of the phone.
    func announced(_ event: String) throws -> [Int64] {
        try ["webhook", "mail"].map {
            try rig.count(
                "SELECT count(*) FROM outbox WHERE kind = '\($0)' AND event = '\(event)' AND device_id IS NOT NULL")
        }
    }

    func audited(_ event: String) throws -> Int64 {
        try rig.count("SELECT count(*) FROM audit WHERE event = '\(event)'")
    }
}
