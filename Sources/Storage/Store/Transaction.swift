/// Many scripts in one transaction, in the order in which they came.
struct Transaction {
    private let entries: [Lane.Entry]
    private let purpose: Purpose
    private(set) var hasBegun = false

    /// In MariaDB the lock makes the look-up wait for a commit that is still under way on the connection that was lost.
    private static let lookUp = Statement("SELECT 1 FROM audit WHERE operation = ?/*M! FOR UPDATE */")

    init(_ entries: [Lane.Entry], _ purpose: Purpose) {
        self.entries = entries
        self.purpose = purpose
    }

    /// What the reads of each script found. After a failure nothing of any of them is left, unless it is `.lost`.
    mutating func run(on session: any Session) throws(SessionFailure) -> [[Rows]] {
        try session.begin(purpose)
        hasBegun = true
        do throws(SessionFailure) {
            let done = try committedBefore(on: session)
            var steps: [Step] = []
            for (index, entry) in entries.enumerated() {
                if !done.contains(index) { steps.append(contentsOf: entry.submission.script.writes) }
                steps.append(contentsOf: entry.submission.script.reads)
            }
            let rows = try session.run(steps)
            try session.commit()
            var at = 0
            return entries.enumerated().map { index, entry in
                if !done.contains(index) { at += entry.submission.script.writes.count }
                defer { at += entry.submission.script.reads.count }
                return Array(rows[at..<(at + entry.submission.script.reads.count)])
            }
        } catch {
            session.rollBack()
            throw error
        }
    }

    /// Of the scripts whose COMMIT may have been done, those for which it was.
    private func committedBefore(on session: any Session) throws(SessionFailure) -> Set<Int> {
        let retried = entries.enumerated().compactMap { index, entry -> (Int, Step)? in
            guard entry.isRetry, !entry.submission.script.writes.isEmpty,
                let operation = entry.submission.script.operation
            else { return nil }
            return (index, Step(Self.lookUp, .blob(operation)))
        }
        guard !retried.isEmpty else { return [] }
        let found = try session.run(retried.map { $0.1 })
        return Set(zip(retried, found).filter { !$1.isEmpty }.map { $0.0.0 })
    }
}
