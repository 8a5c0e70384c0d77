import Bytes
import Domain
import EventLoop
import Relay
import Synchronization
import World

/// The statements that read all rows of a signed table in pages, in the order of its primary key.
final class SignedTableScan: Sendable {
    static let all = SignedTable.all.map { SignedTableScan($0) }
    /// The number of rows in a page. It is small, so that other scripts do not wait long.
    static let pageSize = 200

    let table: SignedTable
    let one: RowSearch
    let every: RowSearch
    let asSeen: RowSearch
    /// The statement that audits an adoption, if the row still is as the operator saw it.
    let auditAdoption: Statement
    private let first: Statement
    private let next: Statement

    private init(_ table: SignedTable) {
        self.table = table
        let key = table.key.joined(separator: ", ")
        let last = table.key.indices.map { ":key\($0 + 1)" }.joined(separator: ", ")
        one = RowSearch(table, where: table.hasKey)
        every = RowSearch(table, where: "1 = 1")
        asSeen = RowSearch(table, where: table.isAsSeen)
        auditAdoption = Statement.audit(
            """
            INSERT INTO audit (operation, at, event, user_id, outcome)
            SELECT :operation, :now, 'row.adopted', \(table.user), 'operator' FROM \(table.name) WHERE \(table.isAsSeen)
            \(Audit.once)
            """)
        let select = "SELECT \(table.columns) FROM \(table.name)"
        let page = "ORDER BY \(key) LIMIT \(Self.pageSize)"
        first = Statement("\(select) \(page)", since: table.since)
        next = Statement("\(select) WHERE (\(key)) > (\(last)) \(page)", since: table.since)
    }

    func page(after key: [SQLValue]?) -> BoundStatement {
        key.map { next.bound([:], lists: ["key": $0]) } ?? first()
    }

    static func of(_ table: SignedTable) -> SignedTableScan? { all.first { $0.table.name == table.name } }
}

/// The result of checking one row.
public struct RowReport: Sendable {
    public enum Verdict: Sendable, Equatable {
        case genuine
        /// No relay has signed the row.
        case unsigned
        /// The row is signed with a key that is not in the master key file.
        case unknownKey
        /// The values are as they were signed, but somebody else gave these rights back to the row.
        case rightsGivenBack([String])
        /// A covered value other than a right was changed. The former value is not stored.
        case changed
    }

    public let table: SignedTable
    public let verdict: Verdict
    /// The covered values, with the names of their columns or expressions.
    public let columns: [(name: String, value: SQLValue)]
    public let key: [SQLValue]
    fileprivate let rights: Int64

    init(_ row: CheckedRow, _ authenticator: RowAuthenticator) {
        table = row.table
        key = row.key
        rights = row.rights
        columns = Array(zip(row.table.covered, row.values)).map { (name: $0, value: $1) }
        verdict = row.verdict(authenticator)
    }

    /// The key as operators write it: hexadecimal digits, with a colon between the columns of a
    /// key.
    public var keyText: String { CheckedRow.text(of: key) }

    /// The list `seen` for `SignedTable.isAsSeen`.
    fileprivate var seen: [SQLValue] { columns.map(\.value) }
}

extension SignedRows {
    /// All rows of all signed tables, adopted unchanged: for a store for which an operator vouches
    /// as a whole.
    package static let everythingAdopted = SignedTableScan.all.map { $0.every().adopted }
}

extension CheckedRow {
    fileprivate func verdict(_ authenticator: RowAuthenticator) -> RowReport.Verdict {
        guard let mac else { return .unsigned }
        guard authenticator.knows(mac) else { return .unknownKey }
        if isGenuine(authenticator) { return .genuine }
        let signed = table.allRights.filter {
            authenticator.isGenuine(mac, of: values, in: table, rights: $0)
        }
        guard let most = signed.max() else { return .changed }
        return .rightsGivenBack(
            table.rights.enumerated().filter { 1 << $0.offset & rights & ~most != 0 }.map(\.element))
    }

    static func text(of key: [SQLValue]) -> String {
        key.map { value in
            switch value {
            case .null, .personal: ""
            case .integer(let number): String(number)
            case .text(let text): text
            case .blob(let bytes): Hex.encode(bytes)
            }
        }.joined(separator: ":")
    }
}

extension Store {
    /// Signs all rows with the current key that were signed with an older key, one page at a time.
    /// It returns the number of rows.
    public func signAgain() async throws(StoreFailure) -> Int { try await signAgain { _ in } }

    /// - Parameter progress: is called after each page with the number of rows that were read so far.
    private func signAgain(progress: @Sendable (Int) -> Void) async throws(StoreFailure) -> Int {
        guard let authenticator = rowAuthenticator, authenticator.hasOldKeys else { return 0 }
        var (count, read) = (0, 0)
        for walk in SignedTableScan.all {
            var last: [SQLValue]?
            while let page = try await page(of: walk, after: last) {
                // A key value that is not binary may be changed when it is read. The scan must not
                // read the same page forever.
                guard page.last?.key != last else { break }
                last = page.last?.key
                let stale = page.filter { row in
                    row.mac.map { authenticator.isStale($0) } ?? false && row.isGenuine(authenticator)
                }
                if !stale.isEmpty {
                    _ = try await run(
                        Script("sign again", rows: stale.map { walk.one.bound(lists: ["key": $0.key]).lenient }))
                }
                count += stale.count
                read += page.count
                progress(read)
                // Relays that are at work add rows behind every page.
                guard page.count == SignedTableScan.pageSize else { break }
            }
        }
        return count
    }

