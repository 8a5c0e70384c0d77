import Domain
import Log
import World

extension Relay {
    /// Lifts a lock of the user and forgets the wrong numbers of all their phones; asks the user to reopen their codes
    /// where these are locked. What a user said was fraud is not the website's to wave away, unless its word counts for
    /// everything under its policy, and what an operator has locked only an operator unlocks.
    ///
    /// - Parameters:
    ///   - approval: the challenge with which the user has approved of reopening their codes.
    ///   - isKnown: the website knows the browser that asks as this user's.
    public func unlock(
        username: String, approval: ChallengeID? = nil, isKnown: Bool = false, by website: Website,
        as operation: Operation
    ) async throws(Refusal) {
        let row = try await user(named: username, of: website)
        let mayThaw = website.policy.furtherFactors == .website
        let unlocked = try await withStore("unlock") { () async throws(StoreFailure) in
            try await store.unlock(
                row.id, from: mayThaw ? [.locked, .frozen] : [.locked], by: .website, at: time.now(), as: operation)
        }
        if unlocked { log.notice("user.unlocked", [.website: website.name, .user: row.id.text]) }
        // Not what was read before: it may have been frozen since.
        let now = try await user(named: username, of: website)
        guard now.state == .active || now.stoppedBy != .operator else { throw .stopped("user unlock") }
        guard now.state != .frozen else {
            throw .forbidden(
                "The user said that a login was not theirs. Once that is cleared up, the operator lifts it: "
                    + "twoefay user unlock")
        }
        try await reopenCodes(of: now, approval, isKnown, website, operation)
    }

    /// Codes are taken again once the user has approved of that on a phone. Neither the website's word nor a code is
    /// enough: whoever guesses would get more guesses by it.
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
            // Another request with the same approval may have been the one that reopened the codes.
            guard try await self.user(named: user.username, of: website).codes.isLocked else { return }
            throw Self.noApproval
        }
        log.notice(
            "codes.unlocked",
            [.website: website.name, .user: user.id.text, .challenge: approved.challenge.text])
    }
}
