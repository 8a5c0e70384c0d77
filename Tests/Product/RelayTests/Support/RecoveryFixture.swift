import Bytes
import Crypto
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Ada at a shop where users can recover lost factors. She has an app, recovery codes and, if a
/// test wants it, a phone.
struct RecoveryFixture {
    static let page = "https://shop.example/recover"
    static let address = "ada@example.com"

    let ada: Person
    let phone: PhoneCredential?
    /// The secret of the app.
    let app: String
    let codes: [String]
    var rig: RelayRig { ada.rig }
    var shop: Website { ada.website }

    init(_ kind: StoreKind, hasPhone: Bool = true, _ policies: [String: String] = [:]) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop(
            "shop",
            ["recovery-url": Self.page, "further-factors": "website", "number": "0"].merging(policies) { $1 },
            webhook: "https://shop.example/hook")
        ada = try await Person.registered("ada", at: shop, rig, email: Self.address)
        codes = try await ada.addRecoveryCodes()
        phone = hasPhone ? try await ada.bound(try TestPhone(pushToken: "ada"), ada.code) : nil
        app = try await ada.withTOTP()
        // Later codes of the app are new ones.
        rig.time.advance(by: .seconds(60))
        await rig.settled()
    }

    private init(ada: Person, phone: PhoneCredential?, app: String, codes: [String]) {
        self.ada = ada
        self.phone = phone
        self.app = app
        self.codes = codes
    }

    /// Returns the same people after the shop has changed its policies.
    func under(_ policies: [String: String]) async throws -> RecoveryFixture {
        var policy = shop.policy
        for (key, text) in policies { try policy.set(key, to: text) }
        try rig.execute("UPDATE website SET policy = '\(policy.json)'")
        let website = try await rig.on { relay in
            try await relay.website(named: "shop", key: SHA256.hash(Array("shop".utf8)))
        }
        let person = Person(rig: rig, website: website, username: "ada", token: ada.token, code: ada.code)
        return RecoveryFixture(ada: person, phone: phone, app: app, codes: codes)
    }

    func start(_ factor: Factor = .totp, username: String = "ada") async throws -> Timestamp {
        let shop = shop
        let expiresAt = try await rig.on { relay in
            try await relay.startRecovery(of: factor, username: username, by: shop, as: relay.operations.new())
        }
        await rig.settled()
        return expiresAt
    }

    /// Returns the token of the newest link in a mail.
    func token() throws -> String {
        try #require(rig.mails.sent.compactMap(\.recoveryLink).last)
    }

    func cancelToken() throws -> String {
        try #require(rig.mails.sent.compactMap(\.cancelLink).last)
    }

    func open(
        _ token: String, as operation: Domain.Operation? = nil, at website: Website? = nil
    ) async throws -> (handle: String, state: SeenRecovery) {
        let (operation, website) = (operation ?? rig.relay.operations.new(), website ?? shop)
        return try await rig.on { relay in
            try await relay.openRecovery(token: token, by: website, as: operation)
        }
    }

    /// Starts a recovery, and hands its link in.
    func opened(_ factor: Factor = .totp) async throws -> String {
        _ = try await start(factor)
        return try await open(try token()).handle
    }

    func prove(_ handle: String, _ approval: ChallengeID? = nil) async throws -> SeenRecovery {
        let shop = shop
        let seen = try await rig.on { relay in
            try await relay.proveRecovery(
                handle: handle, approval: approval, by: shop, as: relay.operations.new())
        }
        await rig.settled()
        return seen
    }

    /// Returns the challenge of the second proof.
    func asked(_ handle: String) async throws -> ChallengeID {
        let refused = await refusal { try await prove(handle) }
        guard case .approvalRequired(let challenge, _)? = refused else {
            throw RigFailure("no proof is asked: \(String(describing: refused))")
        }
        await rig.settled()
        return challenge
    }

    /// Submits a code as the second proof.
    func answer(_ challenge: ChallengeID, _ code: String) async throws -> ChallengeResult {
        let shop = shop
        return try await rig.on { relay in
            try await relay.backup(challenge, of: nil, code: code, by: shop, as: relay.operations.new())
        }
    }

    /// Gives the second proof by a recovery code.
    func proved(_ handle: String, by code: Int = 0) async throws -> SeenRecovery {
        let challenge = try await asked(handle)
        let result = try await answer(challenge, codes[code])
        guard result.result == .success else { throw RigFailure("not answered") }
        return try await prove(handle, challenge)
    }

    func state(_ handle: String) async throws -> SeenRecovery {
        let shop = shop
        return try await rig.on { relay in try await relay.recoveryState(handle: handle, of: shop) }
    }

    func finish(_ handle: String, as operation: Domain.Operation? = nil) async throws -> TOTPSetup {
        let (shop, operation) = (shop, operation ?? rig.relay.operations.new())
        return try await rig.on { relay in
            try await relay.recoverTOTP(handle: handle, shape: CodeShape(), by: shop, as: operation)
        }
    }

    func phase() throws -> String {
        try rig.text("SELECT state AS value FROM recovery ORDER BY created_at DESC LIMIT 1")
    }

    /// Logs in with a code of an app. Returns whether that succeeds.
    func logsIn(_ secret: String) async throws -> Bool {
        let shop = shop
        rig.time.advance(by: .seconds(60))
        let asked = try await ada.login()
        let code = try ada.code(secret)
        return try await rig.on { relay in
            try await relay.backup(asked.challenge, of: nil, code: code, by: shop, as: relay.operations.new())
        }.result == .success
    }

    func events(_ event: String) throws -> [Int64] {
        try ["webhook", "mail"].map {
            try rig.count("SELECT count(*) FROM outbox WHERE kind = '\($0)' AND event = '\(event)'")
        }
    }
}

extension Message {
    private func link(_ label: String) -> String? {
        let secret: Secret
        switch content {
        case .recovery(.begin(let link)): secret = link
        case .recovery(.announcement(let link, _, _)): secret = link
        default: return nil
        }
        let text = String(decoding: secret.reveal(), as: UTF8.self)
        let start = "\(RecoveryFixture.page)#\(label)="
        return text.hasPrefix(start) ? String(text.dropFirst(start.count)) : nil
    }

    /// The token of the link that begins a recovery.
    var recoveryLink: String? { link("recovery") }
    /// The token of the link that cancels one.
    var cancelLink: String? { link("cancel") }
}
