import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Rows that an operator has changed by SQL and then adopts.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AdoptedRowTests {
    /// Another session writes to the row while the operator looks at it, each column in turn.
    @Test(arguments: StoreKind.all) func adoptedRowIsSignedOnlyAsSeen(kind: StoreKind) async throws {
        let rig = try await SignedRowsFixture(kind).rig
        for table in SignedTable.all {
            try rig.forge("UPDATE \(table.name) SET mac = NULL")
            // With another key it would be another row.
            let columns = try #require(SignedRowsFixture.columns[table.name]).filter { !table.key.contains($0.name) }
            for column in columns {
                let seen = try await rig.row(of: table)
                try rig.forge("UPDATE \(table.name) SET \(column.change)")
                #expect(try await !rig.adopt(seen), "\(table.name).\(column.name)")
            }
            #expect(try await rig.row(of: table).verdict == .unsigned)
            #expect(try await rig.adopt(rig.row(of: table)), "\(table.name)")
            #expect(try await rig.row(of: table).verdict == .genuine)
        }
        let adopted = try rig.count("SELECT count(*) FROM audit WHERE event = 'row.adopted'")
        #expect(adopted == Int64(SignedTable.all.count))
    }

    @Test(arguments: StoreKind.all) func restoredRightIsNotSignedDuringAdoption(kind: StoreKind) async throws {
        let rig = try await SignedRowsFixture(kind).rig
        try rig.forge("UPDATE user SET state = 'frozen', stopped_by = 'operator', mac = NULL")
        let user = try #require(SignedTable.all.first { $0.name == "user" })
        let seen = try await rig.row(of: user)
        try rig.forge("UPDATE user SET state = 'active', stopped_by = NULL")
        #expect(try await !rig.adopt(seen))
        #expect(try await rig.row(of: user).verdict == .unsigned)
    }
}

extension RelayRig {
    /// Returns the only row of a table.
    fileprivate func row(of table: SignedTable) async throws -> RowReport {
        let (store, authenticator) = (store, try Self.rowAuthenticator())
        let rows = try await on { _ in
            try await store.run(RowQueries.page(of: table, after: nil, with: authenticator))
        }
        #expect(rows.count == 1, "\(table.name)")
        return try #require(rows.first)
    }

    fileprivate func adopt(_ row: RowReport) async throws -> Bool {
        let (store, now) = (store, time.now())
        return try await on { relay in
            try await store.run(
                RowQueries.adopt(row, reason: "ticket 4711", at: now, as: relay.operations.new()))
        }
    }
}
