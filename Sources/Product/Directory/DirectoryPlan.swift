import Domain

/// A user of the website as the store has it.
public struct DirectoryUser: Sendable, Equatable {
    public let user: UserID
    public let username: String
    public let email: String?
    public let phone: String?
    public let displayName: String?
    public let language: String?
    public let policy: String?
    public let isDisabled: Bool
    /// The source that owns the user; nil if the website does.
    public let source: String?
    /// The user's id in its source.
    public let id: String?
    /// Whether an address cannot be read, so that nobody knows whether it is that of the directory.
    public let hasUnreadableAddress: Bool

    public init(
        user: UserID, username: String, email: String?, phone: String?, displayName: String?, language: String?,
        policy: String?, isDisabled: Bool, source: String?, id: String?, hasUnreadableAddress: Bool = false
    ) {
        self.user = user
        self.username = username
        self.email = email
        self.phone = phone
        self.displayName = displayName
        self.language = language
        self.policy = policy
        self.isDisabled = isDisabled
        self.source = source
        self.id = id
        self.hasUnreadableAddress = hasUnreadableAddress
    }
}

/// The changes of one sync, each with the user or the record that it concerns.
public struct DirectoryPlan: Sendable {
    public enum Action: Sendable, Equatable {
        case add(DirectoryRecord)
        /// Writes the record's values to a user.
        case update(DirectoryUpdate)
        /// Disables a user whose entry is gone.
        case disable(DirectoryUser)
    }

    public internal(set) var actions: [Action] = []
    public internal(set) var conflicts: [DirectoryConflict] = []
    public internal(set) var unchanged = 0
    /// The number of users that the source has enabled at the moment.
    public internal(set) var enabled = 0
    /// Whether leavers were left as they are, because an entry has no readable id.
    public internal(set) var keepsLeavers = false

    /// The number of users who lose access, an address or the policy of a group. The limit is for
    /// these.
    public var losses: Int {
        actions.count { action in
            switch action {
            case .add: false
            case .update(let update): update.losesAddress || update.losesPolicy
            case .disable: true
            }
        }
    }

    /// Leaves only the actions that disable users.
    public mutating func keepDisabling() {
        actions.removeAll { action in if case .disable = action { false } else { true } }
    }

    /// The number of users who lose the policy of a group.
    public var lostPolicies: Int {
        actions.count { action in if case .update(let update) = action { update.losesPolicy } else { false } }
    }

    /// Whether the losses are more than a share of the source's enabled users, in percent. One user
    /// may always lose something, unless the share is 0.
    public func exceeds(percent: Int) -> Bool {
        losses > (percent == 0 ? 0 : max(1, enabled * percent / 100))
    }
}

/// The change of one user to the values of its record.
public struct DirectoryUpdate: Sendable, Equatable {
    public let user: DirectoryUser
    public let record: DirectoryRecord
    /// The attributes that are mapped; the others stay as they are.
    public let mapping: DirectoryMapping
    /// Whether the user loses the policy of a group. What remains may be weaker.
    public let losesPolicy: Bool

    public init(user: DirectoryUser, record: DirectoryRecord, mapping: DirectoryMapping, losesPolicy: Bool = false) {
        self.user = user
        self.record = record
        self.mapping = mapping
        self.losesPolicy = losesPolicy
    }

    /// Whether the website registered the user, who now belongs to the source.
    public var adopts: Bool { user.source == nil }
    /// Whether the user has returned to the directory.
    public var enables: Bool { user.isDisabled }

    /// The values that change, by the names of the fields: the former value and the new one.
    public var changes: [(field: String, before: String?, after: String?)] {
        var changes: [(field: String, before: String?, after: String?)] = []
        func compare(_ field: String, _ isMapped: Bool, _ before: String?, _ after: String?) {
            if isMapped, !isSame(before, after) { changes.append((field, before, after)) }
        }
        compare("username", true, user.username, record.username)
        compare("email", mapping.email != nil, user.email, record.email)
        compare("phone", mapping.phone != nil, user.phone, record.phone)
        compare("display_name", mapping.displayName != nil, user.displayName, record.displayName)
        compare("language", mapping.language != nil, user.language, record.language)
        compare("policy", true, user.policy, record.policy)
        return changes
    }

    var isNeeded: Bool { adopts || enables || !changes.isEmpty }

    var losesAddress: Bool {
        changes.contains { ["email", "phone"].contains($0.field) && $0.before != nil && $0.after == nil }
    }
}

/// Compares texts as the store does. Swift treats different encodings of a character as equal.
func isSame(_ a: String?, _ b: String?) -> Bool {
    switch (a, b) {
    case (nil, nil): true
    case (let a?, let b?): a.utf8.elementsEqual(b.utf8)
    default: false
    }
}
