import Crypto
import Relay

/// A writer with its newest link, as the store has them. Nothing is checked yet.
struct AuditHeadCandidate: Sendable {
    let writer: [UInt8]
    let row: CheckedRow
    /// The number of the newest link; nil if the writer has none, or the number cannot be read.
    let sequence: Int64?
    /// The newest link; nil if there is none, or it cannot be read.
    let head: AuditHead?
    /// Whether the writer has a link.
    let hasLink: Bool

    private init?(_ row: Row) throws(StoreFailure) {
        do throws(SessionFailure) {
            self.row = try CheckedRow(row, of: .auditWriter)
        } catch {
            throw .internal(error.message)
        }
        guard case .blob(let writer) = self.row.values[0] else { return nil }
        self.writer = writer
        let key = self.row.values[4].bytes ?? []
        if case .integer(let number) = try row.value("sequence") { sequence = number } else { sequence = nil }
        hasLink = try row.value("sequence") != .null
        head = try AuditHead(row, writer: writer, publicKey: key)
    }

    /// The key of the writer; nil if no program has signed its row.
    func key(_ authenticator: RowAuthenticator) -> P256PublicKey? {
        row.isGenuine(authenticator) ? row.writerKey : nil
    }
}

extension AuditHeadCandidate {
    static let pageSize = 500

    /// Reads all writers, in pages by the writer's id.
    static func page(after writer: [UInt8]) -> Query<[AuditHeadCandidate]> { query([every(writer: .blob(writer))]) }

    static func of(_ writers: [[UInt8]]) -> Query<[AuditHeadCandidate]> {
        query(writers.map { one(writer: .blob($0)) })
    }

    private static func query(_ reads: [BoundStatement]) -> Query<[AuditHeadCandidate]> {
        Query(script: Script("audit heads", reads: reads)) { rows throws(StoreFailure) in
            var candidates: [AuditHeadCandidate] = []
            for rows in rows {
                for row in rows {
                    if let candidate = try AuditHeadCandidate(row) { candidates.append(candidate) }
                }
            }
            return candidates
        }
    }

    /// Returns the writers of the rows above a number.
    static func writers(after id: Int64) -> Query<[[UInt8]]> {
        Query(script: Script("audit heads", reads: [writersOfRows(id: .integer(id))])) { rows throws(StoreFailure) in
            var writers: [[UInt8]] = []
            for row in rows[0] { if let writer = try row.value("writer").bytes { writers.append(writer) } }
            return writers
        }
    }

    /// Returns links of a writer below a number, the newest first. One that cannot be read is left out.
    static func links(
        of writer: [UInt8], upTo sequence: Int64, key: P256PublicKey
    ) -> Query<(last: Int64?, heads: [AuditHead])> {
        let read = below(writer: .blob(writer), sequence: .integer(sequence))
        return Query(script: Script("audit heads", reads: [read])) { rows throws(StoreFailure) in
            var (last, heads) = (Int64?.none, [AuditHead]())
            for row in rows[0] {
                last = try row.integer("sequence")
                if let head = try AuditHead(row, writer: writer, publicKey: key.x963) { heads.append(head) }
            }
            return (last, heads)
        }
    }

    private static let select = """
        SELECT w.id, w.program, w.host, w.started_at, w.public_key, 0 AS rights, w.mac, l.sequence, l.at, l.hash,
        l.signature FROM audit_writer w LEFT JOIN audit_link l ON l.writer = w.id
        AND l.sequence = (SELECT max(m.sequence) FROM audit_link m WHERE m.writer = w.id)
        """

    private static let every = Statement("\(select) WHERE w.id > :writer ORDER BY w.id LIMIT \(pageSize)")
    private static let one = Statement("\(select) WHERE w.id = :writer")

    private static let writersOfRows = Statement(
        "SELECT writer FROM audit WHERE id > :id GROUP BY writer")

    private static let below = Statement(
        """
        SELECT sequence, at, hash, signature FROM audit_link WHERE writer = :writer AND sequence <= :sequence
        ORDER BY sequence DESC LIMIT 100
        """)
}

/// The row of the audit with the highest number, and whether its writer has signed it.
///
/// Anybody who can write to the store can plant a row with a high number, or give a row one.
struct NewestAuditRow: Sendable {
    let id: Int64
    /// The writer that the row names; nil if it names none.
    let writer: [UInt8]?
    let isProven: Bool

    /// Reads the row; nil if there is none.
    static func read(_ store: Store, _ authenticator: RowAuthenticator) async throws(StoreFailure) -> NewestAuditRow? {
        guard let found = try await newest(store) else { return nil }
        let row = try CheckedAuditRow(found)
        guard let writer = row.writer, let link = row.link else {
            return NewestAuditRow(id: row.id, writer: row.writer, isProven: false)
        }
        let reads = [
            AuditReads.writer(writer: .blob(writer)),
            AuditReads.link(writer: .blob(writer), sequence: .integer(link)),
        ]
        let answers = try await store.run(Script("audit heads", reads: reads))
        let entry = AuditLink.Entry(operation: row.operation, digest: row.digest)
        guard let signer = try answers[0].checkedRows(.auditWriter).first, signer.isGenuine(authenticator),
            let key = signer.writerKey, let found = answers[1].first, let link = try AuditLink(found),
            link.isGenuine(key), link.entries.contains(entry)
        else { return NewestAuditRow(id: row.id, writer: writer, isProven: false) }
        return NewestAuditRow(id: row.id, writer: writer, isProven: true)
    }

    private static func newest(_ store: Store) async throws(StoreFailure) -> Row? {
        try await store.run(Script("audit heads", reads: [AuditReads.newestRow()]))[0].first
    }
}

extension AuditHead {
    /// Reads a link without its entries; nil if a value has another type.
    fileprivate init?(_ row: Row, writer: [UInt8], publicKey: [UInt8]) throws(StoreFailure) {
        guard case .integer(let sequence) = try row.value("sequence"), case .text(let at) = try row.value("at"),
            let hash = try row.value("hash").bytes, let signature = try row.value("signature").bytes
        else { return nil }
        self.init(
            writer: writer, sequence: sequence, at: at, hash: hash, signature: signature, publicKey: publicKey)
    }
}
