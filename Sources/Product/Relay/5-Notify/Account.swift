import Bytes
import Domain
import World

/// The store port for what a person sees of their own account (verb Notify).
public protocol AccountStore: Sendable {
    /// The user with the website.
    func accountHolder(_ user: UserID, at: Timestamp) async throws(StoreFailure) -> AccountHolder?
    /// The user with the website, if the website is active and has this name.
    func accountHolder(
        _ token: UserToken, ofWebsite name: String, at: Timestamp
    ) async throws(StoreFailure) -> AccountHolder?
    func accountHistory(_ question: AccountQuestion) async throws(StoreFailure) -> AccountHistory
}

/// A user with the website that the account is at.
public struct AccountHolder: Sendable, Equatable {
    public let user: UserRow
    public let website: WebsiteRow
    /// Whether the user is frozen, or will be on return to the directory.
    public let isFrozen: Bool
    /// The time at which the mail address was last changed or removed; nil if it never was.
    public let mailChangedAt: Timestamp?

    public init(user: UserRow, website: WebsiteRow, isFrozen: Bool, mailChangedAt: Timestamp?) {
        self.user = user
        self.website = website
        self.isFrozen = isFrozen
        self.mailChangedAt = mailChangedAt
    }
}

/// The part of a user's history that an account shows.
public struct AccountQuestion: Sendable {
    public let user: UserID
    /// The logins that were asked since then, at most as many.
    public let since: Timestamp
    public let most: Int
    /// The reports of fraud since then.
    public let reportedSince: Timestamp

    public init(user: UserID, since: Timestamp, most: Int, reportedSince: Timestamp) {
        self.user = user
        self.since = since
        self.most = most
        self.reportedSince = reportedSince
    }
}

public struct AccountHistory: Sendable {
    /// The logins, the newest first.
    public let logins: [AccountLogin]
    /// The operations of the late reports of fraud.
    public let reports: Set<OperationID>
    /// The number of unused recovery codes of each set.
    public let unusedCodes: [FactorID: Int]

    public init(logins: [AccountLogin], reports: Set<OperationID>, unusedCodes: [FactorID: Int]) {
        self.logins = logins
        self.reports = reports
        self.unusedCodes = unusedCodes
    }
}

/// A login in a user's history.
public struct AccountLogin: Sendable, Equatable {
    public let challenge: ChallengeID
    public let life: ChallengeLife
    public let policy: String
    public let nonce: [UInt8]
    /// The context that the phone showed; nil if it is sealed and cannot be opened.
    public let context: [UInt8]?
    /// The factor that decided, or the current one.
    public let factor: Factor?
    /// The phone that decided.
    public let device: DeviceID?
    public let askedAt: Timestamp
    public let decidedAt: Timestamp?

    public init(
        challenge: ChallengeID, life: ChallengeLife, policy: String, nonce: [UInt8], context: [UInt8]?,
        factor: Factor?, device: DeviceID?, askedAt: Timestamp, decidedAt: Timestamp?
    ) {
        self.challenge = challenge
        self.life = life
        self.policy = policy
        self.nonce = nonce
        self.context = context
        self.factor = factor
        self.device = device
        self.askedAt = askedAt
        self.decidedAt = decidedAt
    }

    /// The end of the login as it is at `now`; nil while it is open.
    func endedAt(at now: Timestamp) -> Timestamp? {
        life.seen(at: now).state.isEnd ? decidedAt ?? life.expiresAt : nil
    }
}

/// An account as its person sees it.
public struct Account: Sendable {
    public struct Login: Sendable {
        public let login: AccountLogin
        /// The life of the login at the time of the request.
        public let life: ChallengeLife
        public let endedAt: Timestamp?
        /// Whether a report of fraud by the caller about this login would still freeze the user.
        public let canBeReported: Bool
    }

    public let holder: AccountHolder
    /// The phones that are bound or wait for their approval.
    public let devices: [DeviceView]
    public let factors: [CodeFactor]
    public let logins: [Login]
    /// The number of unused recovery codes of each set.
    public let unusedCodes: [FactorID: Int]
}

