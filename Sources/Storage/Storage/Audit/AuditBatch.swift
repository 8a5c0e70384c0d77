import Crypto
import World

/// The audit rows of one transaction.
///
/// Purpose: it completes the statements that insert audit rows, and writes the rows' words and the
/// link of the chain before the COMMIT, in the exchange that also signs the rows.
///
/// Invariant: the link names the rows that this transaction wrote. A row that existed before is in
/// another link. The same statements run whether rows were written or not, so that a caller cannot
/// tell from the work of the store whether what it guessed exists.
struct AuditBatch {
    private let chain: AuditChain?
    private let place: AuditPlace?
    private let authenticator: RowAuthenticator?
    private let personal: PersonalSealer?

    /// The batch of a transaction that only reads.
    init() { self.init(nil, nil, nil, nil) }

    /// - Parameters:
    ///   - place: the place of the link; nil if the rows are not signed.
    ///   - personal: seals the words of the rows.
    init(
        _ chain: AuditChain?, _ place: AuditPlace?, _ authenticator: RowAuthenticator?, _ personal: PersonalSealer?
    ) {
        self.chain = chain
        self.place = place
        self.authenticator = authenticator
        self.personal = personal
    }

    /// Returns the statement with the values that its caller does not bind. A statement that does
    /// not insert audit rows stays as it is.
    func completed(_ step: BoundStatement, by cause: AuditCause) -> BoundStatement {
        guard step.statement.insertsAudit else { return step }
        var words = step.words
        words.reason = words.reason ?? cause.reason
        let salt = words.isEmpty ? [] : SystemRandomness().bytes(AuditWords.saltBytes)
        return step.audited(place, by: cause, words, salt: salt)
    }

    /// Runs the last statements of the transaction, and commits it.
    ///
    /// - Parameters:
    ///   - steps: the statements that ran, and `rows` their results.
    ///   - others: other statements that must run before the COMMIT.
    func commit(
        _ steps: [BoundStatement], _ rows: [Rows], _ others: [BoundStatement] = [], on session: any Session
    ) throws(SessionFailure) {
        var entries: [AuditLink.Entry] = []
        var words: [Words] = []
        for (step, rows) in zip(steps, rows) where step.statement.insertsAudit {
            for row in rows {
                guard let entry = try Self.entry(row, step) else { continue }
                entries.append(entry)
                let user = try? row.value("user_id").bytes
                // The words of this transaction are not written yet. Those of a user whom a later script
                // of it deletes must not be.
                if let user, (try? row.text("event")) == "user.forgotten" { words.removeAll { $0.user == user } }
                guard !step.words.isEmpty else { continue }
                words.append(Words(user: user, insertion: try insertion(of: step, for: entry.operation)))
            }
        }
        var last = others + words.map(\.insertion)
        var link: AuditLink?
        if let chain, let place, let authenticator, steps.contains(where: \.statement.insertsAudit) {
            if entries.isEmpty {
                last.append(chain.nothing(at: place))
            } else {
                let made = try chain.link(entries, at: place)
                last += chain.statements(made, authenticator)
                link = made
            }
        }
        let answers = last.isEmpty ? [] : try session.run(last)
        if let link { try chain?.check(link, answers.last) }
        do throws(SessionFailure) {
            try session.commit()
        } catch {
            if let link, case .lost = error { chain?.lost(link) }
            throw error
        }
        if let link { chain?.committed(link) }
    }

    /// The words of a row, before they are written.
    private struct Words {
        let user: [UInt8]?
        let insertion: BoundStatement
    }

    /// Returns the statement that writes the words of a row.
    private func insertion(of step: BoundStatement, for operation: [UInt8]) throws(SessionFailure) -> BoundStatement {
        do throws(CryptoFailure) {
            let words = try step.words.written(by: personal, for: operation)
            return words.insertion(for: .blob(operation), salt: step.salt)
        } catch {
            throw .refused("the words of the audit cannot be sealed: \(error)")
        }
    }

    /// Returns the entry of a row; nil if the row existed before.
    private static func entry(_ row: Row, _ step: BoundStatement) throws(SessionFailure) -> AuditLink.Entry? {
        do {
            guard try row.isNull("repeated") else { return nil }
            var values: [SQLValue] = []
            for index in AuditRow.columns.indices { values.append(try row.value(at: index)) }
            return AuditLink.Entry(operation: try row.blob("operation"), digest: AuditRow.digest(values))
        } catch {
            throw .statement("\(error) in: \(step.statement.sql)")
        }
    }
}
