import Attestation
import Bytes
import Crypto
import Domain
import JSON
import Relay
import SimulatedAttestation
import Storage
import TestSupport
import World

/// A relay that trusts a simulated root, and Ada, who has no phone yet.
struct AttestedShop: Sendable {
    let rig: RelayRig
    private(set) var website: Website
    private(set) var ada: Person
    let authorities: SimulatedAuthorities
    let iPhone: SimulatedIPhone

    init(
        _ kind: StoreKind, _ policies: [String: String] = [:], webhook: String? = nil, email: String? = nil
    ) async throws {
        rig = try await RelayRig(kind)
        let root = try SimulatedCertificate.root("simulated root", at: rig.time.now())
        authorities = try SimulatedAuthorities(root: root)
        iPhone = try SimulatedIPhone(root: root)
        let policies = ["answers": "signed", "number": "0", "further-factors": "website"].merging(policies) { $1 }
        website = try await rig.website("shop", policies: policies, webhook: webhook)
        ada = try await Person.registered("ada", at: website, rig, email: email)
        try trust()
    }

    /// Returns the shop with another policy, which an operator has set.
    func changed(_ policies: [String: String]) async throws -> AttestedShop {
        var policy = website.policy
        for (key, text) in policies { try policy.set(key, to: text) }
        try rig.execute("UPDATE website SET policy = '\(policy.json)'")
        var shop = self
        let key = SHA256.hash(Array("shop".utf8))
        shop.website = try await rig.on { relay in try await relay.website(named: "shop", key: key) }
        shop.ada = Person(rig: rig, website: shop.website, username: "ada", token: ada.token, code: ada.code)
        return shop
    }

    /// Makes the relay trust the root.
    ///
    /// - Parameters:
    ///   - age: the age of the revocation list; nil for no list.
    ///   - revoked: the serial numbers on the list.
    func trust(
        listAge age: Duration? = .zero, revoked: [String] = [], roots: [Certificate]? = nil
    ) throws {
        let entries = revoked.map { #""\#($0)":{"status":"REVOKED"}"# }.joined(separator: ",")
        let list = try age.map { age in
            try RevocationList(json: Array(#"{"entries":{\#(entries)}}"#.utf8), fetchedAt: rig.time.now() - age)
        }
        let roots = roots ?? authorities.roots
        rig.relay.replace(
            AttestationVerifier(
                roots: AttestationRoots(apple: roots, android: roots), appleApps: [SimulatedIPhone.app],
                androidApps: [SimulatedAndroid.app], revocationList: list))
    }

    func subject(_ phone: TestPhone, code: String? = nil) -> AttestationSubject {
        AttestationSubject(
            audience: "\(RelayRig.origin)#shop", user: ada.token.text, activationCode: code ?? ada.code,
            key: phone.key.publicKey)
    }

    func android(
        _ subject: AttestationSubject, key: P256PrivateKey, by authorities: SimulatedAuthorities? = nil,
        _ change: (inout SimulatedAndroid) -> Void = { _ in }
    ) throws -> JSONValue {
        var android = SimulatedAndroid()
        change(&android)
        let chain = try (authorities ?? self.authorities).chain(
            android, key: key, challenge: AttestationChallenge.android(subject))
        return .object(AttestationStatement.android(chain: chain).json)
    }

    func apple(
        _ subject: AttestationSubject, by iPhone: SimulatedIPhone? = nil,
        _ change: (inout SimulatedIPhone) -> Void = { _ in }
    ) throws -> JSONValue {
        var iPhone = iPhone ?? self.iPhone
        change(&iPhone)
        let object = try iPhone.object(SHA256.hash(AttestationChallenge.clientData(subject)))
        return .object(AttestationStatement.apple(keyID: iPhone.keyID, object: object).json)
    }

    /// The attestation of a phone for its activation, without a fault.
    func attestation(
        _ platform: AttestedDevice.Platform, of phone: TestPhone, code: String? = nil
    ) throws -> JSONValue {
        let subject = subject(phone, code: code)
        return platform == .ios ? try apple(subject) : try android(subject, key: phone.key)
    }

    func bind(
        _ phone: TestPhone, _ attestation: JSONValue?, code: String? = nil, platform: Platform = .other,
        claims: (inout JSONObject) -> Void = { _ in }
    ) async throws -> Bind {
        let code = code ?? ada.code
        let proof = try phone.proof(
            token: ada.token.text, code: code, origin: RelayRig.origin, website: "shop", at: rig.time.now(),
            change: claims)
        var request = BindRequest(
            token: ada.token, pushToken: phone.pushToken, activationCode: code, proof: proof, binding: nil,
            name: "Phone", platform: platform, environment: .production)
        request.attestation = attestation
        do {
            return .success(
                try await rig.on { [request] relay in try await relay.bind(request, from: UniqueText.next()) })
        } catch {
            return .failure(error as? Refusal ?? .broken)
        }
    }

    /// Binds a phone that need not wait.
    func bound(
        _ platform: AttestedDevice.Platform?, code: String? = nil, says named: Platform = .other,
        _ attestation: JSONValue? = nil, _ phone: TestPhone? = nil
    ) async throws -> RelayRig.BoundPhone {
        let phone = try phone ?? TestPhone(pushToken: UniqueText.next())
        let own = try platform.map { try self.attestation($0, of: phone, code: code) }
        let bind = try await bind(phone, attestation ?? own, code: code, platform: named)
        guard let bound = bind.bound else { throw RigFailure("not bound: \(bind)") }
        return (phone, try await ada.credential(phone, bound.device))
    }

    func stored(_ phone: RelayRig.BoundPhone) async throws -> AttestationRow? {
        let store = rig.store
        return try await rig.on { _ in try await store.attestation(of: phone.credential.id) }
    }

    // MARK: Answers

    /// Answers a new login, and returns the result or the refusal.
    ///
    /// - Parameters:
    ///   - reported: the phone's report in its answer.
    ///   - assert: makes the assertion over the signed decision.
    func answer(
        _ decision: Decision = .approve, by bound: RelayRig.BoundPhone, reporting reported: ReportedPosture? = nil,
        _ challenge: ChallengeID? = nil, assert: (String) throws -> String? = { _ in nil }
    ) async throws -> Result<ChallengeLife.Result, Refusal> {
        let challenge = if let challenge { challenge } else { try await ada.login().challenge }
        await rig.settled()
        let signed = try bound.phone.decision(
            decision.rawValue, about: try await rig.shown(challenge, to: bound.credential),
            device: bound.credential.id.text, origin: RelayRig.origin, at: rig.time.now(),
            change: { if let reported { $0.set("posture", .object(reported.json)) } })
        let answer = PhoneAnswer(
            approves: decision == .approve, signed: signed, assertion: try assert(signed))
        do {
            return .success(try await rig.post(answer, challenge, by: bound))
        } catch let refusal as Refusal {
            return .failure(refusal)
        }
    }

    /// Returns an assertion over a signed decision.
    func assertion(_ counter: UInt32, by iPhone: SimulatedIPhone? = nil) -> (String) throws -> String? {
        { signed in
            Base64URL.encode(
                try (iPhone ?? self.iPhone).assertion(SHA256.hash(Array(signed.utf8)), counter: counter))
        }
    }

    /// The demands that the phone gets with its pending challenge.
    func demands(on bound: RelayRig.BoundPhone) async throws -> JSONObject? {
        try await rig.on { relay in
            let phone = try await relay.device(bound.credential.id, key: bound.credential.key, isCertified: true)
            return try await relay.pending(for: phone).first?.demands
        }
    }
}