/// The view that a person has of their own account: phones, code factors and past logins.
///
/// The person's phone asks for it. A person without a phone opens the link of a mail (`AccountLink`).
/// Each login says whether its caller can still report it as fraud, so that neither page offers what
/// has no effect.
///
/// Invariants: the account is read, and never changed, except that a report freezes the user
/// (`AccountReport.swift`). A link counts only while its website mails links, and not after a change
/// of the mail address: the mailbox that has the link may be another person's by then.
///
/// Tests: `APITests/AccountTests.swift`, `APITests/AccountLinkTests.swift`.
extension Relay {
    /// The most logins of an account.
    public static let mostAccountLogins = 50
    /// The age of the oldest of them.
    public static let accountLoginAge = Duration.seconds(30 * 86_400)

    public func account(for phone: PhoneCredential) async throws(Refusal) -> Account {
        if let wait = accountBudget.wait(phone.id, at: time.instant()) {
            metrics.reached(.account)
            throw .limited(retryAfter: wait)
        }
        let holder = try await withStore("account") { () async throws(StoreFailure) in
            try await store.accountHolder(phone.user, at: time.now())
        }
        guard let holder else { throw .unauthenticated }
        return try await account(of: holder) { login, history, now in
            // An open login is answered from the list of pending ones.
            login.endedAt(at: now) != nil && login.context != nil
                && (try? policies.policy(changedBy: login.policy))?.answers == .signed
                && !history.reports.contains(lateReport(about: login.challenge, by: phone.id).id)
        }
    }

    /// - Parameters:
    ///   - text: the text of the link.
    ///   - sender: the source address of the request.
    public func account(link text: String, from sender: String) async throws(Refusal) -> Account {
        let (link, holder) = try await opened(link: text, from: sender)
        return try await account(of: holder) { login, history, _ in
            !history.reports.contains(lateReport(by: link).id)
        }
    }

    /// - Parameter isOpenToCaller: whether the caller can report a login that others can report, too.
    private func account(
        of holder: AccountHolder, _ isOpenToCaller: (AccountLogin, AccountHistory, Timestamp) -> Bool
    ) async throws(Refusal) -> Account {
        let (user, now) = (holder.user.id, time.now())
        let devices = try await withStore("account") { () async throws(StoreFailure) in
            try await store.devices(of: user, at: now)
        }
        let factors = try await codeFactors(of: holder.user)
        let question = AccountQuestion(
            user: user, since: now - Self.accountLoginAge, most: Self.mostAccountLogins,
            reportedSince: now - Self.resultLifetime)
        let history = try await withStore("account") { () async throws(StoreFailure) in
            try await store.accountHistory(question)
        }
        let logins = history.logins.map { login in
            let endedAt = login.endedAt(at: now)
            let canBeReported =
                !holder.isFrozen && login.life.decision != .fraud && now < (endedAt ?? now) + Self.resultLifetime
                && isOpenToCaller(login, history, now)
            return Account.Login(
                login: login, life: login.life.seen(at: now), endedAt: endedAt, canBeReported: canBeReported)
        }
        return Account(
            holder: holder, devices: devices.filter { $0.state != .revoked }, factors: factors,
            logins: logins, unusedCodes: history.unusedCodes)
    }

    /// Returns the link in a text, and its user.
    func opened(
        link text: String, from sender: String
    ) async throws(Refusal) -> (link: AccountLink, holder: AccountHolder) {
        guard accountLinkBudget.take(sender, at: time.instant()) else {
            metrics.reached(.account)
            throw .limited(retryAfter: .seconds(1))
        }
        let now = time.now()
        guard let link = AccountLink(text, origin: settings.origin, key: accountLinkKey, at: now) else {
            throw .unauthenticated
        }
        let holder = try await withStore("account") { () async throws(StoreFailure) in
            try await store.accountHolder(link.user, ofWebsite: link.website, at: now)
        }
        guard let holder, try website(holder.website).policy.accountLinks == .mail else { throw .unauthenticated }
        if let changed = holder.mailChangedAt, link.issuedAt.seconds < changed.seconds { throw .unauthenticated }
        return (link, holder)
    }

    /// Returns the address of the page that shows the account, for a mail; nil if the website mails no
    /// links, or if no web app is served.
    ///
    /// - Parameter policy: the policies that the website sets itself, as JSON.
    func accountAddress(
        of user: UserToken, _ website: String, _ policy: String, in mail: OutboxEntryID, at now: Timestamp
    ) -> Secret? {
        guard let app = settings.browsers?.app, (try? policies.policy(changedBy: policy))?.accountLinks == .mail
        else { return nil }
        let link = AccountLink(to: user, of: website, in: mail, at: now)
        return Secret(utf8: "\(app)#account=\(link.signed(origin: settings.origin, key: accountLinkKey))")
    }
}
