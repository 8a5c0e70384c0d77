import Crypto
import Domain
import Relay
import World

/// Some rows with personal values, and the changes that bring them into the wanted form.
struct PersonalBatch: Sendable {
    var changes: [PersonalChange] = []
    var checked = 0
    /// The number of values that cannot be opened.
    var stuck = 0
    /// The id at which the next batch begins; nil if there are no further rows.
    var last: [UInt8]?
}

/// A row whose personal values get another form.
struct PersonalChange: Sendable {
    fileprivate let search: RowSearch
    fileprivate let key: SQLValue
    /// The values as they were read, and as they are written. They are in the order of the columns.
    fileprivate let old: [SQLValue]
    fileprivate let new: [SQLValue]
    fileprivate let write: Statement

    /// A row that is not genuine gets the new form, too, but is not signed. It must not keep a value
    /// in the clear or under an old key.
    var row: SignedRows { search.bound(lists: ["key": [key]]).lenient }

    func statement(_ relay: RelayID) -> BoundStatement {
        write.bound(["relay": .id(relay)], lists: ["key": [key], "old": old, "new": new])
    }
}

/// The rows with personal values, and how their values are rewritten.
enum PersonalRows {
    /// The number of users, phones or challenges of a batch. It is small, so that other scripts do
    /// not wait long.
    private static let batch: Int64 = 50

    private struct Table {
        let row: RowSearch
        var key: SQLName = "id"
        let columns: [SQLName]
        let purpose: PersonalValue.Purpose
        let write: Statement
    }

    private static let userRow = RowSearch(.user, where: SignedTable.user.hasKey)
    private static let factorRow = RowSearch(.factor, where: SignedTable.factor.hasKey)
    private static let activationRow = RowSearch(.activation, where: SignedTable.activation.hasKey)
    private static let recoveryRow = RowSearch(.recovery, where: SignedTable.recovery.hasKey)
    private static let entryRow = RowSearch(.outbox, where: SignedTable.outbox.hasKey)
    private static let deviceRow = RowSearch(.device, where: SignedTable.device.hasKey)
    private static let challengeRow = RowSearch(.challenge, where: SignedTable.challenge.hasKey)

    // MARK: Addresses

    /// The ids of the next users.
    static func users(after mark: [UInt8]) -> Query<[[UInt8]]> {
        Query(script: Script("personal", reads: [usersAfter(mark: .blob(mark), limit: .integer(batch))])) {
            rows throws(StoreFailure) in
            var ids: [[UInt8]] = []
            for row in rows[0] { ids.append(try row.blob("id")) }
            return ids
        }
    }

    private static let usersAfter = Statement("SELECT id FROM user WHERE id > :mark ORDER BY id LIMIT :limit")

    /// The addresses of users, in all tables.
    ///
    /// - Parameter ids: the users after `mark`.
    static func addresses(
        after mark: [UInt8], _ ids: [[UInt8]], _ personal: PersonalSealer
    ) -> Query<PersonalBatch> {
        let last = SQLValue.blob(ids.last ?? mark)
        let reads = [usersOf, factorsOf, activationsOf, recoveriesOf, entriesOf].map {
            $0(mark: .blob(mark), last: last)
        }
        let tables = [
            Table(
                row: userRow, columns: ["email", "phone", "former_email"], purpose: .address,
                write: writeUser),
            Table(row: factorRow, columns: ["address"], purpose: .address, write: writeFactor),
            Table(row: activationRow, key: "digest", columns: ["address"], purpose: .address, write: writeActivation),
            Table(row: recoveryRow, columns: ["address"], purpose: .address, write: writeRecovery),
            Table(row: entryRow, columns: ["address"], purpose: .address, write: writeEntry),
        ]
        return Query(script: Script("personal", reads: reads)) { answers throws(StoreFailure) in
            var batch = PersonalBatch()
            for (table, rows) in zip(tables, answers) { try add(rows, of: table, to: &batch, personal) }
            batch.last = ids.last
            return batch
        }
    }

    private static let ofUsers = "WHERE u.id > :mark AND u.id <= :last"

    private static let usersOf = Statement("SELECT u.id, u.email, u.phone, u.former_email FROM user u \(ofUsers)")

    private static let factorsOf = Statement(
        "SELECT f.id, f.address FROM user u JOIN factor f ON f.user_id = u.id \(ofUsers) AND f.address IS NOT NULL")

    private static let activationsOf = Statement(
        """
        SELECT a.digest, a.address FROM user u JOIN activation a ON a.user_id = u.id \(ofUsers)
        AND a.address IS NOT NULL
        """)

    private static let recoveriesOf = Statement(
        "SELECT r.id, r.address FROM user u JOIN recovery r ON r.user_id = u.id \(ofUsers)")

    private static let entriesOf = Statement(
        "SELECT o.id, o.address FROM user u JOIN outbox o ON o.user_id = u.id \(ofUsers) AND o.address IS NOT NULL")

