import Domain
import Log
import World

/// The store port for users (verb Enrol): a website registers a user, reads it and deletes it.
public protocol RegisterStore: Sendable {
    /// - Parameter activation: nil if the user gets a code only later.
    func register(_ user: NewUser, activation: NewActivation?, secret: StoredSecret?, as operation: Operation)
        async throws(StoreFailure) -> RegisterOutcome
    /// Counts the users of the website, up to `most`.
    func countUsers(of website: WebsiteID, upTo most: Int) async throws(StoreFailure) -> Int
    func user(named username: String, of website: WebsiteID, at: Timestamp) async throws(StoreFailure) -> UserRow?
    func user(token: UserToken, of website: WebsiteID, at: Timestamp) async throws(StoreFailure) -> UserRow?
    func userToShow(named username: String, of website: WebsiteID, at: Timestamp)
        async throws(StoreFailure) -> UserToShow?
    func devices(of user: UserID, at: Timestamp) async throws(StoreFailure) -> [DeviceView]
    /// Deletes a user. Returns the challenges that ended with it; nil if the user does not exist.
    func forget(_ user: UserID, website: WebsiteID, at: Timestamp, as operation: Operation)
        async throws(StoreFailure) -> [ChallengeID]?
}

/// A user that a website wants to see.
public struct UserToShow: Sendable, Equatable {
    public let row: UserRow
    /// Whether the store has phones of the user, of any state.
    public let hasDevices: Bool
    /// Whether the store has code factors of the user, of any state.
    public let hasFactors: Bool

    public init(row: UserRow, hasDevices: Bool, hasFactors: Bool) {
        self.row = row
        self.hasDevices = hasDevices
        self.hasFactors = hasFactors
    }
}

/// The values with which a website registers a user.
public struct Registration: Sendable {
    public var username: String
    public var email: String?
    public var phone: String?
    public var displayName: String?
    public var language: String?
    /// The time from which no login of the user succeeds; nil if the user does not expire.
    public var expiresAt: Timestamp?

    public init(
        username: String, email: String?, phone: String?, displayName: String?, language: String?,
        expiresAt: Timestamp? = nil
    ) {
        self.expiresAt = expiresAt
        self.username = username
        self.email = email
        self.phone = phone
        self.displayName = displayName
        self.language = language
    }
}

/// A user to be stored.
public struct NewUser: Sendable {
    public let id: UserID
    public let token: UserToken
    public let website: WebsiteID
    public let registration: Registration
    /// The factors for the user's addresses.
    public let factors: [NewFactor]
    public let createdAt: Timestamp
}

/// The outcome of a registration.
public enum RegisterOutcome: Sendable, Equatable {
    /// The user is stored. `secret` is the sealed operation secret from the store.
    case registered(activationExpiresAt: Timestamp, secret: [UInt8]?)
    /// Other users of the website have these values.
    case taken(username: Bool, email: Bool, phone: Bool)
    /// The website was disabled after it was looked up.
    case websiteGone
}

/// The stored row of a user.
public struct UserRow: Sendable, Equatable {
    public let id: UserID
    public let token: UserToken
    public let username: String
    public let email: String?
    public let phone: String?
    public let displayName: String?
    public let language: String?
    /// The state at the time of the query: `expired` if the expiry of an active user has passed.
    public let state: UserState
    /// The time from which no login of the user succeeds; nil if the user does not expire.
    public let expiresAt: Timestamp?
    /// The author of that time. The website can only shorten one that an operator has set.
    public let expiresBy: ChangeAuthor?
    /// Whether a factor of the user was ever bound, so that a further one needs approval.
    public let isProved: Bool
    /// Whether an operator confirmed the identity of the person.
    public let isIdentityConfirmed: Bool
    /// The user's newest challenge.
    public let challenge: ChallengeID?
    /// The author of the lock or freeze; nil if the user is active.
    public let stoppedBy: ChangeAuthor?
    public let codes: CodeLockout

