import Relay
import Synchronization

/// The row keys of all lanes of a store, and the keys for personal values. A relay that reads its
/// master key again replaces them.
final class RowKeys: Sendable {
    private let kept: Mutex<RowAuthenticator?>
    private let sealer: Mutex<PersonalSealer?>

    init(_ authenticator: RowAuthenticator?, _ personal: PersonalSealer?) {
        kept = Mutex(authenticator)
        sealer = Mutex(personal)
    }

    var personal: PersonalSealer? { sealer.withLock { $0 } }

    func use(_ personal: PersonalSealer) { sealer.withLock { $0 = personal } }

    var current: RowAuthenticator? { kept.withLock { $0 } }

    func use(_ authenticator: RowAuthenticator) { kept.withLock { $0 = authenticator } }
}

/// Checks the signed rows of one transaction before its scripts write, and signs them afterwards.
///
/// Purpose: a relay must not act on a row that somebody else wrote into the store, and must not
/// sign one.
///
/// Invariant: only content that a relay wrote is signed. A row that the check found genuine stays
/// genuine, because the check locks it. A row that the check did not find is signed only if a
/// statement of this transaction wrote it (`WrittenRows`).
///
/// Failures: somebody inserts a row after the check and before the script. Such a row is not
/// genuine and not written by this transaction. The transaction then rolls back as a conflict and
/// runs again, and its next check finds the row. The same rule applies to relied rows if the check
/// found none. A search that a writing script relies on therefore finds one row at most.
///
/// SQLite locks out other writers, so this cannot happen there. The rule still runs, so that tests
/// on both engines cover it. `RowCheckTests.swift`, `RowRaceTests.swift`, `ForgedRowTests.swift`
/// and `ForgedEntryTests.swift` test it.
struct RowCheck {
    /// The rows of one search, and the scripts that name it. Scripts of one batch often name the
    /// same rows, such as their website.
    private struct Item {
        let rows: SignedRows
        var scripts: [Int]
        /// Whether the check found no row.
        var isMissing = false
    }

    private var items: [Item] = []
    private let purpose: Purpose
    private let authenticator: RowAuthenticator
    /// The name of the first row of each script that is not genuine, by the index of the script.
    private(set) var forged: [Int: String] = [:]
    /// The rows with content that a relay wrote: genuine before the scripts, or written by them.
    private var known: Set<RowID> = []

    init(_ scripts: [Script], _ purpose: Purpose, _ authenticator: RowAuthenticator) {
        self.purpose = purpose
        self.authenticator = authenticator
        var places: [SignedRows: Int] = [:]
        for (index, script) in scripts.enumerated() {
            for rows in script.rows {
                if let place = places[rows] {
                    items[place].scripts.append(index)
                } else {
                    places[rows] = items.count
                    items.append(Item(rows: rows, scripts: [index]))
                }
            }
        }
    }

    var steps: [BoundStatement] { items.map { $0.rows.reading(for: purpose) } }

    mutating func check(_ found: some Collection<Rows>) throws(SessionFailure) {
        for (index, rows) in found.enumerated() {
            let item = items[index]
            items[index].isMissing = rows.isEmpty
            for row in rows {
                let row = try CheckedRow(row, of: item.rows.search.table)
                if row.isGenuine(authenticator) {
                    // Only `signatures` uses the set, and a transaction that reads signs nothing.
                    if purpose == .writing { known.insert(row.id) }
                } else if item.rows.use.needsGenuineRows {
                    for script in item.scripts where forged[script] == nil { forged[script] = row.name }
                }
            }
        }
    }

    /// Records the rows that the scripts inserted or moved to a new key.
    mutating func record(_ steps: [BoundStatement], _ answers: some Collection<Rows>) throws(SessionFailure) {
        for (step, answer) in zip(steps, answers) {
            guard let written = step.statement.written else { continue }
            for key in try written.keys(of: step, answer) { known.insert(RowID(written.table, key)) }
        }
    }

    /// Returns the searches for rows that may be signed after the scripts. The scripts in `done`
    /// were committed before and need no signatures.
    func written(without done: Set<Int>) -> [SignedRows] {
        items.filter { item in
            (item.rows.use != .relied || item.isMissing)
                && item.scripts.contains { forged[$0] == nil && !done.contains($0) }
        }.map(\.rows)
    }

    /// Returns the statements that sign the rows found after the scripts. Each row is signed once.
    func signatures(_ written: [SignedRows], _ found: some Collection<Rows>) throws(SessionFailure) -> [BoundStatement]
    {
        var signatures: [BoundStatement] = []
        var seen: Set<RowID> = []
        for (rows, answer) in zip(written, found) {
            for row in answer {
                let row = try CheckedRow(row, of: rows.search.table)
                guard try isToSign(row, rows.use), seen.insert(row.id).inserted else { continue }
                let mac = authenticator.mac(of: row.values, in: row.table, rights: row.rights)
                guard mac != row.mac else { continue }
                signatures.append(row.table.sign.bound(["mac": .blob(mac)], lists: ["key": row.key]))
            }
        }
        return signatures
    }

    private func isToSign(_ row: CheckedRow, _ use: SignedRows.Use) throws(SessionFailure) -> Bool {
        let isKnown = known.contains(row.id)
        switch use {
        case .adopted: return true
        case .lenient: return isKnown
        case .signed where isKnown: return true
        // Somebody else may have written the row after the check.
        case .signed, .relied:
            guard isKnown || row.isGenuine(authenticator) else {
                throw .conflict("\(row.name) was written by somebody else meanwhile")
            }
            return false
        }
    }
}