    // MARK: Push tokens and contexts

    static func pushTokens(after mark: [UInt8], _ personal: PersonalSealer) -> Query<PersonalBatch> {
        rows(
            of: Table(row: deviceRow, columns: ["push_token"], purpose: .pushToken, write: writeDevice),
            read: devicesAfter, after: mark, personal)
    }

    static func contexts(after mark: [UInt8], _ personal: PersonalSealer) -> Query<PersonalBatch> {
        rows(
            of: Table(row: challengeRow, columns: ["context"], purpose: .context, write: writeChallenge),
            read: challengesAfter, after: mark, personal)
    }

    private static func rows(
        of table: Table, read: Statement, after mark: [UInt8], _ personal: PersonalSealer
    ) -> Query<PersonalBatch> {
        Query(script: Script("personal", reads: [read(mark: .blob(mark), limit: .integer(batch))])) {
            rows throws(StoreFailure) in
            var batch = PersonalBatch()
            try add(rows[0], of: table, to: &batch, personal)
            batch.last = try rows[0].last?.blob("id")
            return batch
        }
    }

    private static let devicesAfter = Statement(
        "SELECT id, push_token FROM device WHERE id > :mark ORDER BY id LIMIT :limit")

    private static let challengesAfter = Statement(
        "SELECT id, context FROM challenge WHERE id > :mark ORDER BY id LIMIT :limit")

    private static func add(
        _ rows: Rows, of table: Table, to batch: inout PersonalBatch, _ personal: PersonalSealer
    ) throws(StoreFailure) {
        for row in rows {
            batch.checked += 1
            var (old, new): ([SQLValue], [SQLValue]) = ([], [])
            for column in table.columns {
                let value = try row.value(column)
                old.append(value)
                do throws(StoreFailure) {
                    new.append(try personal.rewritten(value, table.purpose, column.description))
                } catch {
                    batch.stuck += 1
                    new.append(value)
                }
            }
            guard new != old else { continue }
            batch.changes.append(
                PersonalChange(
                    search: table.row, key: try row.value(table.key), old: old, new: new, write: table.write))
        }
    }
}

// MARK: Writing

extension PersonalRows {
    /// Another user may have the address in the other form, if two relays with different settings
    /// registered it at the same moment. This user then keeps the value as it is.
    private static let writeUser = Statement(
        """
        UPDATE /*M! IGNORE */ /*S! OR IGNORE */ user SET email = :new1, phone = :new2, former_email = :new3
        WHERE id = :key1 AND email /*M! <=> */ /*S! IS */ :old1 AND phone /*M! <=> */ /*S! IS */ :old2
        AND former_email /*M! <=> */ /*S! IS */ :old3 AND \(PersonalSealingRuns.isHeld)
        """)

    private static let writeFactor = Statement(written("factor", "address"))
    private static let writeActivation = Statement(written("activation", "address", key: "digest"))
    private static let writeRecovery = Statement(written("recovery", "address"))
    private static let writeEntry = Statement(written("outbox", "address"))
    private static let writeDevice = Statement(written("device", "push_token"))
    private static let writeChallenge = Statement(written("challenge", "context"))

    private static func written(_ table: String, _ column: String, key: String = "id") -> String {
        """
        UPDATE \(table) SET \(column) = :new1 WHERE \(key) = :key1 AND \(column) = :old1
        AND \(PersonalSealingRuns.isHeld)
        """
    }
}

extension KeyUse {
    /// Counts the rows with personal values that are sealed under this key.
    public static func personal(sealedBy key: String) -> Query<Int64> {
        let beginning = Sealer.beginning(underKey: key)
        let text = SQLValue.text("\(PersonalSealer.marker)\(key):")
        let read = personalByKey(
            text: text, characters: .integer(Int64(PersonalSealer.marker.utf8.count + key.utf8.count + 1)),
            bytes: .integer(Int64(beginning.count)), beginning: .blob(beginning))
        return Query(script: Script("rekey", reads: [read])) { rows throws(StoreFailure) in
            try rows[0].first?.integer("personal_count") ?? 0
        }
    }

    private static let personalByKey = Statement(
        """
        SELECT (SELECT count(*) FROM user WHERE \(begins("email")) OR \(begins("phone")) OR \(begins("former_email")))
        + (SELECT count(*) FROM factor WHERE \(begins("address")))
        + (SELECT count(*) FROM activation WHERE \(begins("address")))
        + (SELECT count(*) FROM recovery WHERE \(begins("address")))
        + (SELECT count(*) FROM outbox WHERE \(begins("address")))
        + (SELECT count(*) FROM device WHERE \(begins("push_token")))
        + (SELECT count(*) FROM challenge WHERE substr(context, 1, :bytes) = :beginning) AS personal_count
        """)

    private static func begins(_ column: String) -> String { "substr(\(column), 1, :characters) = :text" }
}
