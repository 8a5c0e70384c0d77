import Domain
import Relay
import Storage
import TestSupport
import World

extension RelayRig {
    /// Gives out a temporary code as the operator's tool does. Returns nil if the store refuses.
    func giveTemporaryCode(
        to user: UserID, uses: Int = 1, mayEnrol: Bool = false, life: Duration = .seconds(3600),
        replacing: FactorID? = nil
    ) async throws -> String? {
        let (store, now) = (store, time.now())
        return try await on { relay in
            let operation = relay.operations.new()
            let text = TemporaryCode.text(SystemRandomness().bytes(TemporaryCode.bytes))
            guard
                let new = NewTemporaryCode(
                    text, for: user, uses: uses, mayEnrol: mayEnrol, life: life, at: now, as: operation,
                    by: try RelayRig.sealer())
            else { throw RigFailure("no code: \(text)") }
            return try await store.run(TemporaryCodes.issue(new, replacing: replacing, as: operation)) ? text : nil
        }
    }
}

/// The help desk, and what the website and the user learn of it.
extension CodeLoginFixture {
    /// The policy of a website that allows temporary codes.
    static let allowing = ["factors": "push, totp, hotp, sms, mail, recovery, operator"]

    func giveTemporaryCode(
        uses: Int = 1, mayEnrol: Bool = false, life: Duration = .seconds(3600), replacing: FactorID? = nil
    ) async throws -> String? {
        try await rig.giveTemporaryCode(to: id, uses: uses, mayEnrol: mayEnrol, life: life, replacing: replacing)
    }

    func temporaryCode() async throws -> TemporaryCodes.Shown? {
        let store = rig.store
        return try await rig.on { [id] _ in try await store.run(TemporaryCodes.shown(of: id)) }
    }

    func revokeTemporaryCode() async throws -> Bool {
        let (store, now) = (rig.store, rig.time.now())
        return try await rig.on { [id] relay in
            try await store.run(TemporaryCodes.revoke(id, at: now, as: relay.operations.new()))
        }
    }

    /// Another code, with the same form.
    func other(_ code: String) -> String { String(code.map { $0 == "-" ? "-" : $0 == "7" ? "8" : "7" }) }

    func audited(_ event: String) throws -> Int64 {
        try rig.count("SELECT count(*) FROM audit WHERE event = '\(event)'")
    }

    /// The number of webhooks and mails about an event that are to be sent.
    func announced(_ event: String) throws -> [Int64] {
        try ["webhook", "mail"].map {
            try rig.count("SELECT count(*) FROM outbox WHERE kind = '\($0)' AND event = '\(event)'")
        }
    }

    var person: Person { Person(rig: rig, website: shop, username: "ada", token: ada, code: "") }
}
