import Domain
import Log
import World

extension Relay {
    /// Unlocks a user and resets the failure counts of all their phones. If the user's codes are
    /// locked, it asks the user to reopen them.
    ///
    /// The website can lift a freeze after a report of fraud only if its policy lets it decide
    /// alone about further factors. If an operator locked the user, only an operator can unlock.
    ///
    /// - Parameters:
    ///   - approval: the challenge by which the user approved the reopening of the codes.
    ///   - isKnown: whether the website knows the browser of this request as the user's.
    public func unlock(
        username: String, approval: ChallengeID? = nil, isKnown: Bool = false, by website: Website,
        as operation: Operation
    ) async throws(Refusal) {
        let row = try await user(named: username, of: website)
        guard row.state != .disabled else { throw .disabled }
        let mayThaw = website.policy.furtherFactors == .website
        let unlocked = try await withStore("unlock") { () async throws(StoreFailure) in
            try await store.unlock(
                row.id, from: mayThaw ? [.locked, .frozen] : [.locked], lifting: ChangedValues(unlocking: row.state),
                by: .website, at: time.now(), as: operation)
        }
        if unlocked { log.notice("user.unlocked", [.website: website.name, .user: row.id.text]) }
        // Read again: the user may have been frozen since the first read.
        let now = try await user(named: username, of: website)
        guard now.state == .active || now.stoppedBy != .operator else { throw .stopped("user unlock") }
        guard now.state != .frozen else {
            throw .forbidden(
                LocalizedText(
                    "The user reported a login as fraud. When that is resolved, a recovery code of the user lifts "
                        + "the freeze, or an operator does: twoefay user unlock",
                    de: "Der Benutzer hat eine Anmeldung als Betrug gemeldet. Ist das geklärt, hebt ein "
                        + "Notfallcode des Benutzers die Sperre auf oder der Betreiber: twoefay user unlock"))
        }
        try await reopenCodes(of: now, approval, isKnown, website, operation)
    }

    /// Reopens the user's codes after the user approved this on a phone. The website's word or a
    /// code is not enough, because an attacker who guesses codes would gain more guesses.
    private func reopenCodes(
        of user: UserRow, _ approval: ChallengeID?, _ isKnown: Bool, _ website: Website, _ operation: Operation
    ) async throws(Refusal) {
        guard let lockedAt = user.codes.lockedAt else { return }
        guard website.policy.factors.contains(.push) else { throw .codesLocked }
        let approved = try await approved(
            .codes(of: user.id, lockedAt: lockedAt, isKnown: isKnown), by: approval, user, website, operation)
        let reopening = CodeReopening(user: user.id, lockedAt: lockedAt, approved: approved, at: time.now())
        let reopened = try await withStore("unlock") { () async throws(StoreFailure) in
            try await store.reopenCodes(reopening, as: operations.fixed("reopen codes", operation.id.bytes))
        }
        guard reopened else {
            // Another request with the same approval may have reopened the codes.
            guard try await self.user(named: user.username, of: website).codes.isLocked else { return }
            throw Self.noApproval
        }
        log.notice(
            "codes.unlocked",
            [.website: website.name, .user: user.id.text, .challenge: approved.challenge.text])
    }
}
