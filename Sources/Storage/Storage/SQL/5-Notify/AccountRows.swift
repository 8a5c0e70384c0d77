import Domain
import Relay
import World

extension Store: AccountStore {
    public func accountHolder(_ user: UserID, at now: Timestamp) async throws(StoreFailure) -> AccountHolder? {
        try await holder(holderByID(user: .id(user)), at: now)
    }

    public func accountHolder(
        _ token: UserToken, ofWebsite name: String, at now: Timestamp
    ) async throws(StoreFailure) -> AccountHolder? {
        try await holder(holderByToken(token: .id(token), website: .text(name)), at: now)
    }

    private func holder(_ read: BoundStatement, at now: Timestamp) async throws(StoreFailure) -> AccountHolder? {
        try await run(
            Query(script: Script("account", reads: [read])) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                let states: [UserState?] = [try row.word("state"), try row.optionalWord("prior_state")]
                return AccountHolder(
                    user: try userRow(row, at: now),
                    website: WebsiteRow(
                        id: try row.id("site_id"), name: try row.text("site_name"),
                        displayName: try row.text("site_display_name"), policy: try row.text("site_policy")),
                    isFrozen: states.contains(.frozen), mailChangedAt: try row.optionalTimestamp("email_changed_at"))
            })
    }
}

private let holderTables = [CheckedTable(.user, as: "u"), CheckedTable(.website, as: "w", prefix: "site_")]

private let holderAndWebsite = """
    \(SignedTable.user.checked(as: "u")) JOIN \(SignedTable.website.checked(as: "w")) ON w.id = u.website_id
    """

private let holderByID = Statement(
    checking: holderTables, uncheckedUserColumns, from: "\(holderAndWebsite) WHERE u.id = :user")

private let holderByToken = Statement(
    checking: holderTables, uncheckedUserColumns,
    from: "\(holderAndWebsite) WHERE u.token = :token AND w.name = :website AND w.state = 'active'")

extension Store {
    public func accountHistory(_ question: AccountQuestion) async throws(StoreFailure) -> AccountHistory {
        let user = SQLValue.id(question.user)
        let script = Script(
            "account",
            reads: [
                newestLogins(
                    user: user, since: .timestamp(question.since), most: .integer(Int64(question.most))),
                lateReports(user: user, since: .timestamp(question.reportedSince)), recoveryCodes(user: user),
            ])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                var logins: [AccountLogin] = []
                for row in rows[0] { logins.append(try row.accountLogin()) }
                var reports: Set<OperationID> = []
                for row in rows[1] { reports.insert(try row.id("operation")) }
                var unused: [FactorID: Int] = [:]
                for row in rows[2] {
                    guard try row.bool("is_unused") else { continue }
                    let set: FactorID = try row.id("factor_id")
                    unused[set, default: 0] += 1
                }
                return AccountHistory(logins: logins, reports: reports, unusedCodes: unused)
            })
    }
}

private let newestLogins = Statement(
    checking: [CheckedTable(.challenge, as: "c")],
    ["c.state", "c.decision", "c.reason", "c.factor", "c.device_id", "c.asked_at", "c.decided_at"],
    from: """
        \(SignedTable.challenge.checked(as: "c")) WHERE c.user_id = :user AND c.asked_at >= :since
        ORDER BY c.asked_at DESC, c.id DESC LIMIT :most
        """)

/// Reads the reports that answered no challenge. The operation of each is fixed by its reporter and
/// challenge.
private let lateReports = Statement(
    "SELECT operation FROM audit WHERE user_id = :user AND at >= :since AND event = 'fraud.reported'")

private let recoveryCodes = Statement(
    checking: [CheckedTable(.recoveryCode, as: "r")], ["r.used_at IS NULL AS is_unused"],
    from: "\(SignedTable.recoveryCode.checked(as: "r")) WHERE r.user_id = :user")

extension Row {
    fileprivate func accountLogin() throws(StoreFailure) -> AccountLogin {
        AccountLogin(
            challenge: try id("id"), life: try life(), policy: try text("policy"), nonce: try blob("nonce"),
            // A context that does not open must not hide the other logins.
            context: try? context("context"), factor: try optionalWord("factor"),
            device: try optionalID("device_id"), askedAt: try timestamp("asked_at"),
            decidedAt: try optionalTimestamp("decided_at"))
    }
}