    public init(
        id: UserID, token: UserToken, username: String, email: String?, phone: String?, displayName: String?,
        language: String?, state: UserState, isProved: Bool, isIdentityConfirmed: Bool,
        challenge: ChallengeID?, stoppedBy: ChangeAuthor?, codes: CodeLockout, expiresAt: Timestamp?,
        expiresBy: ChangeAuthor?
    ) {
        self.expiresAt = expiresAt
        self.expiresBy = expiresBy
        self.id = id
        self.token = token
        self.username = username
        self.email = email
        self.phone = phone
        self.displayName = displayName
        self.language = language
        self.state = state
        self.isProved = isProved
        self.isIdentityConfirmed = isIdentityConfirmed
        self.challenge = challenge
        self.stoppedBy = stoppedBy
        self.codes = codes
    }
}

extension Registration {
    fileprivate var addresses: [Address] {
        [email.map { Address(mail: $0) }, phone.map { Address(phone: $0) }].compactMap(\.self)
    }
}

extension UserToken {
    fileprivate init(_ secret: OperationSecret) {
        self.init(leading: secret.derive("token", count: 16))
    }
}

extension Relay {
    /// Sends the first codes to the addresses that must be confirmed. If a code cannot be sent now,
    /// the website can request it later.
    private func sendFirstCodes(to registration: Registration, by website: Website, as operation: Operation) async {
        guard let user = try? await user(named: registration.username, of: website) else { return }
        for address in registration.addresses where courier(for: address.kind) != nil {
            try? await sendCode(to: address.text, of: user, by: website, as: operation)
        }
    }

    /// Registers a user, and creates the activation code for the first phone, unless the user's
    /// identity must be confirmed first.
    public func register(
        _ registration: Registration, by website: Website, as operation: Operation
    ) async throws(Refusal) -> (token: UserToken, activation: IssuedActivation) {
        try requireMail(to: registration.email, website)
        if website.policy.enrolment == .letter { try requireMails(of: website) }
        try await keepUserQuota(of: website)
        let now = time.now()
        let id: UserID = operation.identifier("user")
        let secret = drawSecret()
        let isVouched = website.policy.addresses == .vouched
        var factors: [NewFactor] = []
        for address in registration.addresses {
            factors.append(
                try factor(
                    for: address, isVouched ? .active : .waiting, of: id, website.id, at: now, as: operation,
                    secret))
        }
        let user = NewUser(
            id: id, token: UserToken(secret), website: website.id, registration: registration, factors: factors,
            createdAt: now)
        let activation = try firstActivation(secret, of: user, by: website, as: operation)
        let use = OperationSecret.Use(.registration, user: id, website: website.id)
        let stored = try stored(secret, for: use, of: operation, at: now)
        let outcome = try await withStore("register") { () async throws(StoreFailure) in
            try await store.register(user, activation: activation, secret: stored, as: operation)
        }
        switch outcome {
        case .registered(let expiresAt, let found):
            userQuota.registered(website.id)
            log.info("user.registered", [.website: website.name, .user: user.id.text])
            if !isVouched { await sendFirstCodes(to: registration, by: website, as: operation) }
            let settled = try settled(secret, for: use, of: operation, found: found)
            let token = UserToken(settled)
            if let mail = activation?.mail { startMail(mail.entry, of: website.limited) }
            return (token, issued(settled, token: token, registration, by: website, expiresAt: expiresAt))
        case .taken(let username, let email, let phone):
            var faults: [FieldFault] = []
            if username {
                faults.append(
                    FieldFault(
                        "username", .taken,
                        LocalizedText("is already a user of this website", de: "ist schon Benutzer dieser Website")))
            }
            if email { faults.append(Self.takenFault(.mail)) }
            if phone { faults.append(Self.takenFault(.sms)) }
            throw .conflict(faults)
        case .websiteGone: throw .unauthenticated
        }
    }

    /// Returns the activation that is stored with a new user; nil if an operator must confirm the
    /// user's identity first.
    private func firstActivation(
        _ secret: OperationSecret, of user: NewUser, by website: Website, as operation: Operation
    ) throws(Refusal) -> NewActivation? {
        guard website.policy.enrolment != .confirmed else { return nil }
        var activation = NewActivation(
            ActivationCode(secret), for: user.id, approval: website.policy.activationApproval, at: user.createdAt)
        guard website.policy.enrolment == .letter else { return activation }
        activation.mail = try activationMail(
            secret, for: user.id, of: website, stored: user.registration.language, at: user.createdAt, as: operation)
        return activation
    }

