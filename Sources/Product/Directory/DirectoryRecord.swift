import Domain

/// A user as a directory describes it, with values that the rules of the API accept.
public struct DirectoryRecord: Sendable, Equatable {
    /// The directory's own id of the entry. It stays the same when the user is renamed.
    public let id: String
    public let username: String
    public let email: String?
    public let phone: String?
    public let displayName: String?
    public let language: String?
    /// The policy of the user's group as JSON, with the keys that differ from the website's; nil
    /// for none.
    public let policy: String?

    public init(
        id: String, username: String, email: String? = nil, phone: String? = nil, displayName: String? = nil,
        language: String? = nil, policy: String? = nil
    ) {
        self.id = id
        self.username = username
        self.email = email
        self.phone = phone
        self.displayName = displayName
        self.language = language
        self.policy = policy
    }
}

/// A reason why an entry or a user is left as it is.
public struct DirectoryConflict: Sendable, Equatable {
    /// The entry's name in its directory, such as its DN or its line, without invisible characters.
    public let entry: String
    public let message: String

    public init(_ entry: String, _ message: String) {
        self.entry = FieldRule.visible(entry)
        self.message = message
    }
}

/// The content of a directory, read to its end.
public struct DirectoryContent: Sendable {
    /// The number of entries, with those that cannot be used.
    public private(set) var count = 0
    public private(set) var records: [DirectoryRecord] = []
    /// The names of the entries of `records`, for reports, without invisible characters.
    public private(set) var entries: [String] = []
    public private(set) var conflicts: [DirectoryConflict] = []
    /// The ids of entries that exist but cannot be used, as bytes: Swift treats different encodings
    /// of a character as equal, and the store does not. Their users are no leavers.
    public private(set) var unusableIDs: Set<[UInt8]> = []
    /// Whether an entry has no readable id, so that nobody can tell who has left.
    public private(set) var hasUnknownIDs = false
    /// The number of members of each group in the settings, in the same order.
    public private(set) var members: [Int] = []

    /// - Parameter groups: the number of groups in the settings.
    public init(groups: Int = 0) { members = Array(repeating: 0, count: groups) }

    /// Counts a member of a group.
    public mutating func countMember(of group: Int) { members[group] += 1 }

    /// Adds an entry.
    public mutating func add(_ entry: DirectoryEntry, as mapping: DirectoryMapping, policy: (String) -> String?) {
        count += 1
        switch mapping.record(of: entry, policy: policy) {
        case .success(let record):
            records.append(record)
            entries.append(FieldRule.visible(entry.name))
        case .failure(let fault):
            conflicts.append(DirectoryConflict(entry.name, fault.message))
            if let id = fault.id { unusableIDs.insert(Array(id.utf8)) } else { hasUnknownIDs = true }
        }
    }
}
