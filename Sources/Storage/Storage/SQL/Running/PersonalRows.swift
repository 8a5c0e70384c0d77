import Crypto
import Domain
import Relay
import World

/// Some rows with personal values, and the changes that bring them into the wanted form.
struct PersonalBatch: Sendable {
    var changes: [PersonalChange] = []
    /// The words of audit rows that get another form.
    var words: [AuditWordsChange] = []
    var checked = 0
    /// The number of values that keep their form: those that cannot be opened, those of rows that are
    /// not genuine, and addresses that another user has in the wanted form.
    var stuck = 0
    /// The key at which the next batch begins; nil if there are no further rows.
    var last: [UInt8]?

    /// Takes a batch that is not full, and changes nothing, for the end of its table. Otherwise a run
    /// would not end while relays add rows.
    mutating func endIfLast(of count: Int, most: Int64) {
        if count < most, changed == 0 { last = nil }
    }

    /// The number of rows that change.
    var changed: Int { changes.count + words.count }
}

/// A row whose personal values get another form.
struct PersonalChange: Sendable {
    private let table: PersonalTable
    private let key: SQLValue
    /// The values that change: each as it was read, and as it is written.
    fileprivate var values: [Value]

    fileprivate struct Value: Sendable {
        let column: PersonalColumn
        let old: SQLValue
        let new: SQLValue
    }

    fileprivate init(table: PersonalTable, key: SQLValue, _ values: [Value]) {
        self.table = table
        self.key = key
        self.values = values
    }

    /// The row was genuine when it was read. If somebody has changed it since, it gets the new form
    /// but no signature.
    var row: SignedRows { table.search.bound(lists: ["key": [key]]).lenient }

    /// Each value has a statement of its own, so that one that keeps its form keeps no other.
    func statements(_ relay: RelayID) -> [BoundStatement] {
        values.map { value in
            value.column.write.bound(
                ["relay": .id(relay), "old": value.old, "new": value.new], lists: ["key": [key]])
        }
    }

    /// The searches for other users who have one of these values. They are in the order of the
    /// values that only one user of a website can have.
    fileprivate var searches: [BoundStatement] {
        values.compactMap { value in
            value.column.findOther.map { $0.bound(["new": value.new], lists: ["key": [key]]) }
        }
    }

    /// Drops the values that another user has.
    ///
    /// - Parameter others: whether there is another user, in the order of `searches`.
    /// - Returns: the number of dropped values.
    fileprivate mutating func keep(taken others: inout ArraySlice<Bool>) -> Int {
        let before = values.count
        values.removeAll { value in value.column.findOther != nil && others.popFirst() == true }
        return before - values.count
    }
}

/// A table with personal values. A run reads it in the order of its primary key.
private struct PersonalTable: Sendable {
    let table: SignedTable
    let columns: [PersonalColumn]
    let search: RowSearch
    let read: Statement

    init(_ table: SignedTable, _ columns: [PersonalColumn], read: Statement) {
        self.table = table
        self.columns = columns
        search = RowSearch(table, where: table.hasKey)
        self.read = read
    }
}

private struct PersonalColumn: Sendable {
    let name: SQLName
    let purpose: PersonalValue.Purpose
    let write: Statement
    /// Finds another user of the same website with a value; nil if several rows may have it.
    let findOther: Statement?

    init(
        _ name: SQLName, _ purpose: PersonalValue.Purpose = .address, write: Statement, findOther: Statement? = nil
    ) {
        self.name = name
        self.purpose = purpose
        self.write = write
        self.findOther = findOther
    }
}

/// The rows with personal values, and how their values are rewritten.
enum PersonalRows {
    /// The number of rows of a batch. It is small, so that other scripts do not wait long.
    private static let batch: Int64 = 50

    /// The table of a place; nil for the words of audit rows, which have no MAC.
    private static func table(_ place: PersonalSealingPosition.Place) -> PersonalTable? {
        switch place {
        case .user: users
        case .factor: factors
        case .activation: activations
        case .recovery: recoveries
        case .outbox: entries
        case .device: devices
        case .challenge: challenges
        case .auditDetail: nil
        }
    }

