import Relay
import Synchronization

/// The keys that all lanes of a store use. A relay that reads its master key anew puts others in their place.
final class RowKeys: Sendable {
    private let kept: Mutex<RowAuthenticator?>

    init(_ authenticator: RowAuthenticator?) { kept = Mutex(authenticator) }

    var current: RowAuthenticator? { kept.withLock { $0 } }

    func use(_ authenticator: RowAuthenticator) { kept.withLock { $0 = authenticator } }
}

/// The rows that the scripts of one transaction rely on: checked before anything is written, signed after it.
///
/// Only content that a relay wrote may be signed. A row that the check found genuine stays so, since
/// the check locks it. A row that the check did not find is signed only if a statement of this very
/// transaction has written it (`WrittenRows`). Otherwise somebody else has written it meanwhile: the
/// transaction is rolled back and begins again, and its next check finds that row. The same rule
/// holds for relied rows if the check found none, so a search that a writing script relies on finds
/// one row at most.
///
/// SQLite locks out other writers, so this cannot happen there; the rule still runs, so that tests on
/// both engines cover it.
struct RowCheck {
    /// Rows that some scripts name. Scripts of one batch often name the same: their website, for one.
    private struct Item {
        let rows: SignedRows
        var scripts: [Int]
        /// The check found none.
        var isMissing = false
    }

    private var items: [Item] = []
    private let purpose: Purpose
    private let authenticator: RowAuthenticator
    /// The first row of each script that was not genuine, by the index of the script.
    private(set) var forged: [Int: String] = [:]
    /// Rows whose content is a relay's: genuine before the scripts, or written by them.
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
                    // They are asked for by `signatures` alone, and a read signs nothing.
                    if purpose == .writing { known.insert(row.id) }
                } else if item.rows.use.needsGenuineRows {
                    for script in item.scripts where forged[script] == nil { forged[script] = row.name }
                }
            }
        }
    }

    /// Notes which rows the scripts have written under keys that had none.
    mutating func record(_ steps: [BoundStatement], _ answers: some Collection<Rows>) throws(SessionFailure) {
        for (step, answer) in zip(steps, answers) {
            guard let written = step.statement.written else { continue }
            for key in try written.keys(of: step, answer) { known.insert(RowID(written.table, key)) }
        }
    }

    /// The rows that may be signed after the scripts that are not `done` already.
    func written(without done: Set<Int>) -> [SignedRows] {
        items.filter { item in
            (item.rows.use != .relied || item.isMissing)
                && item.scripts.contains { forged[$0] == nil && !done.contains($0) }
        }.map(\.rows)
    }

    /// Returns the statements that sign what was found of these rows after the scripts, each row once.
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
                signatures.append(BoundStatement(row.table.sign, values: [.blob(mac)] + row.key))
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
        // Another relay may have written it meanwhile.
        case .signed, .relied:
            guard isKnown || row.isGenuine(authenticator) else {
                throw .conflict("\(row.name) was written by somebody else meanwhile")
            }
            return false
        }
    }
}
