import Relay

extension AuditHead {
    /// Reads the heads of all writers, in pages by the writer's id.
    public static func page(after writer: [UInt8]?) -> Query<[AuditHead]> {
        Query(script: Script("audit heads", reads: [newest(writer: .blob(writer ?? []))])) {
            rows throws(StoreFailure) in
            var heads: [AuditHead] = []
            for row in rows[0] { heads.append(try AuditHead(row)) }
            return heads
        }
    }

    public static let pageSize = 500

    private static let newest = Statement(
        """
        SELECT l.writer, l.sequence, l.at, l.hash, l.signature, w.public_key FROM audit_writer w
        JOIN audit_link l ON l.writer = w.id
        AND l.sequence = (SELECT max(m.sequence) FROM audit_link m WHERE m.writer = w.id)
        WHERE w.id > :writer ORDER BY w.id LIMIT \(pageSize)
        """)
}
