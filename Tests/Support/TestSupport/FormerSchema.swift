import Glibc
import Storage
import World

/// The tables of earlier packages. Their texts are in `Tests/Schemas`, and are never edited.
package enum FormerSchema {
    /// The schema of the last package: that of the relays which an update replaces.
    package static var last: Int64 { versions.last ?? 0 }

    /// The versions that have a text, in order.
    package static let versions: [Int64] = TemporaryDirectory.names(in: directory).compactMap { name in
        guard name.hasPrefix("schema-"), name.hasSuffix(".sql") else { return nil }
        return Int64(name.dropFirst("schema-".count).dropLast(".sql".count))
    }.sorted()

    package static func text(_ version: Int64) throws -> String {
        try TextFile.read("\(directory)/schema-\(version).sql")
    }

    /// Creates the tables of an earlier package in an empty database.
    package static func create(_ version: Int64, at url: StorageURL) throws {
        try Store.createFormerTables(try text(version), version: version, at: url, now: SystemTime().now())
    }

    private static var directory: String {
        "\(#filePath)".split(separator: "/").dropLast(3).map { "/\($0)" }.joined() + "/Schemas"
    }
}
