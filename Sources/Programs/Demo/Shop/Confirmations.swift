import TwoefayClient

/// Opens challenges, and handles their ends in the background.
///
/// Invariant: the effect of a challenge happens exactly once, in the website's background task,
/// even if the browser is closed. Pages only show the state. They alone log in the browser that
/// asked, and show it what it requested. Tested in `ShopLoginTests.swift` and
/// `ShopFactorTests.swift`.
extension Shop {
    func ask(
        _ login: LoginRequest, for purpose: PendingConfirmation.Purpose
    ) async throws(CallFault) -> PendingConfirmation {
        let open = try await website.ask(login)
        return question(login.username, purpose, open.challenge, open.number) { [website] () throws(CallFault) in
            try await website.verdict(on: open, takesCodes: purpose.takesCodes)
        }
    }

    /// Follows a challenge that the relay opened because a call needs the user's approval. The
    /// relay checks the approval itself when the call is repeated.
    func asked(
        _ needed: Problem.NeededApproval, of account: String, for addition: PendingConfirmation.Addition
    ) -> PendingConfirmation {
        question(account, .addition(addition), needed.challenge, needed.number) { [website] () throws(CallFault) in
            .init(outcome: try await website.end(of: needed.challenge))
        }
    }

    private func question(
        _ account: String, _ purpose: PendingConfirmation.Purpose, _ challenge: String, _ number: String?,
        _ wait: @escaping @Sendable () async throws(CallFault) -> Website.Verdict
    ) -> PendingConfirmation {
        let end = website.backgroundTasks.begin { [sessions, customers] () -> Website.Verdict? in
            do throws(CallFault) {
                let verdict = try await wait()
                sessions.endSessionsAfterFraud(verdict.outcome.reason, of: account, challenge)
                if case .payment(let article) = purpose, verdict.isLetIn { customers.ordered(article, by: account) }
                return verdict
            } catch {
                // The relay did not report a result within the longest lifetime of a challenge, or
                // it does not know the challenge.
                return nil
            }
        }
        return PendingConfirmation(account: account, purpose: purpose, challenge: challenge, number: number, end: end)
    }
}
