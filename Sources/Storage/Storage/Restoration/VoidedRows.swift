import Domain
import Relay
import World

/// The kinds of things that a restore voids, because the copy does not know which of them were used
/// or revoked since it was made.
public enum RestoreEffect: String, Sendable, CaseIterable {
    /// Open logins are cancelled.
    case logins
    /// Approvals of changes that were not used are used up.
    case approvals
    /// Open recoveries of lost factors are cancelled, so the links in mails are void.
    case recoveries
    /// The help desk's codes for PINs are void.
    case unlockCodes = "unlock_codes"
    /// The temporary codes of the help desk are void.
    case temporaryCodes = "temporary_codes"
    /// The sent codes are void, and no later code is the same.
    case sentCodes = "sent_codes"
    /// The time steps of apps up to now are used up.
    case totp
    /// Hardware tokens have to be resynchronised.
    case hotp
    /// Unused recovery codes are used up.
    case recoveryCodes = "recovery_codes"
    /// Open activation codes are used up.
    case activations
    /// Phones are marked: the website should verify that the user still has them.
    case phones

    /// The effects of each restore. They cost people at most a new login or a new mail.
    public static let always: [RestoreEffect] = [
        .logins, .approvals, .recoveries, .unlockCodes, .temporaryCodes, .sentCodes, .totp,
    ]
}

/// The changes by which a restore voids what may have been used, in pages of users.
///
/// Invariant: each statement only takes rights away, and is conditional on the former state. So an
/// interrupted restore begins again at the first user, and ends with the same rows and counts.
public enum VoidedRows {
    /// The result of a page.
    public struct Page: Sendable, Equatable {
        /// The last user of the page; nil if no page follows.
        public let last: UserID?
        /// The number of rows that this restore has voided, now or in an interrupted run.
        public let counts: [RestoreEffect: Int64]
    }

    /// The most users of a page.
    public static let pageSize = 200

    private static let end = SQLValue.blob([UInt8](repeating: 0xff, count: 16))

    /// Returns the last user of the page that begins after `user`; nil if it has no users.
    public static func last(after user: UserID?) -> Query<UserID?> {
        let read = lastOfPage(after: .id(user ?? first))
        return Query(script: Script("restore", reads: [read])) { rows throws(StoreFailure) in
            try rows[0].first?.optionalID("last")
        }
    }

    private static let first = UserID(leading: [UInt8](repeating: 0, count: 16))

    private static let lastOfPage = Statement(
        """
        SELECT max(p.id) AS last FROM (SELECT u.id FROM user u WHERE u.id > :after ORDER BY u.id LIMIT \(pageSize)) p
        """)

    /// Voids what belongs to the users after `user` up to `last`; nil stands for the first and the
    /// last user. Rows whose users do not exist belong to the last page.
    public static func page(
        after user: UserID?, upTo last: UserID?, _ effects: [RestoreEffect], in epoch: InstallationEpoch
    ) -> Query<Page> {
        let users = PagedUsers(
            after: .id(user ?? first), last: last.map { .id($0) } ?? end, at: .timestamp(epoch.beganAt),
            seconds: .integer(epoch.beganAt.seconds), epoch: .blob(epoch.id))
        let chosen = RestoreEffect.allCases.filter(effects.contains)
        let script = Script(
            "restore", rows: chosen.flatMap(users.rows), writes: chosen.flatMap(users.writes),
            reads: chosen.map(users.count))
        return Query(script: script) { rows throws(StoreFailure) in
            var counts: [RestoreEffect: Int64] = [:]
            for (effect, rows) in zip(chosen, rows) { counts[effect] = try rows.first?.integer("voided_count") ?? 0 }
            return Page(last: last, counts: counts)
        }
    }

    /// Voids what belongs to one user.
    public static func of(
        _ user: UserID, _ effects: [RestoreEffect], in epoch: InstallationEpoch
    ) -> Query<Page> {
        page(after: before(user), upTo: user, effects, in: epoch)
    }

    /// The id that precedes that of the user.
    static func before(_ user: UserID) -> UserID {
        var bytes = user.bytes
        for index in bytes.indices.reversed() {
            bytes[index] &-= 1
            if bytes[index] != 0xff { break }
        }
        return UserID(leading: bytes)
    }
}

/// The users of a page, and what the statements bind.
private struct PagedUsers {
    let after: SQLValue
    let last: SQLValue
    let at: SQLValue
    let seconds: SQLValue
    /// The epoch, which stands for the operation in the rows that it changed.
    let epoch: SQLValue

