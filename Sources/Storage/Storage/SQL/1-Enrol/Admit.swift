import Domain
import Relay
import World

/// Binding of a further phone, which waits until the user has approved it.
extension Store {
    public func await(
        _ next: ChallengeID, insteadOf challenge: ChallengeID, device: DeviceID
    ) async throws(StoreFailure) -> Bool {
        // The script has no operation, because a repetition has the same result.
        let script = Script(
            "await", rows: [.device(device).signed],
            writes: [awaitNext(next: .id(next), device: .id(device), challenge: .id(challenge))],
            reads: [awaited(device: .id(device))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return false }
                return try row.optionalID("approval") == next
            })
    }
}

private let awaitNext = Statement(
    "UPDATE device SET approval = :next WHERE id = :device AND state = 'waiting' AND approval = :challenge")

private let awaited = Statement("SELECT approval FROM device WHERE id = :device")

extension Store {
    public func admit(
        _ admission: DeviceApproval, slots: Int, secret: StoredSecret, as operation: Operation
    ) async throws(StoreFailure) -> BindOutcome {
        let (user, device, challenge) = (
            SQLValue.id(admission.user), SQLValue.id(admission.device), SQLValue.id(admission.challenge)
        )
        let writes = [
            markUser(operation: .id(operation), user: user),
            useApproval(
                now: .timestamp(admission.at), operation: .id(operation), challenge: challenge, user: user,
                approves: .blob(admission.approves), device: device, slots: .integer(Int64(slots))),
            activatePhone(
                revocation: .blob(admission.revocation), operation: .id(operation), device: device,
                challenge: challenge),
            OperationSecrets.stored(secret, of: admission.device, revocation: admission.revocation, as: operation),
            markUse(
                now: .timestamp(admission.at), digest: .blob(admission.code), user: user, challenge: challenge,
                operation: .id(operation)),
        ]
        let bound = BoundPhone.steps(admission.device, of: admission.user, at: admission.at, as: operation)
        let change = Change(
            "admit", operation,
            rows: [
                .user(admission.user).signed, .challenge(admission.challenge).signed, .device(admission.device).signed,
            ] + AccountEventRows.rows(.deviceBound, as: operation),
            writes + bound,
            reads: [
                isFullOfActive(challenge: challenge, user: user, device: device, slots: .integer(Int64(slots)))
            ])
        return try await run(Query(change: change) { rows in rows.bindOutcome })
    }
}

private let markUser = Statement("UPDATE user SET operation = :operation WHERE id = :user")

private let useApproval = Statement(
    """
    UPDATE challenge SET used_by = :operation
    WHERE id = :challenge AND user_id = :user AND approves = :approves AND decision = 'approve' AND used_by IS NULL
    AND EXISTS
    (SELECT 1 FROM user u WHERE u.id = challenge.user_id AND u.operation = :operation AND \(Guards.mayLogIn))
    AND EXISTS (SELECT 1 FROM device d WHERE d.id = :device AND d.state = 'waiting' AND d.approval = challenge.id)
    AND \(othersInUse) < :slots
    """)

/// Counts the other phones that hold a slot.
private let othersInUse = "\(BoundPhone.countOfOthers) AND o.state IN ('active', 'suspended'))"

private let activatePhone = Statement(
    """
    UPDATE device SET state = 'active', approval = NULL, revocation = :revocation, operation = :operation
    WHERE id = :device AND state = 'waiting' AND \(isApproved)
    """)

/// The condition that this operation has used the approval.
private let isApproved = "EXISTS (SELECT 1 FROM challenge c WHERE c.id = :challenge AND c.used_by = :operation)"

/// The code of a phone that had to wait is now used. From now on its result is kept as long as that
/// of any other code.
private let markUse = Statement(
    """
    UPDATE activation SET used_at = :now WHERE digest = :digest AND user_id = :user AND used_at IS NOT NULL
    AND \(isApproved)
    """)

private let isFullOfActive = Statement(
    "SELECT 1 FROM challenge c WHERE c.id = :challenge AND c.used_by IS NULL AND \(othersInUse) >= :slots")
