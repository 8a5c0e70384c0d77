import Domain
import Log
import World

extension Relay {
    /// Lifts a lock and forgets the failures of all phones of the user. What a user said was fraud is not the website's
    /// to wave away, unless its word counts for everything under its policy, and what an operator has locked only an
    /// operator unlocks.
    public func unlock(username: String, by website: Website, as operation: Operation) async throws(Refusal) {
        let row = try await user(named: username, of: website)
        let mayThaw = website.policy.furtherFactors == .website
        let unlocked = try await ask("unlock") { () async throws(StoreFailure) in
            try await store.unlock(
                row.id, from: mayThaw ? [.locked, .frozen] : [.locked], by: .website, at: time.now(), as: operation)
        }
        if unlocked {
            log.notice("user.unlocked", [.website: website.name, .user: row.id.text])
            return
        }
        // Not what was read before: it may have been frozen since.
        let now = try await user(named: username, of: website)
        guard now.stoppedBy != .operator else { throw .stopped("user unlock") }
        guard now.state != .frozen else {
            throw .forbidden(
                "The user said that a login was not theirs. Once that is cleared up, the operator lifts it: "
                    + "twoefay user unlock")
        }
    }
}
