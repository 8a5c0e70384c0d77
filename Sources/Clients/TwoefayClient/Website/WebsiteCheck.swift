import Attestation
import JSON

/// Checks of what the relay reports about a login.
extension TwoefayRelay {
    /// Checks an answer that came another way: the `data` of the webhook `login.decided`. It spends the
    /// request of an approval as the last step.
    public func check(_ login: Login, _ answer: JSONObject) async throws -> Decision {
        switch answer["login"]?.string.flatMap({ LoginOutcome.Login(rawValue: $0) }) {
        case .wait: return Decision(.open, answer)
        case .failure: return Decision(.denied, answer)
        case .success: break
        case .nothing, nil: throw CallFault.odd("login must be success, failure or wait")
        }
        let phones = try await phones(for: login, answer)
        // A phone that was unpinned counts as well: the relay reports the unbinding of phones.
        let wasPinned = try await store.wasPinned(login.username)
        let approval = try proved(login, answer, phones, isFirst: !wasPinned && phones.isEmpty)
        guard try await store.spend(login.asked.request) else { throw ReceiptFault.requestUsed }
        return Decision(
            .approved, answer, userVerification: approval?.userVerification,
            assurance: assurance(answer, by: approval, of: phones))
    }

    /// Returns the user's pinned phones. The phone may have been bound since the login began: its
    /// binding proves its key now as well as then.
    private func phones(for login: Login, _ answer: JSONObject) async throws -> [PinnedPhone] {
        let phones = try await store.pins(of: login.username)
        let isPinned = phones.contains { $0.device.isExactly(answer["device"]?.string ?? "") }
        guard !isPinned, answer["proof"]?.string == "signed",
            try await !store.secrets(of: login.username, at: now).isEmpty
        else { return phones }
        try await confirm(login.username)
        return try await store.pins(of: login.username)
    }

    /// Checks a success. Returns the phone's approval; nil if a word of the relay was accepted.
    ///
    /// - Parameter isFirst: whether no phone of the user was ever pinned.
    private func proved(
        _ login: Login, _ answer: JSONObject, _ phones: [PinnedPhone], isFirst: Bool
    ) throws(ReceiptFault) -> Approval? {
        let approval = try approval(login, answer, phones, isFirst: isFirst)
        guard let challenge = answer["challenge"]?.string, challenge.isExactly(login.challenge) else {
            throw .challenge
        }
        try requireStrength(login, answer, assurance(answer, by: approval, of: phones))
        try receipts.requireYoung(login.asked, at: now)
        return approval
    }

    private func approval(
        _ login: Login, _ answer: JSONObject, _ phones: [PinnedPhone], isFirst: Bool
    ) throws(ReceiptFault) -> Approval? {
        switch answer["proof"]?.string.map({ Proof(rawValue: $0) }) {
        case .code where requirements.acceptCodes: return nil
        case .signed where requirements.allowUnpinned && isFirst,
            .certificate where requirements.allowUnpinned && isFirst,
            .website where requirements.allowUnpinned && isFirst:
            return nil
        default: break
        }
        let evidence = try LoginEvidence(answer)
        return try receipts.approval(evidence, to: login.asked, from: phones)
    }

    /// The assurance that counts. A page has `high` only if it comes from neither the relay's host,
    /// which is never pinned, nor a host at which people enter their password.
    private func assurance(_ answer: JSONObject, by approval: Approval?, of phones: [PinnedPhone]) -> Assurance? {
        let told: Assurance? = answer.word(ifAny: "assurance")
        guard told == .high, let approval,
            let web = phones.first(where: { $0.device.isExactly(approval.device) })?.web
        else { return told }
        return loginHosts.isEmpty || web.isServed(by: loginHosts) ? .substantial : told
    }

    /// Compares the relay's word: an honest one must not be weaker than the website asked.
    ///
    /// - Parameter assurance: the word about the assurance, as far as it counts.
    private func requireStrength(
        _ login: Login, _ answer: JSONObject, _ assurance: Assurance?
    ) throws(ReceiptFault) {
        let factor = Factor(rawValue: answer["factor"]?.string ?? "")
        let rank = Self.ranks.firstIndex { $0 == assurance } ?? -1
        if answer["proof"]?.string == "code" {
            guard let most = Self.mostOfCode[factor] else { throw .factor }
            try requireAsked(factor, login)
            guard rank <= Self.ranks.firstIndex(of: most) ?? -1 else { throw .assurance }
        } else {
            try requireAsked(factor, login)
        }
        if let least = login.leastAssurance {
            guard let lowest = Self.ranks.firstIndex(of: least), rank >= lowest else { throw .assurance }
        }
    }

    private func requireAsked(_ factor: Factor, _ login: Login) throws(ReceiptFault) {
        guard let factors = login.factors else { return }
        // A pull is a push that the phone fetched.
        guard factors.contains(factor == .pull ? .push : factor) else { throw .factor }
    }

    /// The levels of assurance, from the lowest to the highest.
    private static let ranks: [Assurance] = [.low, .restricted, .substantial, .high]
    /// The most that a code of each factor assures (docs/websites/api.md).
    private static let mostOfCode: [Factor: Assurance] = [
        .totp: .substantial, .hotp: .substantial, .recovery: .substantial, .sms: .restricted, .mail: .low,
        .operator: .low,
    ]
}