    private func issued(
        _ secret: OperationSecret, token: UserToken, _ registration: Registration, by website: Website,
        expiresAt: Timestamp
    ) -> IssuedActivation {
        switch website.policy.enrolment {
        case .open:
            .shown(activation(ActivationCode(secret), token: token, website: website, expiresAt: expiresAt))
        case .letter: .mailed(to: Address.masked(registration.email ?? ""), expiresAt: expiresAt)
        case .confirmed: .awaitsIdentity
        }
    }

    /// Refuses a registration if the website has, or registers, too many users, before anything is
    /// stored.
    private func keepUserQuota(of website: Website) async throws(Refusal) {
        let limit = website.policy.limits[.users]
        var verdict = userQuota.take(website.id, upTo: limit, at: time.instant())
        if case .count = verdict, let most = limit ?? adjustable.quotas.users {
            let users = try await withStore("register") { () async throws(StoreFailure) in
                try await store.countUsers(of: website.id, upTo: most)
            }
            userQuota.counted(users, of: website.id, at: time.instant())
            verdict = userQuota.take(website.id, upTo: limit, at: time.instant())
        }
        guard case .refused(let pause) = verdict else { return }
        guard limit != nil else {
            exceeded(.users, by: website.name)
            throw .limited(retryAfter: pause)
        }
        reached(.users, by: website.limited)
        throw .websiteLimited(.users, retryAfter: pause)
    }

    public func user(named username: String, of website: Website) async throws(Refusal) -> UserRow {
        let row = try await withStore("user") { () async throws(StoreFailure) in
            try await store.user(named: username, of: website.id, at: time.now())
        }
        guard let row else { throw .notFound }
        return row
    }

    /// Returns a user with its phones and code factors, as the website sees them. A part that the
    /// store does not have is not read.
    public func show(
        _ username: String, of website: Website
    ) async throws(Refusal) -> (user: UserRow, devices: [DeviceView], factors: [CodeFactor]) {
        let found = try await withStore("user") { () async throws(StoreFailure) in
            try await store.userToShow(named: username, of: website.id, at: time.now())
        }
        guard let found else { throw .notFound }
        return (
            found.row, found.hasDevices ? try await devices(of: found.row) : [],
            found.hasFactors ? try await codeFactors(of: found.row) : []
        )
    }

    public func devices(of user: UserRow) async throws(Refusal) -> [DeviceView] {
        let devices = try await withStore("user") { () async throws(StoreFailure) in
            try await store.devices(of: user.id, at: time.now())
        }
        devices.forEach(logForgedReport)
        return devices
    }

    /// Logs a stored report that no relay wrote. The phone is shown without it.
    func logForgedReport(of device: DeviceView) {
        guard device.isReportForged else { return }
        reportForged("device_report \(device.id.text)", in: "report")
    }

    /// Whether a login is pushed to at least one of these phones, as far as that depends on the
    /// phones. Otherwise the phones must poll.
    public func arePushed(_ devices: [DeviceView]) -> Bool {
        let canAsk = devices.contains { $0.publicKey != nil }
        return devices.contains { push?.reaches($0.platform, pushToken: $0.pushToken, canAsk: canAsk) == true }
    }

    /// Deletes the user with all rows except those of the audit, which contain only ids.
    public func forget(username: String, by website: Website) async throws(Refusal) {
        let row = try await user(named: username, of: website)
        let operation = operations.new()
        let ended = try await withStore("deleteUser") { () async throws(StoreFailure) in
            try await store.forget(row.id, website: website.id, at: time.now(), as: operation)
        }
        guard let ended else { throw .notFound }
        log.info("user.forgotten", [.website: website.name, .user: row.id.text])
        for challenge in ended { self.ended(challenge, .cancelled) }
        heldRequests.fire(.user(row.id))
    }
}
