import Directory
import World

/// The users of an LDAP directory.
///
/// The first search reads the users. A further search for each group reads the ids of its members.
/// The server itself compares names of groups, so nested groups work where it supports them.
public struct LDAPSource: DirectorySource {
    /// A group whose members get a policy. The first group of a user counts.
    public struct Group: Sendable, Equatable {
        /// The filter for the members.
        public let filter: String
        /// The policy as JSON.
        public let policy: String

        public init(filter: String, policy: String) {
            self.filter = filter
            self.policy = policy
        }

        /// Returns the filter for the members of the group with this DN.
        public static func members(of dn: String) -> String { "(memberOf=\(LDAPFilter.escaped(dn)))" }
    }

    private let server: LDAPServer
    private let base: String
    private let filter: String
    private let mapping: DirectoryMapping
    private let groups: [Group]
    private let pageSize: Int
    private let limits: LDAPLimits
    private let time: any TimeSource

    /// - Parameter user: the username of a single user to read; nil reads all.
    public init(
        _ server: LDAPServer, base: String, filter: String, mapping: DirectoryMapping, groups: [Group] = [],
        user: String? = nil, pageSize: Int = 500, limits: LDAPLimits = LDAPLimits(), time: any TimeSource
    ) {
        self.server = server
        self.base = base
        self.filter =
            user.map { LDAPFilter.all([filter, "(\(mapping.username)=\(LDAPFilter.escaped($0)))"]) } ?? filter
        self.mapping = mapping
        self.groups = groups
        self.pageSize = pageSize
        self.limits = limits
        self.time = time
    }

    public func read() throws(DirectoryFailure) -> DirectoryContent {
        do throws(LDAPFailure) {
            let connection = try LDAPConnection(server, limits: limits, time: time)
            var content = DirectoryContent(groups: groups.count)
            // Ids are compared as bytes, as in the store.
            var policies: [[UInt8]: String] = [:]
            for (index, group) in groups.enumerated() {
                try search(connection, LDAPFilter.all([filter, group.filter]), [mapping.id]) { entry in
                    guard let id = mapping.id(of: entry).map({ Array($0.utf8) }) else { return }
                    content.countMember(of: index)
                    if policies[id] == nil { policies[id] = group.policy }
                }
            }
            try search(connection, filter, mapping.attributes) { entry in
                content.add(entry, as: mapping) { policies[Array($0.utf8)] }
            }
            return content
        } catch {
            throw DirectoryFailure(error.message, next: error.kind.next)
        }
    }

    private func search(
        _ connection: LDAPConnection, _ filter: String, _ attributes: [String], each: (DirectoryEntry) -> Void
    ) throws(LDAPFailure) {
        try connection.search(filter, below: base, attributes: attributes, pageSize: pageSize) { entry in
            each(DirectoryEntry(name: entry.dn, values: entry.values, tooLong: entry.tooLong))
        }
    }
}

extension LDAPFailure.Kind {
    /// The next step of the operator.
    var next: String {
        switch self {
        case .unreachable: "Check that 'url' names the server, and that it accepts connections from this machine."
        case .certificate:
            "Check that 'ca' names the authority of the server's certificate, and that the host in 'url' is a name in it."
        case .credentials: "Check 'bind_dn', and the password in 'password_file'."
        case .timeout: "Check the load of the server, and the network; then try again."
        case .malformed:
            "Check that 'url' names a directory server. If it does, the server is broken: look at its log."
        case .incomplete:
            "Let the account read all entries: the server limits it, or does not support pages (RFC 2696)."
        case .refused: "Check 'base' and 'filter', and that the account may read below the base."
        case .tooLarge: "Narrow 'base' or 'filter', or raise 'max_entries'."
        }
    }
}
