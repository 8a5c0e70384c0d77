import Relay

/// Runs a batch of scripts in one transaction. Those that only read come first, then the guarded
/// ones in their order in the queue, and then the short forms.
///
/// Purpose: it does the work between BEGIN and COMMIT. It looks up operations that may already be
/// committed, checks signed rows (`RowCheck`), runs the writes and reads, and signs the changed
/// rows. Then it runs the short forms, which see what the guarded scripts wrote (`ShortBatch`). It
/// appends a link to the chain of the audit (`AuditBatch`), and commits.
///
/// Invariants: a script does not run if a row that must be genuine is not (`SignedRows.Use`). A
/// script that was committed before runs only its reads. After any failure other than `.lost`, the
/// database has no change of any script.
///
/// Failures: after `.lost`, a COMMIT may or may not have been executed. The lane then marks the
/// entries as retries, and the next transaction looks up their operations.
///
/// `UnknownCommitTests.swift`, `RowCheckTests.swift` and `ContractTests.swift` test it.
struct Transaction {
    /// The end of a script.
    enum Answer: Sendable {
        case ended(ScriptResult)
        /// The short form does not fit, and has written nothing: the guarded script must run.
        case declined
    }

    /// The entries with guarded scripts, and their places in the batch.
    private let entries: [Lane.Entry]
    private let places: [Int]
    private var shorts: ShortBatch
    private let count: Int
    private let purpose: Purpose
    /// The chain of the audit rows; nil if the transaction only reads or has no keys.
    private let chain: AuditChain?
    /// Seals the words of audit rows; nil if they are written in the clear.
    private let personal: PersonalSealer?
    private(set) var hasBegun = false

    init(_ entries: [Lane.Entry], _ purpose: Purpose, _ chain: AuditChain?, _ personal: PersonalSealer?) {
        // Scripts that only read run first: the MACs of changed rows are written last, so a checked
        // read after a write would find them forged. A database in memory has one lane for both.
        let guarded = entries.indices.filter { entries[$0].script.short == nil }
        let reading = guarded.filter { entries[$0].script.isReadOnly }
        places =
            reading.isEmpty || reading.count == guarded.count
            ? guarded : reading + guarded.filter { !entries[$0].script.isReadOnly }
        self.entries = places.map { entries[$0] }
        shorts = ShortBatch(entries)
        count = entries.count
        self.purpose = purpose
        self.chain = chain
        self.personal = personal
    }

    /// Runs the scripts and returns the end of each. After a failure other than `.lost`, no change
    /// of any script remains. A script that relies on a row that is not genuine does not run; the
    /// others do.
    ///
    /// - Parameter authenticator: the row keys; without them, no script may have a short form.
    mutating func run(
        on session: any Session, rows authenticator: RowAuthenticator?
    ) throws(SessionFailure) -> [Answer] {
        try session.begin(purpose)
        hasBegun = true
        do throws(SessionFailure) {
            let audit = AuditBatch(chain, try chain?.next(on: session), authenticator, personal)
            let done = try committedBefore(on: session)
            guard let authenticator, !shorts.isEmpty || entries.contains(where: \.script.namesSignedRows) else {
                let steps = steps(without: done, forged: [:], audit)
                let rows = try session.run(steps)
                try audit.commit(steps, rows, on: session)
                let unchecked = [String?](repeating: nil, count: steps.count)
                return merged(answers(rows[...], unchecked[...], done, forged: [:]))
            }
            if purpose != .writing { return merged(try read(on: session, authenticator)) }
            return try write(on: session, authenticator, audit, done)
        } catch {
            session.rollBack()
            throw error
        }
    }

    /// Runs a batch that writes, with checks and signatures.
    private mutating func write(
        on session: any Session, _ authenticator: RowAuthenticator, _ audit: AuditBatch, _ done: Set<Int>
    ) throws(SessionFailure) -> [Answer] {
        var check = RowCheck(entries.map(\.script), purpose, authenticator)
        if !entries.isEmpty { try check.check(session.run(check.steps)) }
        let steps = steps(without: done, forged: check.forged, audit)
        let written = check.written(without: done)
        // The rows to sign are read after the scripts, in the same exchange with the server.
        let rows = entries.isEmpty ? [] : try session.run(steps + written.map { $0.reading(for: purpose) })
        try check.record(steps, rows)
        let forgedRows = try Self.forgedRows(steps, rows, authenticator)
        let signatures = try check.signatures(written, rows.dropFirst(steps.count))
        guard !shorts.isEmpty else {
            try audit.commit(steps, rows, signatures, on: session)
            return merged(answers(rows[...], forgedRows[...], done, forged: check.forged))
        }
        // The short forms read what the guarded scripts have left, with their signatures: a form may
        // change and sign the same row.
        let found = try session.run(signatures + shorts.steps).dropFirst(signatures.count)
        let writes = try shorts.decide(by: found, authenticator, personal, audit)
        let results = writes.isEmpty ? [] : try session.run(writes)
        try shorts.check(results)
        try audit.commit(steps + writes, rows.prefix(steps.count) + results, on: session)
        return merged(answers(rows[...], forgedRows[...], done, forged: check.forged))
    }

