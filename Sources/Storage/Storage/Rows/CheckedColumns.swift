import Domain
import World

/// The columns and rights of signed rows that short forms decide by (`ShortForm`), as a check has
/// read them.
extension SignedTable {
    /// Returns the place of a covered column.
    fileprivate func place(of column: String) -> Int {
        // Our own bug: the names are constants of this file.
        guard let place = covered.firstIndex(of: column) else { fatalError("\(name) covers no column \(column)") }
        return place
    }

    enum UserColumns {
        static let website = SignedTable.user.place(of: "website_id")
        static let challenge = SignedTable.user.place(of: "challenge_id")
        static let expiry = SignedTable.user.place(of: "expires_at")
    }

    enum WebsiteColumns {
        static let webhook = SignedTable.website.place(of: "webhook_url")
    }

    enum DeviceColumns {
        static let user = SignedTable.device.place(of: "user_id")
        static let thumbprint = SignedTable.device.place(of: "thumbprint")
    }

    enum ChallengeColumns {
        static let website = SignedTable.challenge.place(of: "website_id")
        static let user = SignedTable.challenge.place(of: "user_id")
        static let expiry = SignedTable.challenge.place(of: "expires_at")
    }

    enum ChallengeRights {
        /// The first right: it is not decided.
        static let open: Int64 = 1
        /// The second right: it is approved.
        static let approved: Int64 = 2
    }
}

extension CheckedRow {
    /// Whether the row has the first right of its table. For users, websites and phones it is to be
    /// active.
    private var hasFirstRight: Bool { rights & 1 == 1 }

    var isActiveWebsite: Bool { hasFirstRight }

    func isUser(of website: WebsiteID) -> Bool { values[SignedTable.UserColumns.website] == .id(website) }

    /// Whether the user is active, and has not expired.
    func mayLogIn(at now: Timestamp) -> Bool {
        guard hasFirstRight else { return false }
        let expiry = values[SignedTable.UserColumns.expiry]
        return expiry == .null || isLater(expiry, than: now)
    }

    func isActivePhone(of user: UserID, key: [UInt8]) -> Bool {
        hasFirstRight && values[SignedTable.DeviceColumns.user] == .id(user)
            && values[SignedTable.DeviceColumns.thumbprint] == .blob(key)
    }

    func isChallenge(of website: WebsiteID) -> Bool { values[SignedTable.ChallengeColumns.website] == .id(website) }

    /// Whether the challenge is neither decided nor expired.
    func isOpenChallenge(of user: UserID, at now: Timestamp) -> Bool {
        rights & SignedTable.ChallengeRights.open != 0 && values[SignedTable.ChallengeColumns.user] == .id(user)
            && isLater(values[SignedTable.ChallengeColumns.expiry], than: now)
    }

    private func isLater(_ value: SQLValue, than now: Timestamp) -> Bool {
        guard case .text(let text) = value, let moment = Timestamp(sql: text) else { return false }
        return moment > now
    }
}
