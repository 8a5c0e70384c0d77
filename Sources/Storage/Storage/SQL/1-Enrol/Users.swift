import Domain
import Relay
import World

/// Reads users and their phones.
extension Store {
    /// Counts in parts, between which other reads run: millions of users take seconds.
    public func countUsers(of website: WebsiteID, upTo most: Int) async throws(StoreFailure) -> Int {
        // A read of so many takes a few milliseconds.
        try await countUsers(of: website, upTo: most, inPartsOf: 1_000)
    }

    func countUsers(of website: WebsiteID, upTo most: Int, inPartsOf size: Int) async throws(StoreFailure) -> Int {
        var (count, last) = (0, "")
        while count < most {
            let part = min(size, most - count)
            let read = countedUsers(website: .id(website), last: .text(last), most: .integer(Int64(part)))
            let counted = try await run(
                Query(script: Script("users", reads: [read])) { rows throws(StoreFailure) in
                    guard let row = rows[0].first else { throw .internal("a count without a row") }
                    return (users: Int(try row.integer("user_count")), last: try row.optionalText("last_name"))
                })
            count += counted.users
            guard counted.users == part, let name = counted.last else { break }
            last = name
        }
        return count
    }
}

private let countedUsers = Statement(
    """
    SELECT count(*) AS user_count, max(username) AS last_name FROM (SELECT username FROM user
    WHERE website_id = :website AND username > :last ORDER BY username LIMIT :most) u
    """)

extension Store {
    public func user(
        named username: String, of website: WebsiteID, at now: Timestamp
    ) async throws(StoreFailure) -> UserRow? {
        try await user(
            Script(
                "user", rows: [.user(named: username, of: website)],
                reads: [userByName(website: .id(website), username: .text(username))]), at: now)
    }

    public func user(
        token: UserToken, of website: WebsiteID, at now: Timestamp
    ) async throws(StoreFailure) -> UserRow? {
        try await user(
            Script(
                "user", rows: [.user(token)], reads: [userByToken(website: .id(website), token: .id(token))]), at: now)
    }

    public func userToShow(
        named username: String, of website: WebsiteID, at now: Timestamp
    ) async throws(StoreFailure) -> UserToShow? {
        try await run(
            Query(
                script: Script(
                    "user", reads: [userToShowByName(website: .id(website), username: .text(username))])
            ) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return UserToShow(
                    row: try userRow(row, at: now), hasDevices: try row.bool("has_devices"),
                    hasFactors: try row.bool("has_factors"))
            })
    }

    private func user(_ script: Script, at now: Timestamp) async throws(StoreFailure) -> UserRow? {
        try await run(
            Query(script: script) { rows throws(StoreFailure) in
                try rows[0].first.map { row throws(StoreFailure) in try userRow(row, at: now) }
            })
    }
}

/// Reads a user. The columns are those of `userColumns`, or those of a checked read of the user and
/// `uncheckedUserColumns`.
func userRow(_ row: Row, at now: Timestamp) throws(StoreFailure) -> UserRow {
    let stored: UserState = try row.word("state")
    let expiresAt = try row.optionalTimestamp("expires_at")
    return UserRow(
        id: try row.id("id"), token: try row.id("token"), username: try row.text("username"),
        email: try row.optionalAddress("email"), phone: try row.optionalAddress("phone"),
        displayName: try row.optionalText("display_name"), language: try row.optionalText("language"),
        state: stored.seen(expiresAt, at: now), isProved: try row.optionalTimestamp("proved_at") != nil,
        isIdentityConfirmed: try row.optionalTimestamp("identity_confirmed_at") != nil,
        challenge: try row.optionalID("challenge_id"), stoppedBy: try row.optionalWord("stopped_by"),
        codes: try row.codeLockout(), expiresAt: expiresAt, expiresBy: try row.optionalWord("expires_by"))
}

/// Reads a user in one statement, and whether there is more to read of it. The columns that the check
/// covers have their own names.
private let userToShowByName = Statement(
    checking: [CheckedTable(.user, as: "u")],
    uncheckedUserColumns + [
        "EXISTS (SELECT 1 FROM device d WHERE d.user_id = u.id) AS has_devices",
        "EXISTS (SELECT 1 FROM factor f WHERE f.user_id = u.id) AS has_factors",
    ],
    from: "\(SignedTable.user.checked(as: "u")) WHERE {u.website_id = :website AND u.username = :username}")

/// The columns of the user `u` that a check does not read.
let uncheckedUserColumns = [
    "u.language", "u.state", "u.proved_at", "u.stopped_by", CodeLockout.columns("u."),
]

private let userByName = Statement("\(userColumns) WHERE website_id = :website AND username = :username")
private let userByToken = Statement("\(userColumns) WHERE website_id = :website AND token = :token")
private let userColumns = """
    SELECT id, token, username, email, phone, display_name, language, challenge_id, state, proved_at, stopped_by,
    identity_confirmed_at, expires_at, expires_by,
    \(CodeLockout.columns()) FROM user
    """

extension Store {
    public func devices(of user: UserID, at now: Timestamp) async throws(StoreFailure) -> [DeviceView] {
        do throws(StoreFailure) {
            return try await devices(
                [.devices(of: user), .reports(of: user)],
                devicesOfUser(user: .id(user), stale: Phones.stale(at: now)))
        } catch {
            // A report that is not genuine must not hide the user's phones from the website.
            guard case .forged = error else { throw error }
            return try await devicesOneByOne(of: user, at: now)
        }
    }

    /// Reads the phones without their reports, and then each report by itself.
    func devicesOneByOne(of user: UserID, at now: Timestamp) async throws(StoreFailure) -> [DeviceView] {
        var views = try await devices(
            [.devices(of: user)], devicesWithoutReports(user: .id(user), stale: Phones.stale(at: now)))
        for index in views.indices { try await setReport(of: &views[index]) }
        return views
    }

    private func devices(
        _ rows: [SignedRows], _ statement: BoundStatement
    ) async throws(StoreFailure) -> [DeviceView] {
        try await run(
            Query(script: Script("devices", rows: rows, reads: [statement])) { rows throws(StoreFailure) in
                var views: [DeviceView] = []
                for row in rows[0] { views.append(try Phones.read(row)) }
                return views
            })
    }
}

private let devicesOfUser = Statement("SELECT \(Phones.columns) FROM \(Phones.table) \(Phones.ofUser)")
private let devicesWithoutReports = Statement(
    "SELECT \(Phones.columnsWithoutReport) FROM device d \(Phones.ofUser)")