    /// The rows that lose a right, or of which a covered value changes. They are signed without the
    /// right, so SQL alone does not give it back.
    func rows(_ effect: RestoreEffect) -> [SignedRows] {
        switch effect {
        case .logins: [openLogins(at: at, after: after, last: last).lenient]
        case .approvals: [approvals(after: after, last: last).lenient]
        case .recoveries: [recoveries(after: after, last: last).lenient]
        case .unlockCodes, .phones: [phones(after: after, last: last).lenient]
        case .temporaryCodes: []
        case .hotp: [countedFactors(after: after, last: last, kind1: .word(Factor.hotp), kind2: .null).lenient]
        case .recoveryCodes: [recoveryCodes(at: at, after: after, last: last).lenient]
        case .activations: [activations(at: at, after: after, last: last).lenient]
        case .totp: [countedFactors(after: after, last: last, kind1: .word(Factor.totp), kind2: .null).lenient]
        case .sentCodes:
            [
                countedFactors(after: after, last: last, kind1: .word(Factor.sms), kind2: .word(Factor.mail)).lenient
            ]
        }
    }

    func writes(_ effect: RestoreEffect) -> [BoundStatement] {
        switch effect {
        case .logins:
            [
                cancelLogins(at: at, epoch: epoch, after: after, last: last),
                skipSteps(at: at, after: after, last: last), dropEntries(at: at, after: after, last: last),
            ]
        case .approvals: [useApprovals(epoch: epoch, after: after, last: last)]
        case .recoveries: [cancelRecoveries(epoch: epoch, after: after, last: last)]
        case .unlockCodes: [voidUnlockCodes(after: after, last: last)]
        // They are few, and end all at once: `TemporaryCodes.voidAll`.
        case .temporaryCodes: []
        case .sentCodes:
            [dropSentCodes(after: after, last: last), moveSentCounters(seconds: seconds, after: after, last: last)]
        case .totp: [moveSteps(seconds: seconds, after: after, last: last)]
        case .hotp: [suspendTokens(at: at, after: after, last: last)]
        case .recoveryCodes: [useRecoveryCodes(at: at, after: after, last: last)]
        case .activations:
            [useActivations(at: at, after: after, last: last), dropActivationMails(after: after, last: last)]
        case .phones: [doubtPhones(at: at, after: after, last: last)]
        }
    }

    func count(_ effect: RestoreEffect) -> BoundStatement {
        switch effect {
        case .logins: countLogins(after: after, last: last, at: at)
        case .approvals: countApprovals(after: after, last: last, epoch: epoch)
        case .recoveries: countRecoveries(after: after, last: last, epoch: epoch)
        case .unlockCodes: countUnlockCodes(after: after, last: last)
        case .temporaryCodes: countTemporaryCodes(after: after, last: last, at: at)
        case .sentCodes: countSent(after: after, last: last)
        case .totp: countApps(after: after, last: last)
        case .hotp: countTokens(after: after, last: last, at: at)
        case .recoveryCodes: countRecoveryCodes(after: after, last: last, at: at)
        case .activations: countActivations(after: after, last: last, at: at)
        case .phones: countPhones(after: after, last: last, at: at)
        }
    }
}

private let range = "user_id > :after AND user_id <= :last"
private let rangeOfChallenges = "c.user_id > :after AND c.user_id <= :last"

// MARK: Logins

private let cancelLogins = Statement(
    """
    UPDATE challenge SET state = 'cancelled', reason = 'cancelled', decided_at = :at, operation = :epoch
    WHERE \(range) AND decided_at IS NULL
    """)

private let skipSteps = Statement(
    """
    UPDATE step /*M! JOIN challenge c ON c.id = step.challenge_id */
    SET /*M! step.state */ /*S! state */ = 'skipped', at = :at WHERE step.state IN ('queued', 'sent', 'seen') AND
    /*S! challenge_id IN (SELECT c.id FROM challenge c WHERE */
    \(rangeOfChallenges) AND c.decided_at = :at /*S! ) */
    """)

private let dropEntries = Statement(
    """
    DELETE /*M! o */ FROM outbox
    /*M! AS o JOIN challenge c ON c.id = o.challenge_id WHERE */
    /*S! WHERE challenge_id IN (SELECT c.id FROM challenge c WHERE */
    \(rangeOfChallenges) AND c.decided_at = :at /*S! ) */ AND \(OutboxRows.exceptWebhooks)
    """)

private let countLogins = Statement(
    "SELECT count(*) AS voided_count FROM challenge WHERE \(range) AND decided_at = :at")

// MARK: Approvals and recoveries

