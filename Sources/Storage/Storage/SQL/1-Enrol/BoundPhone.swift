import Domain
import Relay
import World

/// The row of a phone, for both ways of binding.
enum BoundPhone {
    /// The event in the audit.
    static let event = "device.bound"

    /// Updates a phone. A repeated binding also gives the phone a new revocation code. MariaDB sets
    /// columns one after the other, so `approval` is set before `state`, whose old value it needs.
    static let update = """
        UPDATE device SET name = :name, platform = :platform, environment = :environment, push_token = :pushToken,
        push_token_at = :now, agreement_key = :agreementKey, revocation = :revocation, binding = :binding,
        approval = CASE state WHEN 'active' THEN NULL ELSE :approval END,
        state = CASE state WHEN 'active' THEN state ELSE :state END, stopped_by = NULL, operation = :operation
        WHERE id = :device
        """

    /// Inserts a phone. The last two columns must follow: the user and the number of failures.
    static let insert = """
        INSERT INTO device
        (id, name, platform, environment, push_token, push_token_at, public_key, thumbprint,
        agreement_key, revocation, binding, approval, created_at, operation, state, user_id, failures)
        SELECT :device, :name, :platform, :environment, :pushToken, :now, :publicKey, :thumbprint,
        :agreementKey, :revocation, :binding, :approval, :now, :operation, :state,
        """

    /// The beginning of a count of the user's other phones `o`. More conditions and a closing
    /// parenthesis must follow.
    static let countOfOthers = "(SELECT count(*) FROM device o WHERE o.user_id = :user AND o.id <> :device"
}

/// The statements after the change itself, for a phone that has bound itself.
extension BoundPhone {
    static func steps(
        _ device: DeviceID, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> [BoundStatement] {
        [
            auditDevice(operation: .id(operation), now: .timestamp(now), device: .id(device)),
            prove(now: .timestamp(now), user: .id(user), operation: .id(operation)),
        ]
            + AccountEventRows.steps(
                .deviceBound, user: user, device: device, after: event, at: now, as: operation)
    }

    private static let auditDevice = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, device_id, outcome)
        SELECT :operation, :now, CASE d.state WHEN 'active' THEN '\(event)' ELSE 'device.waiting' END,
        u.website_id, u.id, d.approval, d.id,
        (SELECT a.verdict FROM attestation a WHERE a.device_id = d.id AND a.operation = d.operation)
        FROM device d JOIN user u ON u.id = d.user_id WHERE d.id = :device AND d.operation = :operation
        \(Audit.once)
        """)

    /// Records that the user has proved a factor. After the first phone with a key, each further
    /// one needs the user's approval.
    private static let prove = Statement(
        """
        UPDATE user SET proved_at = :now WHERE id = :user AND proved_at IS NULL AND EXISTS
        (SELECT 1 FROM audit WHERE operation = :operation AND event = '\(event)')
        """)
}

extension [Rows] {
    /// The outcome of a binding. The second read finds a row if the user has no room for the phone.
    var bindOutcome: BindOutcome { happened ? .done : self[1].isEmpty ? .refused : .full }
}
