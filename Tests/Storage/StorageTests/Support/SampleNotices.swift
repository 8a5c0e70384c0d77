import Domain
import Relay
import World

@testable import Storage

extension Sample {
    /// Runs every statement about notices and accounts.
    static func runNotices(on store: Store, _ operation: () -> Domain.Operation) async throws {
        let notice = NewNotice(
            id: id(9700), user: id(15), author: .website, title: "Title", text: "Text", at: now)
        _ = try await store.leave(notice, as: operation())
        _ = try await store.notices(of: id(15))
        for inArchive in [true, false] { _ = try await store.notices(of: id(15), inArchive: inArchive) }
        let fetch = NoticeFetch(id: id(9700), user: id(15), device: id(15), at: now)
        _ = try await store.fetch(fetch, as: operation())
        let withdrawal = NoticeWithdrawal(id(9700), of: id(15), by: .website, at: now)
        _ = try await store.withdraw(withdrawal, as: operation())
        _ = try await store.accountHolder(id(15) as UserID, at: now)
        _ = try await store.accountHolder(id(15) as UserToken, ofWebsite: "shop", at: now)
        let question = AccountQuestion(user: id(15), since: now, most: 50, reportedSince: now)
        _ = try await store.accountHistory(question)
        _ = try await store.freeze(LateFraud(challenge: id(35), of: id(35), at: now), as: operation())
    }
}