    /// Signs the rows again for a program without a loop. The thread waits.
    public func signAgainBlocking(progress: @escaping @Sendable (Int) -> Void = { _ in }) throws(StoreFailure) -> Int {
        let loop: EventLoop
        do throws(SystemFailure) {
            loop = try EventLoop(name: "signing", time: SystemTime())
        } catch {
            throw .unavailable("\(error)")
        }
        let kept = Mutex<Result<Int, StoreFailure>>(.failure(.internal("a loop ended before its work")))
        loop.post {
            loop.spawn {
                let outcome: Result<Int, StoreFailure>
                do throws(StoreFailure) {
                    outcome = .success(try await self.signAgain(progress: progress))
                } catch {
                    outcome = .failure(error)
                }
                kept.withLock { $0 = outcome }
                loop.stop()
            }
        }
        loop.run()
        return try kept.withLock { $0 }.get()
    }

    private func page(of walk: SignedTableScan, after key: [SQLValue]?) async throws(StoreFailure) -> [CheckedRow]? {
        let rows = try await run(Script("rows", reads: [walk.page(after: key)]))
        let page = try rows[0].checkedRows(walk.table)
        return page.isEmpty ? nil : page
    }
}

extension Rows {
    func checkedRows(_ table: SignedTable) throws(StoreFailure) -> [CheckedRow] {
        var checked: [CheckedRow] = []
        for row in self {
            do throws(SessionFailure) {
                checked.append(try CheckedRow(row, of: table))
            } catch {
                throw .internal(error.message)
            }
        }
        return checked
    }
}

/// The queries of `twoefay rows`.
public enum RowQueries {
    /// The number of rows of a full page. A page with fewer is the last one, whatever is added meanwhile.
    public static let pageSize = SignedTableScan.pageSize

    /// Returns the page of rows after `key`, or the first page if `key` is nil. The page is empty
    /// at the end.
    public static func page(
        of table: SignedTable, after key: [SQLValue]?, with authenticator: RowAuthenticator
    ) -> Query<[RowReport]> {
        let steps = SignedTableScan.of(table).map { [$0.page(after: key)] } ?? []
        return Query(script: Script("rows", reads: steps)) { rows throws(StoreFailure) in
            guard let page = try rows.first?.checkedRows(table) else { return [] }
            return page.map { RowReport($0, authenticator) }
        }
    }

    public static func row(
        of table: SignedTable, key: [SQLValue], with authenticator: RowAuthenticator
    ) -> Query<RowReport?> {
        let steps = SignedTableScan.of(table).map { [$0.one.plain.bound([:], lists: ["key": key])] } ?? []
        return Query(script: Script("row", reads: steps)) { rows throws(StoreFailure) in
            try rows.first?.checkedRows(table).first.map { RowReport($0, authenticator) }
        }
    }

    /// Signs a row as the operator saw it, and records the operator's reason in the audit. It
    /// returns false if the row has changed or no longer exists. Without this condition, somebody
    /// who writes to the store could replace the row while the operator reads it.
    public static func adopt(
        _ row: RowReport, reason: String, at now: Timestamp, as operation: Operation
    ) -> Query<Bool> {
        guard let walk = SignedTableScan.of(row.table) else { return Query(script: Script("adopt")) { _ in false } }
        let note = "\(row.table.name) \(row.keyText): \(reason)"
        let audit = walk.auditAdoption.bound(
            [
                "operation": .id(operation), "now": .timestamp(now), "note": .text(note),
                "rights": .integer(row.rights),
            ], lists: ["seen": row.seen])
        let seen = walk.asSeen.bound(["rights": .integer(row.rights)], lists: ["seen": row.seen])
        return Query(change: Change("adopt", operation, rows: [seen.adopted], [audit])) { rows in rows.happened }
    }

    /// Counts the rows that each key has signed, by the tag at the start of their MACs.
    public static func counts(of authenticator: RowAuthenticator) -> Query<[String: Int64]> {
        let reads = SignedTable.all.indices.map { countStatements[$0]() }
        return Query(script: Script("rekey", reads: reads)) { tables throws(StoreFailure) in
            var counts: [String: Int64] = [:]
            for rows in tables {
                for row in rows {
                    let tag = try row.blob("tag")
                    let key = authenticator.keyID(tag: tag) ?? Hex.encode(tag)
                    counts[key, default: 0] += try row.integer("signature_count")
                }
            }
            return counts
        }
    }

    /// Parses a key as operators write it; nil if it does not have the form of the table's keys.
    public static func key(_ text: String, of table: SignedTable) -> [SQLValue]? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == table.key.count else { return nil }
        var key: [SQLValue] = []
        for (name, part) in zip(table.key, parts) {
            if name == "counter" {
                guard let number = Int64(part) else { return nil }
                key.append(.integer(number))
            } else {
                guard let bytes = Hex.decode(String(part)), !bytes.isEmpty else { return nil }
                key.append(.blob(bytes))
            }
        }
        return key
    }
}

/// Counts the signed rows by tag. Rows with the empty MAC of an INSERT (`WrittenRows`) count as
/// unsigned. MariaDB pads an empty MAC with zeros.
private let countStatements = SignedTable.all.map {
    Statement(
        """
        SELECT substr(mac, 1, \(RowAuthenticator.tagBytes)) AS tag, count(*) AS signature_count FROM \($0.name)
        WHERE substr(mac, 1, \(RowAuthenticator.tagBytes)) NOT IN (x'', x'00000000')
        /*S! AND typeof(mac) = 'blob' */ GROUP BY 1
        """, since: $0.since)
}
