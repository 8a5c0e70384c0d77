import Crypto
import Domain
import Relay
import World

/// Some rows with personal values, and the changes that bring them into the wanted form.
struct PersonalBatch: Sendable {
    var changes: [PersonalChange] = []
    var checked = 0
    /// The number of values that keep their form: those that cannot be opened, and those of rows that
    /// are not genuine.
    var stuck = 0
    /// The key at which the next batch begins; nil if there are no further rows.
    var last: [UInt8]?
}

/// A row whose personal values get another form.
struct PersonalChange: Sendable {
    private let table: PersonalTable
    private let key: SQLValue
    /// The values as they were read, and as they are written. They are in the order of the columns.
    private let old: [SQLValue]
    private let new: [SQLValue]

    fileprivate init(table: PersonalTable, key: SQLValue, old: [SQLValue], new: [SQLValue]) {
        self.table = table
        self.key = key
        self.old = old
        self.new = new
    }

    /// The row was genuine when it was read. If somebody has changed it since, it gets the new form
    /// but no signature.
    var row: SignedRows { table.search.bound(lists: ["key": [key]]).lenient }

    func statement(_ relay: RelayID) -> BoundStatement {
        table.write.bound(["relay": .id(relay)], lists: ["key": [key], "old": old, "new": new])
    }
}

/// A table with personal values. A run reads it in the order of its primary key.
private struct PersonalTable: Sendable {
    let table: SignedTable
    let columns: [PersonalColumn]
    let search: RowSearch
    let read: Statement
    let write: Statement

    init(_ table: SignedTable, _ columns: [PersonalColumn], read: Statement, write: Statement) {
        self.table = table
        self.columns = columns
        search = RowSearch(table, where: table.hasKey)
        self.read = read
        self.write = write
    }
}

private struct PersonalColumn: Sendable {
    let name: SQLName
    let purpose: PersonalValue.Purpose

    init(_ name: SQLName, _ purpose: PersonalValue.Purpose = .address) {
        self.name = name
        self.purpose = purpose
    }
}

/// The rows with personal values, and how their values are rewritten.
enum PersonalRows {
    /// The number of rows of a batch. It is small, so that other scripts do not wait long.
    private static let batch: Int64 = 50

    private static func table(_ place: PersonalSealingPosition.Place) -> PersonalTable {
        switch place {
        case .user: users
        case .factor: factors
        case .activation: activations
        case .recovery: recoveries
        case .outbox: entries
        case .device: devices
        case .challenge: challenges
        }
    }

    private static let address = [PersonalColumn("address")]
    private static let addresses = [PersonalColumn("email"), PersonalColumn("phone"), PersonalColumn("former_email")]
    private static let pushToken = [PersonalColumn("push_token", .pushToken)]
    private static let login = [PersonalColumn("context", .context), PersonalColumn("receipt", .receipt)]

    private static let users = PersonalTable(.user, addresses, read: readUsers, write: writeUser)
    private static let factors = PersonalTable(.factor, address, read: readFactors, write: writeFactor)
    private static let activations = PersonalTable(.activation, address, read: readActivations, write: writeActivation)
    private static let recoveries = PersonalTable(.recovery, address, read: readRecoveries, write: writeRecovery)
    private static let entries = PersonalTable(.outbox, address, read: readEntries, write: writeEntry)
    private static let devices = PersonalTable(.device, pushToken, read: readDevices, write: writeDevice)
    private static let challenges = PersonalTable(.challenge, login, read: readChallenges, write: writeChallenge)

    private static let readUsers = Statement(reading(.user))
    private static let readFactors = Statement(reading(.factor))
    private static let readActivations = Statement(reading(.activation))
    private static let readRecoveries = Statement(reading(.recovery))
    private static let readEntries = Statement(reading(.outbox))
    private static let readDevices = Statement(reading(.device))
    /// The MAC covers the receipt of an approved login only, as a part of an expression.
    private static let readChallenges = Statement(reading(.challenge, ", receipt"))