    /// Returns the answers of all entries in the order of the batch.
    private func merged(_ guarded: [ScriptResult]) -> [Answer] {
        var answers = [Answer](repeating: .declined, count: count)
        for (place, answer) in zip(places, guarded) { answers[place] = .ended(answer) }
        shorts.answer(&answers)
        return answers
    }

    /// Runs a batch that only reads. It sends checks and reads together, because there are no
    /// writes that must wait for a check. Requests that ask the same share one answer.
    private func read(
        on session: any Session, _ authenticator: RowAuthenticator
    ) throws(SessionFailure) -> [ScriptResult] {
        var check = RowCheck(entries.map(\.script), purpose, authenticator)
        let checks = check.steps
        let reads = DistinctSteps(steps(without: [], forged: [:], AuditBatch()))
        let rows = try session.run(checks + reads.distinct)
        try session.commit()
        try check.check(rows.prefix(checks.count))
        let found = rows.dropFirst(checks.count)
        let forged = try Self.forgedRows(reads.distinct, found, authenticator)
        let all = answers(reads.answers(found)[...], reads.answers(forged[...])[...], [], forged: [:])
        return all.enumerated().map { index, answer in
            check.forged[index].map { .failure(.forged($0)) } ?? answer
        }
    }

    /// Returns the names of rows that are not genuine, one for each result of a checked read.
    private static func forgedRows(
        _ steps: [BoundStatement], _ found: some Collection<Rows>, _ authenticator: RowAuthenticator
    ) throws(SessionFailure) -> [String?] {
        var names: [String?] = []
        names.reserveCapacity(steps.count)
        for (step, rows) in zip(steps, found) { names.append(try step.forgedRow(in: rows, authenticator)) }
        return names
    }

    private func steps(
        without done: Set<Int>, forged: [Int: String], _ audit: AuditBatch
    ) -> [BoundStatement] {
        var steps: [BoundStatement] = []
        for (index, entry) in entries.enumerated() where forged[index] == nil {
            if !done.contains(index) {
                for write in entry.script.writes {
                    steps.append(audit.completed(write, by: entry.submission.cause))
                }
            }
            steps.append(contentsOf: entry.script.reads)
        }
        return steps
    }

    /// Divides the results of `steps` among the scripts.
    ///
    /// - Parameter forgedRows: for each result the name of a row that is not genuine.
    private func answers(
        _ rows: ArraySlice<Rows>, _ forgedRows: ArraySlice<String?>, _ done: Set<Int>, forged: [Int: String]
    ) -> [ScriptResult] {
        var at = rows.startIndex
        return entries.enumerated().map { index, entry in
            if let name = forged[index] { return .failure(.forged(name)) }
            let script = entry.script
            let isDone = done.contains(index)
            let reported = script.reported.map { isDone ? Rows(changes: entry.wasLost ? 1 : 0) : rows[at + $0] }
            if !isDone { at += script.writes.count }
            defer { at += script.reads.count }
            let reads = at..<(at + script.reads.count)
            if let name = forgedRows[reads].lazy.compactMap(\.self).first { return .failure(.forged(name)) }
            return .success(rows[reads] + [reported].compactMap(\.self))
        }
    }

    /// Returns the indices of the retried scripts that are already committed.
    private func committedBefore(on session: any Session) throws(SessionFailure) -> Set<Int> {
        let retried = entries.enumerated().compactMap { index, entry -> (Int, BoundStatement)? in
            guard entry.isRetry, !entry.script.writes.isEmpty,
                let operation = entry.script.operation
            else { return nil }
            return (index, Self.lookUp(operation: .blob(operation)))
        }
        guard !retried.isEmpty else { return [] }
        let found = try session.run(retried.map { $0.1 })
        return Set(zip(retried, found).filter { !$1.isEmpty }.map { $0.0.0 })
    }

    /// Finds an operation in the audit. In MariaDB the lock makes the look-up wait for a COMMIT
    /// that still runs on the lost connection.
    private static let lookUp = Statement("SELECT 1 FROM audit WHERE operation = :operation /*M! FOR UPDATE */")
}
