import Bytes
import Domain
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// The export of all that the store holds of one person.
@Suite(.mayBlock) struct PersonalExportTests {
    /// The columns by which a row belongs to a user, a phone, a factor or a login.
    private static let owners = ["user_id ", "device_id ", "factor_id ", "challenge_id "]

    /// A table that is added later must not be forgotten.
    @Test func everyTableOfAPersonIsExported() throws {
        var tables: Set<String> = ["user", "sms_usage", "audit_detail"]
        for part in SchemaText.sql.split(separator: "CREATE TABLE IF NOT EXISTS ").dropFirst() {
            let end = part.firstRange(of: "\n) /*M!")?.lowerBound ?? part.endIndex
            let columns = part[..<end].split(separator: "\n")
            let names = columns.map { $0.drop { $0 == " " } }
            guard names.contains(where: { name in Self.owners.contains { name.hasPrefix($0) } }) else { continue }
            tables.insert(String(part.prefix { $0 != " " }))
        }
        #expect(tables.isSuperset(of: ["device", "challenge", "audit", "factor", "notice", "recovery"]))
        let database = try Engine.file.database(Migration.all)
        let store = try database.open()
        defer { store.close() }
        _ = try store.runBlocking(Self.user(id: .id(Sample.id(7) as UserID), website: .id(Sample.website)))
        #expect(Set(try store.runBlocking(PersonalExport.all(of: Sample.id(7))).map(\.table)) == tables)
        #expect(try store.runBlocking(PersonalExport.all(of: Sample.id(8))).isEmpty)
    }

    @Test(arguments: Engine.allCases) func rowsOfOthersAndSecretsAreLeftOut(engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let store = try database.open()
        defer { store.close() }
        try await Sample.fill(store, at: database.url)
        let parts = try await store.run(PersonalExport.all(of: Sample.id(7)))
        func rows(_ table: String) -> [[(name: String, value: SQLValue)]] {
            parts.first { $0.table == table }?.rows ?? []
        }
        let filled = [
            "user", "device", "challenge", "step", "factor", "sent_code", "recovery_code", "recovery", "notice",
        ]
        for table in filled {
            #expect(!rows(table).isEmpty, "\(table)")
        }
        #expect(rows("device").count == 1 && rows("certificate").count == 1 && rows("outbox").count == 1)
        let own = SQLValue.id(Sample.id(7) as UserID)
        for part in parts {
            for row in part.rows {
                #expect(row.allSatisfy { !PersonalExport.withheld.contains($0.name) }, "\(part.table)")
                // A push belongs to its login, and names no user.
                for (name, value) in row where name == "user_id" {
                    #expect(value == own || value == .null && part.table == "outbox", "\(part.table)")
                }
            }
        }
    }

    private static func user(id: SQLValue, website: SQLValue) -> Script {
        Script("user", writes: [insertWebsite(website: website), insertUser(user: id, website: website)])
    }

    private static let insertWebsite = Statement(
        """
        INSERT INTO website VALUES (:website, 'shop', 'Shop', 'active', '{}', NULL, '2026-01-01 00:00:00.000', :website,
        NULL)
        """)
    private static let insertUser = Statement(
        """
        INSERT INTO user (id, token, website_id, username, state, created_at, operation)
        VALUES (:user, :user, :website, 'ada', 'active', '2026-01-01 00:00:00.000', :user)
        """)
}
