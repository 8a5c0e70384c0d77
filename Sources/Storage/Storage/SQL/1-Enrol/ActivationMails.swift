import Domain
import Relay
import World

/// The statements for activation codes that the relay mails to users.
enum ActivationMails {
    /// Writes the outbox entry and the sealed secret of a mail, and makes earlier codes void. The
    /// statements must follow the insertion of the activation, and all statements that may remove
    /// the mark of the user's row.
    static func written(
        _ mail: ActivationMail, of activation: NewActivation, as operation: Operation
    ) -> [BoundStatement] {
        let (user, digest, entry) = (
            SQLValue.id(activation.user), SQLValue.blob(activation.digest), SQLValue.id(mail.entry)
        )
        return [
            voidEarlier(now: .timestamp(activation.createdAt), operation: .id(operation), user: user, digest: digest),
            dropEarlierSecrets(user: user, operation: .id(operation), entry: entry),
            dropEarlierMails(user: user, operation: .id(operation), entry: entry),
            insertEntry(
                entry: entry, language: .text(mail.language), now: .timestamp(activation.createdAt),
                expiresAt: .timestamp(activation.expiresAt), dueAt: .timestamp(mail.dueAt), relay: .id(mail.holder),
                user: user, operation: .id(operation), digest: digest),
            insertSecret(
                row: .id(mail.secret.operation), sealed: .blob(mail.secret.sealed.bytes),
                key: .text(mail.secret.sealed.key), expiresAt: .timestamp(mail.secret.expiresAt), entry: entry,
                user: user, operation: .id(operation)),
        ]
    }

    /// Makes the earlier codes void, as if they were used. A phone that already waits for its
    /// approval has used its code, and goes on waiting.
    private static let voidEarlier = Statement(
        """
        UPDATE activation SET used_at = :now, operation = :operation
        WHERE user_id = :user AND expires_at > :now AND used_at IS NULL AND digest <> :digest AND \(Guards.userMarked)
        """)

    private static let dropEarlierSecrets = Statement(secretsDropped("AND o.id <> :entry", when: Guards.userMarked))

    /// A statement that deletes the secrets of the user's mails. It must precede the deletion of
    /// their outbox entries.
    private static func secretsDropped(_ condition: String, when isChanging: String) -> String {
        """
        DELETE /*M! s */ FROM operation_secret
        /*M! AS s JOIN outbox o ON o.id = s.operation WHERE */
        /*S! WHERE operation IN (SELECT o.id FROM outbox o WHERE */
        o.user_id = :user AND o.kind = 'mail' AND o.event = '\(ActivationMail.event)' \(condition) /*S! ) */
        AND \(isChanging)
        """
    }

    private static let dropEarlierMails = Statement(mailsDropped("AND id <> :entry", when: Guards.userMarked))

    private static func mailsDropped(_ condition: String, when isChanging: String) -> String {
        """
        DELETE FROM outbox WHERE user_id = :user AND kind = 'mail' AND event = '\(ActivationMail.event)' \(condition)
        AND \(isChanging)
        """
    }

    private static let insertEntry = Statement(
        into: .outbox, once: true,
        """
        INSERT INTO outbox
        (id, kind, event, user_id, address, language, created_at, expires_at, due_at, attempts, holder)
        SELECT :entry, 'mail', '\(ActivationMail.event)', u.id, u.email, coalesce(:language, u.language), :now, :expiresAt,
        :dueAt, 0, :relay
        FROM user u JOIN activation a ON a.user_id = u.id
        WHERE u.id = :user AND u.operation = :operation AND u.email IS NOT NULL
        AND a.digest = :digest AND a.operation = :operation AND a.used_at IS NULL
        """)

    private static let insertSecret = Statement(
        """
        INSERT INTO operation_secret (operation, sealed, sealed_by, expires_at)
        SELECT :row, :sealed, :key, :expiresAt FROM outbox o JOIN user u ON u.id = o.user_id
        WHERE o.id = :entry AND u.id = :user AND u.operation = :operation
        /*M! ON DUPLICATE KEY UPDATE operation = operation_secret.operation */ /*S! ON CONFLICT DO NOTHING */
        """)
}

/// The address of mailed codes.
extension ActivationMails {
    /// Makes the codes void that were mailed to an address which the user no longer has, and drops
    /// their mails. It is part of a change that `operation` has put into the audit. A code stays
    /// valid if the user confirms the address to which it went.
    ///
    /// - Parameter address: the address that the user has now. The statements get its forms, because
    ///   two columns may have the same address in different forms.
    static func voidedAtFormerAddress(
        _ user: UserID, _ address: String?, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        let forms: KeyValuePairs<SQLName, [SQLValue]> = ["address": .forms(ofAddress: address)]
        return [
            voidAtFormer.bound(
                ["now": .timestamp(now), "operation": .id(operation), "user": .id(user)], lists: forms),
            dropSecretsAtFormer.bound(["user": .id(user), "operation": .id(operation)], lists: forms),
            dropMailsAtFormer.bound(["user": .id(user), "operation": .id(operation)], lists: forms),
        ]
    }

    private static let voidAtFormer = Statement(
        """
        UPDATE activation SET used_at = :now, operation = :operation
        WHERE user_id = :user AND expires_at > :now AND used_at IS NULL AND \(isFormer("address")) AND \(Guards.audited)
        """)

    private static let dropSecretsAtFormer = Statement(
        secretsDropped("AND \(isFormer("o.address"))", when: Guards.audited))

    private static let dropMailsAtFormer = Statement(mailsDropped("AND \(isFormer("address"))", when: Guards.audited))

    private static func isFormer(_ address: String) -> String {
        PersonalForms.differ(address, "address")
    }
}

/// The limit on mailed codes.
extension ActivationMails {
    static func unmarkLimited(_ user: UserID, at now: Timestamp, as operation: Operation) -> BoundStatement {
        unmark(
            user: .id(user), operation: .id(operation), since: .timestamp(now - ActivationMail.window),
            most: .integer(Int64(ActivationMail.most)))
    }

    private static let unmark = Statement(
        """
        UPDATE user SET operation = id WHERE id = :user AND operation = :operation
        AND (SELECT count(*) FROM activation a WHERE a.user_id = :user AND a.created_at > :since) >= :most
        """)

    /// Reads the code that must leave the window before another one is mailed.
    static func blocker(_ user: UserID, at now: Timestamp, isMailed: Bool) -> BoundStatement {
        oldestCounted(
            user: .id(user), since: .timestamp(now - ActivationMail.window), isMailed: .bool(isMailed),
            others: .integer(Int64(ActivationMail.most - 1)))
    }

    private static let oldestCounted = Statement(
        """
        SELECT a.created_at FROM activation a WHERE a.user_id = :user AND a.created_at > :since AND :isMailed = 1
        ORDER BY a.created_at DESC LIMIT 1 OFFSET :others
        """)
}
