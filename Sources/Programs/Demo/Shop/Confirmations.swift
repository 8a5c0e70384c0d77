import TwoefayClient

/// Somebody is asked. From then on the website itself waits for the end: who asked may close the browser, and what an end
/// means for the customer is done all the same, once, and here. Pages show how it stands; what they alone do is to let in the
/// browser that asked, and to show it what it asked to be given.
extension Shop {
    func ask(
        _ login: LoginRequest, for purpose: PendingConfirmation.Purpose
    ) async throws(CallFault) -> PendingConfirmation {
        let open = try await website.ask(login)
        return question(login.username, purpose, open.challenge, open.number) { [website] () throws(CallFault) in
            try await website.verdict(on: open, takesCodes: purpose.takesCodes)
        }
    }

    /// It was the relay that asked: it wants this yes itself, and looks whether it was given when the call is repeated.
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
                // Longer than any question lives the relay has not said what became of it, or it knows of none.
                return nil
            }
        }
        return PendingConfirmation(account: account, purpose: purpose, challenge: challenge, number: number, end: end)
    }
}
