import Relay

/// The version of a store's tables, and that of this program.
public struct SchemaState: Sendable, Equatable {
    /// The version of the tables.
    public let version: Int64
    /// The newest version that the program knows.
    public let known: Int64

    /// The newest version that this program knows.
    public static var known: Int64 { Migration.all.known }

    public init(version: Int64) {
        self.version = version
        known = Self.known
    }

    /// Whether the programs are updated, and the tables are not.
    public var isUnfinished: Bool { version < known }

    /// The warning about an unfinished update, with the step that is missing; nil if there is none.
    public var warning: String? {
        if version > known {
            return "the tables have schema \(version) and this program knows \(known), and works with them: update "
                + "this program, too"
        }
        guard isUnfinished else { return nil }
        return "the tables have schema \(version) and this program knows \(known): the update is unfinished. When all "
            + "relays run the new version: twoefay --config FILE migrate"
    }

    /// Reads the present version. A store that was opened earlier may know an older one.
    public static let query = Query(script: Script("schema", reads: [newest()])) { rows throws(StoreFailure) in
        guard let row = rows[0].first else { throw .internal("the table migration has no row") }
        return SchemaState(version: try row.integer("version"))
    }

    private static let newest = Statement("SELECT version FROM migration ORDER BY version DESC LIMIT 1")
}
