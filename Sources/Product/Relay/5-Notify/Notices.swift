import Domain
import JSON
import Log
import World

/// Notices: short texts that a website or an operator leaves for a user, and that the user's phones
/// show. They decide nothing.
///
/// Every answer to a phone has the number of notices that no phone has fetched. The number comes with
/// the row of the phone, so it costs no further query. The fetch moves a notice to the archive and
/// returns a statement that the relay has signed. If that answer is lost, the phone fetches it again
/// from the archive.
///
/// Tests: `RelayTests/NoticeTests.swift`, `APITests/NoticeTests.swift`.
extension Relay {
    /// Leaves a notice for a user.
    public func leave(
        title: String, text: String, for username: String, by website: Website, as operation: Operation
    ) async throws(Refusal) -> (id: NoticeID, at: Timestamp) {
        let user = try await user(named: username, of: website)
        let notice = NewNotice(
            id: operation.identifier("notice"), user: user.id, author: .website, title: title, text: text,
            at: operation.begunAt ?? time.now())
        let isLeft = try await withStore("notice") { () async throws(StoreFailure) in
            try await store.leave(notice, as: operation)
        }
        guard isLeft else {
            throw .conflict([
                FieldFault(
                    "username", .state,
                    LocalizedText(
                        "has \(NoticeLimits.unread) messages already that no phone has fetched, or "
                            + "\(NoticeLimits.stored) in all: delete some of them",
                        de: "hat schon \(NoticeLimits.unread) Nachrichten, die kein Telefon abgerufen hat, oder "
                            + "insgesamt \(NoticeLimits.stored): Löschen Sie einige davon"))
            ])
        }
        logNotice("notice.left", notice.id, of: user.id, website.name)
        return (notice.id, notice.at)
    }

    public func notices(ofUser username: String, of website: Website) async throws(Refusal) -> [Notice] {
        let user = try await user(named: username, of: website)
        return try await withStore("notice") { () async throws(StoreFailure) in try await store.notices(of: user.id) }
    }

    /// Deletes a notice that this website has left.
    public func withdraw(_ id: NoticeID, ofUser username: String, by website: Website) async throws(Refusal) {
        let user = try await user(named: username, of: website)
        let withdrawal = NoticeWithdrawal(id, of: user.id, by: .website, at: time.now())
        let operation = operations.new()
        let isWithdrawn = try await withStore("notice") { () async throws(StoreFailure) in
            try await store.withdraw(withdrawal, as: operation)
        }
        guard isWithdrawn else { throw .notFound }
        logNotice("notice.withdrawn", id, of: user.id, website.name)
    }

    private func logNotice(_ event: StaticString, _ id: NoticeID, of user: UserID, _ website: String) {
        log.info(event, [.website: website, .user: user.text, .message: id.text])
    }
}

/// The requests of phones.
extension Relay {
    public func notices(for phone: PhoneCredential, inArchive: Bool) async throws(Refusal) -> NoticeList {
        try await withStore("notice") { () async throws(StoreFailure) in
            try await store.notices(of: phone.user, inArchive: inArchive)
        }
    }

    /// Returns a notice as a signed statement, and moves it to the archive.
    public func fetch(
        _ id: NoticeID, by phone: PhoneCredential
    ) async throws(Refusal) -> (statement: String, unread: Int) {
        let fetch = NoticeFetch(id: id, user: phone.user, device: phone.id, at: time.now())
        let operation = operations.by(phone)
        let found = try await withStore("notice") { () async throws(StoreFailure) in
            try await store.fetch(fetch, as: operation)
        }
        guard let found else { throw .notFound }
        if found.isFirst {
            logNotice("notice.read", id, of: phone.user, phone.website.name)
        }
        let notice = found.notice
        let statement = try sign(
            "twoefay-message+jwt",
            [
                "v": 1, "aud": .string("\(settings.origin)#\(phone.website.name)"),
                "id_token": .string(found.token.text), "message": .string(notice.id.text),
                "from": .string(notice.author.rawValue), "title": .string(notice.title),
                "text": .string(notice.text), "created_at": .string(notice.createdAt.rfc3339),
            ])
        return (statement, found.unread)
    }
}