    private static let users = PersonalTable(
        .user,
        [
            PersonalColumn("email", write: writeEmail, findOther: findEmail),
            PersonalColumn("phone", write: writePhone, findOther: findPhone),
            PersonalColumn("former_email", write: writeFormerEmail),
        ], read: readUsers)
    private static let factors = PersonalTable(
        .factor, [PersonalColumn("address", write: writeFactor)], read: readFactors)
    private static let activations = PersonalTable(
        .activation, [PersonalColumn("address", write: writeActivation)], read: readActivations)
    private static let recoveries = PersonalTable(
        .recovery, [PersonalColumn("address", write: writeRecovery)], read: readRecoveries)
    private static let entries = PersonalTable(
        .outbox, [PersonalColumn("address", write: writeEntry)], read: readEntries)
    private static let devices = PersonalTable(
        .device, [PersonalColumn("push_token", .pushToken, write: writeDevice)], read: readDevices)
    private static let challenges = PersonalTable(
        .challenge,
        [
            PersonalColumn("context", .context, write: writeContext),
            PersonalColumn("receipt", .receipt, write: writeReceipt),
        ],
        read: readChallenges)

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
    private static let writeEmail = Statement(writing(.user, "email", orIgnore))
    private static let writePhone = Statement(writing(.user, "phone", orIgnore))
    private static let writeFormerEmail = Statement(writing(.user, "former_email"))
    private static let writeFactor = Statement(writing(.factor, "address"))
    private static let writeActivation = Statement(writing(.activation, "address"))
    private static let writeRecovery = Statement(writing(.recovery, "address"))
    private static let writeEntry = Statement(writing(.outbox, "address"))
    private static let writeDevice = Statement(writing(.device, "push_token"))
    private static let writeContext = Statement(writing(.challenge, "context"))
    private static let writeReceipt = Statement(writing(.challenge, "receipt"))

    private static let orIgnore = "/*M! IGNORE */ /*S! OR IGNORE */"

    private static func writing(_ table: SignedTable, _ column: String, _ ignore: String = "") -> String {
        """
        UPDATE \(ignore) \(table.name) SET \(column) = :new
        WHERE \(table.hasKey) AND \(column) /*M! <=> */ /*S! IS */ :old AND \(PersonalSealingRuns.isHeld)
        """
    }

    private static let findEmail = Statement(finding("email"))
    private static let findPhone = Statement(finding("phone"))

    private static func finding(_ column: String) -> String {
        """
        SELECT 1 FROM user o WHERE o.\(column) = :new AND o.id <> :key1
        AND o.website_id = (SELECT u.website_id FROM user u WHERE u.id = :key1)
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
        guard let table = table(place) else { return SealedWordRows.next(after: mark, personal, limit: batch) }
        let read = table.read(mark: .blob(mark), limit: .integer(batch))
        return Query(script: Script("personal", reads: [read])) { rows throws(StoreFailure) in
            var batch = PersonalBatch()
            for row in rows[0] {
                guard case .blob(let key) = try row.value(at: 0) else { throw .internal("a key is not a blob") }
                batch.last = key
                try add(row, key, of: table, to: &batch, personal, authenticator)
            }
            batch.endIfLast(of: rows[0].count, most: Self.batch)
            return batch
        }
    }

    private static func add(
        _ row: Row, _ key: [UInt8], of table: PersonalTable, to batch: inout PersonalBatch, _ personal: PersonalSealer,
        _ authenticator: RowAuthenticator?
    ) throws(StoreFailure) {
        batch.checked += 1
        var values: [PersonalChange.Value] = []
        for column in table.columns {
            let old = try row.value(column.name)
            do throws(StoreFailure) {
                let new = try personal.rewritten(old, column.purpose, column.name.description)
                if new != old { values.append(PersonalChange.Value(column: column, old: old, new: new)) }
            } catch {
                batch.stuck += 1
            }
        }
        guard !values.isEmpty else { return }
        guard try isGenuine(row, of: table.table, authenticator) else {
            batch.stuck += values.count
            return
        }
        batch.changes.append(PersonalChange(table: table, key: .blob(key), values))
    }

    /// The same rows without the values that another user has in the wanted form. The store would
    /// ignore their change, so each run would find them again. They count as stuck.
    static func withoutTaken(_ batch: PersonalBatch) -> Query<PersonalBatch> {
        let searches = batch.changes.flatMap(\.searches)
        return Query(script: Script("personal", reads: searches)) { rows in
            var left = batch
            var others = rows.map { !$0.isEmpty }[...]
            for index in left.changes.indices { left.stuck += left.changes[index].keep(taken: &others) }
            left.changes.removeAll(where: \.values.isEmpty)
            return left
        }
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
        + (SELECT count(*) FROM audit_detail WHERE \(begins("changes")))
        + (SELECT count(*) FROM challenge WHERE substr(context, 1, :bytes) = :beginning OR \(begins("receipt")))
        AS personal_count
        """)

    private static func begins(_ column: String) -> String { "substr(\(column), 1, :characters) = :text" }
}