private let openLogins = RowSearch(.challenge, where: "\(range) AND (decided_at IS NULL OR decided_at = :at)")
private let recoveries = RowSearch(.recovery, where: range)
private let phones = RowSearch(.device, where: range)
private let recoveryCodes = RowSearch(.recoveryCode, where: "\(range) AND (used_at IS NULL OR used_at = :at)")
private let activations = RowSearch(.activation, where: "\(range) AND (used_at IS NULL OR used_at = :at)")
private let approvals = RowSearch(.challenge, where: "\(range) AND approves IS NOT NULL")

private let useApprovals = Statement(
    """
    UPDATE challenge SET used_by = :epoch
    WHERE \(range) AND approves IS NOT NULL AND decision = 'approve' AND used_by IS NULL
    """)

private let countApprovals = Statement(
    "SELECT count(*) AS voided_count FROM challenge WHERE \(range) AND used_by = :epoch")

private let cancelRecoveries = Statement(
    """
    UPDATE recovery SET state = 'cancelled', stopped_by = 'operator', operation = :epoch
    WHERE \(range) AND state IN ('sent', 'opened', 'proved')
    """)

private let countRecoveries = Statement(
    "SELECT count(*) AS voided_count FROM recovery WHERE \(range) AND operation = :epoch")

// MARK: Codes

private let voidUnlockCodes = Statement(
    """
    UPDATE device SET unlock_failures = \(UnlockCode.tries)
    WHERE \(range) AND unlock_operation IS NOT NULL AND unlock_failures < \(UnlockCode.tries)
    """)

private let countUnlockCodes = Statement(
    """
    SELECT count(*) AS voided_count FROM device
    WHERE \(range) AND unlock_operation IS NOT NULL AND unlock_failures >= \(UnlockCode.tries)
    """)

/// The codes are gone. Their rows in the audit tell how many they were.
private let countTemporaryCodes = Statement(
    """
    SELECT count(*) AS voided_count FROM audit
    WHERE \(range) AND event = 'temporary.revoked' AND outcome = 'restore' AND at = :at
    """)

private let countedFactors = RowSearch(.factor, where: "\(range) AND kind IN (:kind1, :kind2)")

private let dropSentCodes = Statement(
    """
    DELETE /*M! s */ FROM sent_code
    /*M! AS s JOIN factor f ON f.id = s.factor_id WHERE f.user_id > :after AND f.user_id <= :last */
    /*S! WHERE factor_id IN (SELECT f.id FROM factor f WHERE f.user_id > :after AND f.user_id <= :last) */
    """)

/// Moves the counters of sent codes to the time. It is ahead of the number of codes that a relay
/// has sent to one address, so no code is sent again.
private let moveSentCounters = Statement(
    "UPDATE factor SET counter = :seconds WHERE \(range) AND kind IN ('sms', 'mail') AND counter < :seconds")

private let countSent = Statement(
    "SELECT count(*) AS voided_count FROM factor WHERE \(range) AND kind IN ('sms', 'mail')")

/// Uses the time steps up to the one after the present, which relays accept as well.
private let moveSteps = Statement(
    """
    UPDATE factor SET counter = \(lastStep) WHERE \(range) AND kind = 'totp' AND state = 'active'
    AND counter < \(lastStep)
    """)

private let lastStep = "(:seconds /*M! DIV */ /*S! / */ coalesce(period, 30)) + 1"

private let countApps = Statement(
    "SELECT count(*) AS voided_count FROM factor WHERE \(range) AND kind = 'totp' AND state = 'active'")

private let suspendTokens = Statement(
    "UPDATE factor SET resync_since = :at WHERE \(range) AND kind = 'hotp' AND resync_since IS NULL")

private let countTokens = Statement(
    "SELECT count(*) AS voided_count FROM factor WHERE \(range) AND kind = 'hotp' AND resync_since = :at")

private let useRecoveryCodes = Statement(
    "UPDATE recovery_code SET used_at = :at WHERE \(range) AND used_at IS NULL")

private let countRecoveryCodes = Statement(
    "SELECT count(*) AS voided_count FROM recovery_code WHERE \(range) AND used_at = :at")

// MARK: Activations and phones

private let useActivations = Statement("UPDATE activation SET used_at = :at WHERE \(range) AND used_at IS NULL")

private let dropActivationMails = Statement(
    "DELETE FROM outbox WHERE \(range) AND kind = 'mail' AND event IN ('activation', 'recovery.link')")

private let countActivations = Statement(
    "SELECT count(*) AS voided_count FROM activation WHERE \(range) AND used_at = :at")

private let doubtPhones = Statement(
    "UPDATE device SET verify_since = :at WHERE \(range) AND state <> 'revoked' AND verify_since IS NULL")

private let countPhones = Statement(
    "SELECT count(*) AS voided_count FROM device WHERE \(range) AND verify_since = :at")
