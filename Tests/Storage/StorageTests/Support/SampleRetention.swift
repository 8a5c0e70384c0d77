import Crypto
import Domain
import Relay
import World

@testable import Storage

extension Sample {
    /// Expired rows of each kind.
    static var oldRows: [BoundStatement] {
        let old = SQLValue.timestamp(now - .seconds(1))
        let (id, other) = (SQLValue.id(Sample.id(77_000) as ChallengeID), SQLValue.id(Sample.id(77_001) as ChallengeID))
        let digest = SQLValue.blob([UInt8](repeating: 7, count: 32))
        return [
            oldTally(scope: .text(String(repeating: "0", count: 32))), oldUsage(website: id, relay: other),
            oldDead(entry: id, user: .id(Sample.id(5) as UserID), deadAt: old),
            oldEndpoint(entry: other, expiresAt: old), oldActivation(digest: digest, user: id, at: old, operation: id),
            oldCode(factor: id, at: old), oldTemporary(factor: id, at: old, digest: digest),
            oldNotice(notice: id, user: id, at: old, operation: id),
            oldRecovery(recovery: id, user: id, link: digest, at: old, operation: id),
            oldSecret(operation: id, expiresAt: old), oldCertificate(device: id, at: old),
            oldWebsiteCertificate(digest: digest, website: id, at: old),
            oldChallenge(challenge: id, website: id, user: id, context: .blob([]), nonce: id, at: old, operation: id),
            oldChange(operation: id, at: old),
            oldWriter(writer: id, at: old, key: digest),
            oldLink(writer: id, at: old, hash: digest, entries: .blob([UInt8](repeating: 7, count: 48))),
            oldChange(operation: other, at: .timestamp(now)),
        ]
    }

    static func runRetention(on store: Store) async throws {
        // After the links of the audit, the rows without a link.
        for kind in ExpiredRows.Kind.allCases + [.audit] {
            let rubbish = ExpiredRows(kind, before: now, mark: kind == .audit ? Int64(count) - 10 : 0)
            _ = try await store.drop(rubbish, by: Sample.id(1))
        }
        try await runAuditRetention(on: store)
    }

    /// Runs the statements for which a store needs keys.
    private static func runAuditRetention(on store: Store) async throws {
        let authenticator = try RowAuthenticator(keys: [AuditFixture.key])
        let rubbish = ExpiredRows(.audit, before: now)
        _ = try await store.run(AuditLinkDeletion.next(after: [], before: now))
        let chain = AuditLinkDeletion.Chain(writer: AuditCheckpoint.retired, newest: 9)
        _ = try await store.run(AuditLinkDeletion.find(chain, rubbish, with: authenticator))
        let entry = AuditLink.Entry(operation: AuditCheckpoint.retired, digest: AuditLink.start)
        let link = try AuditLink(
            AuditPlace(writer: AuditCheckpoint.retired, sequence: 1), at: now.sql, after: AuditLink.start, [entry],
            key: P256PrivateKey.generate())
        let found = AuditLinkDeletion.Found(
            writer: link.writer, former: 0, last: link, operations: [entry.operation])
        let relay: RelayID = id(1)
        let page = AuditWriterDeletion.page(after: [], startedBefore: now)
        _ = try await store.run(Script("retention", reads: [page]))
        _ = try await store.run(
            Script(
                "retention", rows: [AuditLinkDeletion.rows(link.writer)],
                writes: AuditLinkDeletion.drop(found, at: now, by: relay)
                    + AuditWriterDeletion.drop([link.writer], rubbish, by: relay)))
    }
}

private let oldWriter = Statement("INSERT INTO audit_writer VALUES (:writer, 'relay', 'host', :at, :key, NULL)")
private let oldLink = Statement(
    "INSERT INTO audit_link VALUES (:writer, 1, :at, :hash, :entries, :hash, :hash)")
private let oldTally = Statement("INSERT INTO sms_usage VALUES ('2020-01-01', :scope, 1, 0, 0, 0)")
private let oldUsage = Statement("INSERT INTO website_usage VALUES ('2020-01-01', :website, :relay, 1, 0, 0, NULL)")
private let oldDead = Statement(
    """
    INSERT INTO outbox (id, kind, user_id, address, attempts, dead_at)
    VALUES (:entry, 'mail', :user, 'a@example.com', 0, :deadAt)
    """)
private let oldEndpoint = Statement(
    "INSERT INTO outbox (id, kind, attempts, expires_at) VALUES (:entry, 'webhook', 0, :expiresAt)")
private let oldActivation = Statement(
    "INSERT INTO activation VALUES (:digest, :user, :at, :at, NULL, NULL, NULL, NULL, :operation, NULL)")
private let oldCode = Statement("INSERT INTO sent_code VALUES (:factor, 0, NULL, :at, :at, NULL)")
private let oldTemporary = Statement(
    "INSERT INTO temporary_code VALUES (:factor, :factor, :digest, 1, 1, 0, :at, :at, NULL, :factor, NULL)")
private let oldNotice = Statement(
    "INSERT INTO notice VALUES (:notice, :user, 'website', 'Title', 'Text', :at, NULL, :operation, NULL)")
private let oldCertificate = Statement(
    """
    INSERT INTO certificate (serial, device_id, created_at, expires_at, revoked_at, is_on_hold)
    VALUES ('old', :device, :at, :at, NULL, 0)
    """)
private let oldWebsiteCertificate = Statement(
    """
    INSERT INTO website_certificate (issuer, serial, thumbprint, website_id, not_before, not_after)
    VALUES (:digest, 'old', :digest, :website, :at, :at)
    """)
private let oldRecovery = Statement(
    """
    INSERT INTO recovery (id, user_id, factor, state, link, address, started_by, created_at, expires_at, operation)
    VALUES (:recovery, :user, 'totp', 'cancelled', :link, 'a@example.com', 'website', :at, :at, :operation)
    """)
private let oldSecret = Statement("INSERT INTO operation_secret VALUES (:operation, x'00', '1', :expiresAt)")
private let oldChallenge = Statement(
    """
    INSERT INTO challenge (id, website_id, user_id, state, policy, context, nonce, asked_at, expires_at, decided_at,
    operation) VALUES (:challenge, :website, :user, 'expired', '{}', :context, :nonce, :at, :at, :at, :operation)
    """)
private let oldChange = Statement(
    "INSERT INTO audit (operation, at, event) VALUES (:operation, :at, 'user.registered')")
