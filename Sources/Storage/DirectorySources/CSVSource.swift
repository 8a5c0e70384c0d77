import CSV
import Directory

/// The users of a CSV file. Its first line names the columns; a column `groups` lists the groups of
/// a user, separated by semicolons. If the settings have groups, the column must exist: without it,
/// everybody would lose the policy of a group.
public struct CSVSource: DirectorySource {
    public static let mostBytes = 64 << 20

    /// A group whose members get a policy. The first group of a user counts.
    public struct Group: Sendable, Equatable {
        public let name: String
        /// The policy as JSON.
        public let policy: String

        public init(name: String, policy: String) {
            self.name = name
            self.policy = policy
        }
    }

    private let mapping: DirectoryMapping
    private let groups: [Group]
    private let user: String?
    private let limit: Int
    private let load: @Sendable () throws(DirectoryFailure) -> [UInt8]

    /// The column with the groups.
    private static let groupColumn = "groups"

    /// - Parameters:
    ///   - user: the username of a single user to read; nil reads all.
    ///   - load: reads the file.
    public init(
        mapping: DirectoryMapping, groups: [Group] = [], user: String? = nil, limit: Int = 200_000,
        load: @escaping @Sendable () throws(DirectoryFailure) -> [UInt8]
    ) {
        self.mapping = mapping
        self.groups = groups
        self.user = user
        self.limit = limit
        self.load = load
    }

    public func read() throws(DirectoryFailure) -> DirectoryContent {
        let bytes = try load()
        do throws(CSVFault) {
            guard bytes.count <= Self.mostBytes else {
                throw CSVFault(line: 1, "larger than \(Self.mostBytes >> 20) MiB")
            }
            return try read(bytes)
        } catch {
            throw DirectoryFailure(
                "line \(error.line): \(error.message)", next: "Nothing of the file was used. Correct the line.")
        }
    }

    private func read(_ bytes: [UInt8]) throws(CSVFault) -> DirectoryContent {
        var reader = CSVReader(bytes)
        let columns = try columns(try reader.next())
        var content = DirectoryContent(groups: groups.count)
        while let record = try reader.next() {
            guard record.fields.count == columns.count else {
                throw CSVFault(
                    line: record.line,
                    "has \(record.fields.count) fields, but the first line names \(columns.count) columns")
            }
            guard content.count < limit else {
                throw CSVFault(line: record.line, "the file has more than \(limit) users")
            }
            var values: [String: [[UInt8]]] = [:]
            for (column, field) in zip(columns, record.fields) { values[column] = [Array(field.utf8)] }
            if let user, values[mapping.username.lowercased()] != [Array(user.utf8)] { continue }
            let memberships = memberships(values[Self.groupColumn]?.first ?? [])
            for group in memberships { content.countMember(of: group) }
            let policy = memberships.first.map { groups[$0].policy }
            content.add(DirectoryEntry(name: "line \(record.line)", values: values), as: mapping) { _ in policy }
        }
        return content
    }

    private func columns(_ record: CSVReader.Record?) throws(CSVFault) -> [String] {
        guard let record else { throw CSVFault(line: 1, "the file is empty; line 1 must name the columns") }
        let columns = record.fields.map { $0.lowercased() }
        guard Set(columns).count == columns.count else { throw CSVFault(line: record.line, "a column appears twice") }
        for name in mapping.attributes where !columns.contains(name.lowercased()) {
            throw CSVFault(
                line: record.line, "the column \(name) is missing; name it, or map its value to another column")
        }
        guard groups.isEmpty || columns.contains(Self.groupColumn) else {
            throw CSVFault(
                line: record.line, "the column \(Self.groupColumn) is missing, but the settings have policies of groups"
            )
        }
        return columns
    }

    /// Returns the positions of the user's groups in the settings.
    private func memberships(_ field: [UInt8]) -> [Int] {
        let named = field.split(separator: UInt8(ascii: ";")).map { part in
            let blank = UInt8(ascii: " ")
            return Array(part.drop { $0 == blank }.reversed().drop { $0 == blank }.reversed())
        }
        return groups.indices.filter { named.contains(Array(groups[$0].name.utf8)) }
    }
}
