import Domain
import Relay
import World

extension Store: AskStore {
    /// Stores a challenge. `AskScript` has the parts of the script, in the order in which they run.
    public func ask(
        _ challenge: NewChallenge, within limits: AskLimits, claiming claim: IdempotencyClaim?, as operation: Operation
    ) async throws(StoreFailure) -> AskOutcome {
        let script = AskScript(challenge: challenge, limits: limits, operation: operation, claim: claim)
        return try await run(
            Query(script: Script("ask", operation, short: script.short)) { rows throws(StoreFailure) in
                // The key is unclaimed, unless an earlier attempt has claimed it and its answer was lost.
                guard claim == nil || rows.happened else { return .unclaimed }
                return try AskScript.outcome(rows)
            })
    }
}

/// The script that stores a challenge. Each part has the statements that it uses.
struct AskScript {
    let challenge: NewChallenge
    let limits: AskLimits
    let operation: Operation
    /// Claims the idempotency key of the request, if nobody has done it.
    let claim: IdempotencyClaim?

    /// The script in its guarded form. With a claim it only looks whether the short form was committed.
    var guarded: Script {
        guard claim == nil else {
            return Script("ask", reads: [committedClaim] + reads)
        }
        let writes = markUser + supersedeOthers + insertPushes + insertChallenge + notify
        return Change("ask", operation, rows: rows, writes, reads: reads).script
    }

    private var rows: [SignedRows] {
        [
            .user(challenge.user).signed, .website(challenge.website), .challenge(challenge.id).signed,
            .entries(for: challenge.id).signed,
            LoginDecidedRows.rows(of: challenge.user, at: challenge.askedAt, as: operation),
        ]
    }
}

/// Part 1 locks and marks the user's row, if the limit of logins permits another one. Everything
/// later depends on the mark.
extension AskScript {
    fileprivate var markUser: [BoundStatement] {
        [
            lockUser(user: .id(challenge.user), website: .id(challenge.website)),
            markUserWithinLimit(
                challenge: .id(challenge.id), operation: .id(operation), user: .id(challenge.user),
                website: .id(challenge.website), known: .origin(limits.origin), since: .timestamp(limits.since),
                logins: .integer(Int64(limits.logins)), now: .timestamp(challenge.askedAt)),
        ]
    }
}

/// Locks the user's row, so that two requests for one user run one after the other. This is a
/// separate statement: a statement that waits for the lock itself may count before it waits.
private let lockUser = Statement("UPDATE user SET operation = operation WHERE id = :user AND website_id = :website")

private let markUserWithinLimit = Statement(
    """
    UPDATE user SET challenge_id = \(OpenChallenges.named), operation = :operation
    WHERE id = :user AND website_id = :website AND EXISTS
    (SELECT 1 FROM website w WHERE w.id = user.website_id AND w.state = 'active')
    AND (SELECT count(*) FROM challenge c WHERE c.user_id = user.id AND c.known = :known AND c.asked_at > :since)
    < :logins
    """)

/// Part 2 supersedes the user's open challenges.
extension AskScript {
    fileprivate var supersedeOthers: [BoundStatement] {
        let (user, now) = (SQLValue.id(challenge.user), SQLValue.timestamp(challenge.askedAt))
        return [
            supersede(now: now, operation: .id(operation), user: user, known: .origin(limits.origin)),
            Steps.skip(of: challenge.user, at: challenge.askedAt, by: operation),
            dropEntries(user: user, now: now, operation: .id(operation)),
            LoginDecidedRows.insertLoginDecided(of: challenge.user, at: challenge.askedAt, as: operation),
            auditSuperseded(now: now, user: user, operation: .id(operation)),
        ]
    }

    /// The condition for the challenges `c` that this script has superseded.
    static let superseded =
        "c.user_id = :user AND c.decided_at = :now AND c.operation = :operation AND c.reason = 'superseded'"
}

/// Supersedes open challenges. If one from a known browser stays open beside the new one, the phone
/// shows the new one only after the other one has ended.
private let supersede = Statement(
    """
    UPDATE challenge SET state = 'cancelled', reason = 'superseded', decided_at = :now, operation = :operation
    WHERE \(OpenChallenges.endedByNewer) AND \(Guards.userMarked)
    """)

/// MariaDB scans a whole table for `IN (SELECT …)`, but uses an index for a join. SQLite has no
/// join here.
private let dropEntries = Statement(
    """
    DELETE /*M! o */ FROM outbox
    /*M! AS o JOIN challenge c ON c.id = o.challenge_id WHERE */
    /*S! WHERE challenge_id IN (SELECT c.id FROM challenge c WHERE */
    \(AskScript.superseded) /*S! ) */ AND \(OutboxRows.exceptWebhooks)
    """)

private let auditSuperseded = Statement.audit("\(Audit.endedChallenges) \(AskScript.superseded) \(Audit.once)")

/// Part 3 puts the pushes into the outbox. This relay has the lease on them.
extension AskScript {
    fileprivate var insertPushes: [BoundStatement] {
        challenge.pushes.map { push in
            insertPush(
                entry: .id(push.id), challenge: .id(challenge.id), leasedUntil: .timestamp(push.leasedUntil),
                relay: .id(push.holder), device: .id(push.device), user: .id(challenge.user),
                operation: .id(operation), known: .origin(limits.origin), since: .timestamp(limits.since),
                pushes: .integer(Int64(limits.pushes)), now: .timestamp(challenge.askedAt))
        }
    }
}