    private static func reading(_ table: SignedTable, _ further: String = "") -> String {
        """
        SELECT \(table.columns)\(further) FROM \(table.name) WHERE \(table.key[0]) > :mark
        ORDER BY \(table.key[0]) LIMIT :limit
        """
    }

    /// Another user may have the address in the other form, if two relays with different settings
    /// registered it at the same moment. This user then keeps the value as it is.
    private static let writeUser = Statement(writing(.user, addresses, "/*M! IGNORE */ /*S! OR IGNORE */"))
    private static let writeFactor = Statement(writing(.factor, address))
    private static let writeActivation = Statement(writing(.activation, address))
    private static let writeRecovery = Statement(writing(.recovery, address))
    private static let writeEntry = Statement(writing(.outbox, address))
    private static let writeDevice = Statement(writing(.device, pushToken))
    private static let writeChallenge = Statement(writing(.challenge, login))

    private static func writing(_ table: SignedTable, _ columns: [PersonalColumn], _ ignore: String = "") -> String {
        let new = columns.enumerated().map { "\($1.name) = :new\($0 + 1)" }
        let old = columns.enumerated().map { "\($1.name) /*M! <=> */ /*S! IS */ :old\($0 + 1)" }
        return """
            UPDATE \(ignore) \(table.name) SET \(new.joined(separator: ", "))
            WHERE \(table.hasKey) AND \(old.joined(separator: " AND ")) AND \(PersonalSealingRuns.isHeld)
            """
    }

    /// The next rows of a table, with the changes that they need.
    ///
    /// A value of a row that is not genuine stays as it is, and counts as stuck. Otherwise somebody
    /// who can write the store could let a relay seal guesses, and look for equal seals.
    ///
    /// - Parameter mark: the key of the last row that was read.
    static func next(
        of place: PersonalSealingPosition.Place, after mark: [UInt8], _ personal: PersonalSealer,
        _ authenticator: RowAuthenticator?
    ) -> Query<PersonalBatch> {
        let table = table(place)
        let read = table.read(mark: .blob(mark), limit: .integer(batch))
        return Query(script: Script("personal", reads: [read])) { rows throws(StoreFailure) in
            var batch = PersonalBatch()
            for row in rows[0] {
                guard case .blob(let key) = try row.value(at: 0) else { throw .internal("a key is not a blob") }
                batch.last = key
                try add(row, key, of: table, to: &batch, personal, authenticator)
            }
            return batch
        }
    }

    private static func add(
        _ row: Row, _ key: [UInt8], of table: PersonalTable, to batch: inout PersonalBatch, _ personal: PersonalSealer,
        _ authenticator: RowAuthenticator?
    ) throws(StoreFailure) {
        batch.checked += 1
        var (old, new): ([SQLValue], [SQLValue]) = ([], [])
        for column in table.columns {
            let value = try row.value(column.name)
            old.append(value)
            do throws(StoreFailure) {
                new.append(try personal.rewritten(value, column.purpose, column.name.description))
            } catch {
                batch.stuck += 1
                new.append(value)
            }
        }
        guard new != old else { return }
        guard try isGenuine(row, of: table.table, authenticator) else {
            batch.stuck += zip(old, new).count { $0 != $1 }
            return
        }
        batch.changes.append(PersonalChange(table: table, key: .blob(key), old: old, new: new))
    }

    private static func isGenuine(
        _ row: Row, of table: SignedTable, _ authenticator: RowAuthenticator?
    ) throws(StoreFailure) -> Bool {
        // A store without a key signs nothing.
        guard let authenticator else { return true }
        do throws(SessionFailure) {
            return try CheckedRow(row, of: table).isGenuine(authenticator)
        } catch {
            throw .internal(error.message)
        }
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
        + (SELECT count(*) FROM challenge WHERE substr(context, 1, :bytes) = :beginning OR \(begins("receipt")))
        AS personal_count
        """)

    private static func begins(_ column: String) -> String { "substr(\(column), 1, :characters) = :text" }
}
