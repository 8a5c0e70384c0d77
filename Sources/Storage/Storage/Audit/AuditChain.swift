import Bytes
import Crypto
import Relay
import Synchronization
import World

/// The chain of one writer: a process that writes audit rows to a store.
///
/// Purpose: nobody can change, delete or insert an audit row later without notice. Each transaction
/// that wrote audit rows appends a link (`AuditLink`) before it commits.
///
/// Invariants: the links of a writer are numbered without gaps, and each one has the hash of the
/// link before it. The key never leaves the memory of the process. The lane that writes is the only
/// user of a chain, and runs one transaction at a time.
///
/// Failures:
/// - A transaction is rolled back: its link is rolled back with it, and its number is used again.
/// - The answer to a COMMIT is lost: the next transaction looks for the link before it goes on. The
///   look-up waits for a COMMIT that still runs.
/// - Somebody has written a link under the next number: the chain ends there, and a new writer
///   begins. So nobody can stop a relay for good by one row.
///
/// After `lifetime`, a new writer begins, so that retention can delete the row of the former one.
///
/// `AuditChainTests.swift` tests it on both engines, `UnknownCommitTests.swift` after lost COMMITs.
final class AuditChain: Sendable {
    private struct Writer {
        let id: [UInt8]
        let key: P256PrivateKey
        let startedAt: Timestamp
        /// Whether the row of `audit_writer` is committed.
        var isRegistered = false
        var sequence: Int64 = 0
        var hash = AuditLink.start
        /// The last link that was committed.
        var last: AuditLink?
        /// The link of a COMMIT with an unknown result.
        var unknown: AuditLink?

        mutating func advance(to link: AuditLink) {
            guard link.writer == id else { return }
            sequence = link.sequence
            hash = link.hash
            last = link
            isRegistered = true
        }
    }

    /// The time for which a program writes as one writer.
    static let lifetime = Duration.seconds(30 * 86_400)

    private let author: AuditAuthor
    private let time: any TimeSource
    private let writer = Mutex<Writer?>(nil)

    init(_ author: AuditAuthor, time: any TimeSource) {
        self.author = author
        self.time = time
    }

    /// Returns the place of the next link. It first finds out whether the last link was committed,
    /// if the session lost the answer.
    func next(on session: any Session) throws(SessionFailure) -> AuditPlace {
        try settle(on: session)
        do throws(CryptoFailure) {
            return try writer.withLock { current throws(CryptoFailure) -> AuditPlace in
                if let current, time.now() - current.startedAt < Self.lifetime {
                    return AuditPlace(writer: current.id, sequence: current.sequence + 1)
                }
                let writer = try begin()
                current = writer
                return AuditPlace(writer: writer.id, sequence: writer.sequence + 1)
            }
        } catch {
            throw .refused("the audit cannot be signed: \(error)")
        }
    }

    /// The head as this process knows it; nil if it has committed no link.
    var head: AuditHead? {
        writer.withLock { writer in
            guard let writer, let last = writer.last else { return nil }
            return AuditHead(last, publicKey: writer.key.publicKey.x963)
        }
    }

    private func begin() throws(CryptoFailure) -> Writer {
        Writer(id: SystemRandomness().bytes(16), key: try .generate(), startedAt: time.now())
    }

    private func settle(on session: any Session) throws(SessionFailure) {
        guard let unknown = writer.withLock({ $0?.unknown }) else { return }
        let found = try session.run([
            lookUp(writer: .blob(unknown.writer), sequence: .integer(unknown.sequence))
        ])
        writer.withLock { writer in
            writer?.unknown = nil
            guard let row = found.first?.first, (try? row.blob("hash")) == unknown.hash else { return }
            writer?.advance(to: unknown)
        }
    }

    /// Makes the next link.
    func link(_ entries: [AuditLink.Entry], at place: AuditPlace) throws(SessionFailure) -> AuditLink {
        guard let writer = writer.withLock({ $0 }), writer.id == place.writer else {
            throw .conflict("the audit has a new writer")
        }
        do throws(CryptoFailure) {
            return try AuditLink(place, at: time.now().sql, after: writer.hash, entries, key: writer.key)
        } catch {
            throw .refused("the audit cannot be signed: \(error)")
        }
    }

    /// Returns the statements that write the link, and before the first link the row of the writer.
    /// `check` reads the result of the last one.
    func statements(_ link: AuditLink, _ authenticator: RowAuthenticator) -> [BoundStatement] {
        let insertion = insertLink(
            writer: .blob(link.writer), sequence: .integer(link.sequence), at: .text(link.at),
            former: .blob(link.former), entries: .blob(link.encodedEntries), hash: .blob(link.hash),
            signature: .blob(link.signature))
        guard let writer = writer.withLock({ $0 }), !writer.isRegistered else { return [insertion] }
        let row: [SQLValue] = [
            .blob(writer.id), .text(author.program), .text(author.host), .timestamp(writer.startedAt),
            .blob(writer.key.publicKey.x963),
        ]
        let mac = authenticator.mac(of: row, in: .auditWriter, rights: 0)
        return [
            insertWriter(
                id: row[0], program: row[1], host: row[2], startedAt: row[3], publicKey: row[4], mac: .blob(mac)),
            insertion,
        ]
    }

    /// Returns the statement that would write a link, for a transaction without audit rows. It writes
    /// nothing.
    func nothing(at place: AuditPlace) -> BoundStatement {
        insertLink(
            writer: .blob(place.writer), sequence: .integer(place.sequence), at: .null, former: .null, entries: .null,
            hash: .null, signature: .null)
    }

    /// Checks that the statement wrote the link. If somebody else has used its number, a new writer
    /// begins.
    func check(_ link: AuditLink, _ answer: Rows?) throws(SessionFailure) {
        if let row = answer?.first, (try? row.blob("hash")) == link.hash { return }
        writer.withLock { $0 = nil }
        throw .conflict("link \(link.sequence) of the audit was written by somebody else")
    }

    /// Records a committed link.
    func committed(_ link: AuditLink) { writer.withLock { $0?.advance(to: link) } }

    /// Records a link whose COMMIT has an unknown result.
    func lost(_ link: AuditLink) { writer.withLock { $0?.unknown = link } }
}

/// In MariaDB the lock makes the look-up wait for a COMMIT that still runs on the lost connection.
private let lookUp = Statement(
    "SELECT hash FROM audit_link WHERE writer = :writer AND sequence = :sequence /*M! FOR UPDATE */")

private let insertWriter = Statement(
    """
    INSERT INTO audit_writer (id, program, host, started_at, public_key, mac)
    VALUES (:id, :program, :host, :startedAt, :publicKey, :mac)
    /*M! ON DUPLICATE KEY UPDATE id = audit_writer.id */ /*S! ON CONFLICT DO NOTHING */
    """)

/// SQLite returns no row if the number is used, MariaDB the existing one. Without entries it writes
/// nothing.
private let insertLink = Statement(
    """
    INSERT INTO audit_link (writer, sequence, at, former, entries, hash, signature)
    SELECT :writer, :sequence, :at, :former, :entries, :hash, :signature /*M! FROM DUAL */ WHERE :entries IS NOT NULL
    /*M! ON DUPLICATE KEY UPDATE sequence = audit_link.sequence */ /*S! ON CONFLICT DO NOTHING */
    RETURNING hash
    """)
