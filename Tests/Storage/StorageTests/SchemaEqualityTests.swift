import Bytes
import Crypto
import TestSupport
import Testing

@testable import Storage

/// A store of an earlier package that was brought up to date has the same tables as a new one.
@Suite(.mayBlock) struct SchemaEqualityTests {
    private static let onlyOnDisk: [Engine] = [.file, .mariadb]

    /// The digests of the texts of earlier packages. Stores with these tables exist, so a text never
    /// changes.
    private static let digests: [Int64: String] = [
        2: "6340e5c26c5da23b2eae090a3801811a435fb2edbf1e596ea2e11e87e7e080f3"
    ]

    @Test func schemasOfEarlierPackagesAreFrozen() throws {
        for version in FormerSchema.versions {
            let digest = Hex.encode(SHA256.hash(Array(try FormerSchema.text(version).utf8)))
            #expect(Self.digests[version] == digest, "Tests/Schemas/schema-\(version).sql was edited")
        }
        // A new migration comes with the text of the version before it.
        let first = try #require(Migration.all.first?.version)
        #expect(FormerSchema.versions == Array(first..<Migration.all.known))
    }

    private func former(_ version: Int64, on engine: Engine) throws -> TestDatabase {
        let database = try engine.database(Migration.all)
        try FormerSchema.create(version, at: database.url)
        return database
    }

    @Test(arguments: onlyOnDisk, FormerSchema.versions)
    func migratedStoreEqualsANewOne(_ engine: Engine, _ version: Int64) throws {
        let (old, new) = (try former(version, on: engine), try engine.database(Migration.all))
        try old.open(.migrate).close()
        try new.open(.migrate).close()
        let (migrated, created) = (try old.structure().lines, try new.structure().lines)
        #expect(migrated.subtracting(created).isEmpty)
        #expect(created.subtracting(migrated).isEmpty)
        #expect(created.count > 300)
    }

    /// Without the migration the last one is not equal, so a difference would have been found.
    @Test(arguments: onlyOnDisk) func structureShowsAChange(_ engine: Engine) throws {
        let (old, new) = (try former(FormerSchema.last, on: engine), try engine.database(Migration.all))
        try new.open(.migrate).close()
        #expect(try old.structure().lines != (try new.structure().lines))
    }
}
