import Domain

/// Compares the content of a directory with the users of a website, and plans the changes of a
/// sync. It is a pure value: it reads and writes nothing.
///
/// Invariants:
/// - Two users are never merged. A record whose username or address belongs to another user, or to
///   another record, is a conflict: it is reported, and its user stays as it is.
/// - Only users that the source owns are changed or disabled. A user of the website is adopted only
///   if the settings say so and the username is the same.
/// - A user is matched by the directory's id alone. A new entry with the username of somebody who
///   left is another person, who must not get that person's phones.
/// - An entry that exists but cannot be used keeps its user.
/// - A user whose address cannot be read keeps all values.
///
/// Tested in `DirectoryPlannerTests.swift`.
public struct DirectoryPlanner {
    private let source: String
    private let mapping: DirectoryMapping
    private let adopts: Bool
    private let policies: [String]
    private let owned: [Key: DirectoryUser]

    private typealias Key = [UInt8]

    /// - Parameters:
    ///   - adopts: whether users that the website registered may become users of the source.
    ///   - policies: the policies of the groups, in the order of the settings.
    ///   - owned: all users that the source owns.
    public init(
        source: String, mapping: DirectoryMapping, adopts: Bool, policies: [String], owned: [DirectoryUser]
    ) {
        self.source = source
        self.mapping = mapping
        self.adopts = adopts
        self.policies = policies
        self.owned = Dictionary(owned.map { (Self.key($0.id ?? ""), $0) }) { first, _ in first }
    }

    /// The users whose usernames and addresses matter: records that are new, or that differ from
    /// their user. The store is asked who has these values.
    public func wanted(by content: DirectoryContent) -> [DirectoryRecord] {
        content.records.filter { record in
            guard let user = owned[Self.key(record.id)] else { return true }
            return DirectoryUpdate(user: user, record: record, mapping: mapping).changes.contains {
                ["username", "email", "phone"].contains($0.field)
            }
        }
    }

    /// - Parameter holders: the users of the website who have a username or address of `wanted`.
    public func plan(_ content: DirectoryContent, holders: [DirectoryUser]) -> DirectoryPlan {
        var plan = DirectoryPlan()
        plan.conflicts = content.conflicts
        plan.enabled = owned.values.count { !$0.isDisabled }
        let (names, mails, phones) = (
            Self.index(holders) { $0.username }, Self.index(holders) { $0.email }, Self.index(holders) { $0.phone }
        )
        let twice = Duplicates(content.records)
        for (record, entry) in zip(content.records, content.entries) {
            if let fault = twice.fault(of: record) {
                plan.conflicts.append(DirectoryConflict(entry, fault))
                continue
            }
            let known = owned[Self.key(record.id)]
            let namesake = names[Self.key(record.username)]
            guard let user = known ?? namesake else {
                let fault = takenAddress(record, mails, phones, by: nil)
                if let fault {
                    plan.conflicts.append(DirectoryConflict(entry, fault))
                } else {
                    plan.actions.append(.add(record))
                }
                continue
            }
            let update = DirectoryUpdate(
                user: user, record: record, mapping: mapping, losesPolicy: losesPolicy(user, record))
            let fault =
                known == nil
                ? cannotAdopt(user)
                : namesake.flatMap { $0.user == user.user ? nil : taken("username", record.username, by: $0) }
            if let fault = fault ?? takenAddress(record, mails, phones, by: user) ?? unreadableAddress(update) {
                plan.conflicts.append(DirectoryConflict(entry, fault))
            } else if update.isNeeded {
                plan.actions.append(.update(update))
            } else {
                plan.unchanged += 1
            }
        }
        planLeavers(content, into: &plan)
        return plan
    }

    /// Disables the users whose entries are gone.
    private func planLeavers(_ content: DirectoryContent, into plan: inout DirectoryPlan) {
        let present = content.unusableIDs.union(content.records.map { Self.key($0.id) })
        let leavers = owned.filter { !$0.value.isDisabled && !present.contains($0.key) }.map(\.value)
        guard !content.hasUnknownIDs else { return plan.keepsLeavers = !leavers.isEmpty }
        plan.actions += leavers.sorted { $0.username < $1.username }.map { .disable($0) }
    }

    /// Whether the user is no longer in the group that gave the user's policy, and in no earlier
    /// one. A group of the directory may have been deleted or renamed, or is hidden from the
    /// account. If the settings have another policy for the same group by now, nothing is lost.
    private func losesPolicy(_ user: DirectoryUser, _ record: DirectoryRecord) -> Bool {
        guard let before = user.policy else { return false }
        guard let after = record.policy else { return true }
        guard let former = policies.firstIndex(of: before), let new = policies.firstIndex(of: after) else {
            return false
        }
        return new > former
    }

    private func cannotAdopt(_ user: DirectoryUser) -> String? {
        if user.source == source {
            return "username: \(user.username) is the user of another entry (\(user.id ?? "")), which may be another "
                + "person; remove the user at the website, or enable it with 'twoefay user enable', to go on"
        }
        if let other = user.source {
            return "username: \(user.username) is a user of the directory \(other)"
        }
        return adopts
            ? nil
            : "username: \(user.username) was registered by the website; adopt: true makes it a user of this source"
    }

    private func takenAddress(
        _ record: DirectoryRecord, _ mails: [Key: DirectoryUser], _ phones: [Key: DirectoryUser],
        by user: DirectoryUser?
    ) -> String? {
        if let email = record.email, let other = mails[Self.key(email)], other.user != user?.user {
            return taken("email", email, by: other)
        }
        if let phone = record.phone, let other = phones[Self.key(phone)], other.user != user?.user {
            return taken("phone", phone, by: other)
        }
        return nil
    }

    /// A change of the address would take the factor away, and end recoveries.
    private func unreadableAddress(_ update: DirectoryUpdate) -> String? {
        guard update.user.hasUnreadableAddress,
            let change = update.changes.first(where: { ["email", "phone"].contains($0.field) })
        else { return nil }
        return "\(change.field): the master key file does not open an address of the user \(update.user.username)"
    }

    private func taken(_ field: String, _ value: String, by other: DirectoryUser) -> String {
        "\(field): \(value) belongs to the user \(other.username) already"
    }

    fileprivate static func key(_ text: String) -> [UInt8] { Array(text.utf8) }

    private static func index(
        _ users: [DirectoryUser], _ value: (DirectoryUser) -> String?
    ) -> [Key: DirectoryUser] {
        Dictionary(users.compactMap { user in value(user).map { (key($0), user) } }) { first, _ in first }
    }
}

/// The values that several records of one directory have.
private struct Duplicates {
    private var counts: [String: [[UInt8]: Int]] = [:]

    init(_ records: [DirectoryRecord]) {
        for record in records {
            for (field, value) in Self.values(of: record) {
                counts[field, default: [:]][DirectoryPlanner.key(value), default: 0] += 1
            }
        }
    }

    /// The fields that must be different for every user.
    private static func values(of record: DirectoryRecord) -> [(field: String, value: String)] {
        [("id", record.id), ("username", record.username)]
            + [("email", record.email), ("phone", record.phone)].compactMap { field, value in value.map { (field, $0) }
            }
    }

    func fault(of record: DirectoryRecord) -> String? {
        for (field, value) in Self.values(of: record) {
            let count = counts[field]?[DirectoryPlanner.key(value)] ?? 0
            if count > 1 { return "\(field): \(count) entries have \(value)" }
        }
        return nil
    }
}