/// Inserts a push within the limit. Pushes are counted by the steps that began with one, because
/// the factor of a decided challenge is the one that decided it.
private let insertPush = Statement(
    into: .outbox,
    """
    INSERT INTO outbox (id, kind, challenge_id, due_at, attempts, holder, device_id)
    SELECT :entry, 'push', :challenge, :leasedUntil, 0, :relay, d.id FROM device d JOIN user u ON u.id = d.user_id
    WHERE d.id = :device AND d.state = 'active' AND u.id = :user AND u.operation = :operation AND \(Guards.mayLogIn) AND
    (SELECT count(*) FROM challenge c JOIN step s ON s.challenge_id = c.id
    WHERE c.user_id = u.id AND c.known = :known AND c.asked_at > :since AND s.factor = 'push'
    AND coalesce(s.reason, '') <> 'late') < :pushes
    AND NOT EXISTS (SELECT 1 FROM challenge k
    WHERE k.user_id = u.id AND k.known > :known AND k.decided_at IS NULL AND k.expires_at > :now)
    """)

/// Part 4 stores the challenge, with its first step, its expiry and its next factor.
extension AskScript {
    fileprivate var insertChallenge: [BoundStatement] {
        let now = SQLValue.timestamp(challenge.askedAt)
        let life = challenge.life
        var writes = [
            insertChallengeRow(
                challenge: .id(challenge.id), state: .word(life.state), reason: .word(life.reason),
                policy: .text(challenge.policy), context: .context(challenge.context), nonce: .blob(challenge.nonce),
                number: .text(challenge.number), approves: .blob(challenge.approves),
                language: .text(challenge.language), trace: .text(challenge.trace?.text), known: .origin(limits.origin),
                otherwise: .word(challenge.otherwise), now: now, expiresAt: .timestamp(life.expiresAt),
                decidedAt: life.state.isEnd ? now : .null, operation: .id(operation), user: .id(challenge.user)),
            insertStep(challenge: .id(challenge.id), operation: .id(operation)),
            insertExpiry(entry: .id(challenge.expiry), challenge: .id(challenge.id), operation: .id(operation)),
        ]
        if let next = challenge.next {
            writes.append(
                insertNext(
                    entry: .id(next.id), dueAt: .timestamp(next.due), relay: .id(next.holder),
                    challenge: .id(challenge.id), operation: .id(operation)))
        }
        return writes
    }
}

/// Inserts the challenge. For a locked, frozen, disabled or expired user it has already ended, with
/// the user's state as the reason.
private let insertChallengeRow = Statement(
    into: .challenge,
    """
    INSERT INTO challenge
    (id, state, reason,
    policy, context, nonce, number, approves, language, trace, known,
    factor,
    asked_at, expires_at, decided_at, operation, website_id, user_id)
    SELECT :challenge, CASE WHEN \(Guards.mayLogIn) THEN :state ELSE 'failed' END,
    CASE WHEN \(Guards.mayLogIn) THEN :reason WHEN u.state = 'active' THEN 'user_expired' ELSE u.state END,
    :policy, :context, :nonce, :number, :approves, :language, :trace, :known,
    CASE WHEN EXISTS (SELECT 1 FROM outbox o WHERE o.challenge_id = :challenge AND o.kind = 'push') THEN 'push'
    WHEN \(Guards.mayLogIn) THEN :otherwise END,
    :now, :expiresAt, CASE WHEN \(Guards.mayLogIn) THEN :decidedAt ELSE :now END, :operation, u.website_id, u.id
    FROM user u WHERE u.id = :user AND u.operation = :operation
    """)

/// The challenge `c`, if this script has stored it.
private let stored = "FROM challenge c WHERE c.id = :challenge AND c.operation = :operation"

private let insertStep = Statement(
    """
    INSERT INTO step (challenge_id, ordinal, factor, state, at)
    SELECT c.id, 1, c.factor, CASE WHEN c.factor IN ('push', 'pull') THEN 'queued' ELSE 'sent' END, c.asked_at
    \(stored) AND c.factor IS NOT NULL
    """)

private let insertExpiry = Statement(
    into: .outbox,
    """
    INSERT INTO outbox (id, kind, challenge_id, due_at, attempts)
    SELECT :entry, 'expiry', c.id, c.expires_at, 0 \(stored) AND c.decided_at IS NULL
    """)

private let insertNext = Statement(
    into: .outbox,
    """
    INSERT INTO outbox (id, kind, challenge_id, due_at, attempts, holder)
    SELECT :entry, 'next', c.id, :dueAt, 0, :relay \(stored) AND c.decided_at IS NULL
    """)

/// Part 5 audits the challenge. It notifies the website of a challenge that has ended at once,
/// because the answer of `/login` does not report the end.
extension AskScript {
    fileprivate var notify: [BoundStatement] {
        [
            auditAsk(
                operation: .id(operation), now: .timestamp(challenge.askedAt), challenge: .id(challenge.id)),
            LoginDecidedRows.insertLoginDecided(challenge.id, at: challenge.askedAt, as: operation),
        ]
    }
}

private let auditAsk = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, outcome)
    SELECT :operation, :now, 'challenge.asked', c.website_id, c.user_id, c.id, coalesce(c.reason, c.factor)
    \(stored)
    \(Audit.once)
    """)
