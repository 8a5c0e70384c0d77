import Relay

/// The check of single rows, and of what did not fit at first.
extension AuditVerification {
    /// Compares a row with what its writer has signed.
    mutating func compare(_ row: CheckedAuditRow, _ wanted: ExpectedRow) throws(StoreFailure) {
        guard wanted.digest == AuditDigest(row.digest) else { return findings.append(row.finding(.changed)) }
        try checkWords(row)
    }

    private mutating func checkWords(_ row: CheckedAuditRow) throws(StoreFailure) {
        switch row.words {
        case .right: break
        case .wrong, .sealed: findings.append(row.finding(.detail))
        case .missing:
            let isForgotten = try isForgotten(row)
            if isForgotten { deletedDetails += 1 } else { findings.append(row.finding(.detail)) }
        }
    }

    /// Whether the row is about a user who was deleted after it. The words are deleted together with
    /// the user, so that row is in the store when the words are missing.
    private mutating func isForgotten(_ row: CheckedAuditRow) throws(StoreFailure) -> Bool {
        guard let user = row.user else { return false }
        if let deletion = forgotten[user] { return row.id < deletion }
        for found in try read(AuditReads.deletions(user: .blob(user))) {
            let deletion = try CheckedAuditRow(found)
            let isProven = try isProven(deletion)
            guard isProven else { continue }
            forgotten[user] = deletion.id
            return row.id < deletion.id
        }
        return false
    }

    /// Whether a genuine link has this row.
    private mutating func isProven(_ row: CheckedAuditRow) throws(StoreFailure) -> Bool {
        guard let writer = row.writer, let sequence = row.link, try hasChain(writer), let chain = chains[writer],
            let key = chain.key, chain.isProven,
            let found = try read(AuditReads.link(writer: .blob(writer), sequence: .integer(sequence))).first,
            let link = try AuditLink(found), link.isGenuine(key)
        else { return false }
        return link.entries.contains(AuditLink.Entry(operation: row.operation, digest: row.digest))
    }

    /// Looks up once more what does not fit: programs may have written or deleted it meanwhile.
    mutating func lookAgain() throws(StoreFailure) {
        for row in pending.values.sorted(by: { $0.id < $1.id }) { try lookAgain(at: row) }
        pending = [:]
        let missing = expected.sorted { ($0.value.link, $0.key) < ($1.value.link, $1.key) }
        expected = [:]
        var checkpoints: [[UInt8]: Int64] = [:]
        for (key, wanted) in missing {
            if let found = try read(AuditReads.row(operation: .blob(key.bytes))).first {
                let row = try CheckedAuditRow(found)
                try compare(row, wanted)
                continue
            }
            if checkpoints[wanted.writer] == nil {
                checkpoints[wanted.writer] = try checkpoint(of: wanted.writer)?.sequence ?? 0
            }
            if let deleted = checkpoints[wanted.writer], wanted.link <= deleted { continue }
            findings.append(
                AuditFinding(
                    .removed, writer: wanted.writer, link: wanted.link, operation: key.bytes, "the row is missing"))
        }
    }

    /// Looks again for the link of a row.
    private mutating func lookAgain(at row: CheckedAuditRow) throws(StoreFailure) {
        if let writer = row.writer, let chain = chains[writer], !chain.isProven { return }
        if let writer = row.writer, let link = row.link, link > chains[writer]?.cursor ?? 0 {
            let isProven = try isProven(row)
            if isProven { return try checkWords(row) }
        }
        if let writer = row.writer, let link = row.link,
            let checkpoint = try checkpoint(of: writer), link <= checkpoint.sequence,
            try read(AuditReads.row(operation: .blob(row.operation))).isEmpty
        {
            return  // retention has deleted the row with its link
        }
        findings.append(row.finding(.inserted))
    }

    /// Reports keys that are not binary, which no other read finds.
    mutating func reportStrays() throws(StoreFailure) {
        for (table, statement) in AuditReads.strays.sorted(by: { $0.key < $1.key }) {
            let kind = table == "audit_link" ? AuditFinding.Kind.link : table == "audit_detail" ? .detail : .writer
            for row in try read(statement()) {
                let key = try row.value("stray").plainText ?? ""
                findings.append(AuditFinding(kind, "a row of \(table) has a key that is not binary: '\(key)'"))
            }
        }
        for writer in chains.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            for row in try read(AuditReads.strayLinks(writer: .blob(writer))) {
                let number = try row.value("stray").plainText ?? ""
                findings.append(AuditFinding(.link, writer: writer, "a link has no whole number: '\(number)'"))
            }
        }
    }
}
