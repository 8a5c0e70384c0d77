import Domain
import Relay

/// The row of a phone that is bound, by whomever.
enum BoundPhone {
    /// What the audit calls it.
    static let event = "device.bound"

    /// MariaDB sets columns one after the other: `approval` asks for the state that the row had.
    static let changes = """
        UPDATE device SET name = ?, platform = ?, environment = ?, push_token = ?, push_token_at = ?, revocation = ?,
        binding = ?, approval = CASE state WHEN 'active' THEN NULL ELSE ? END, state = CASE state WHEN 'active' THEN state ELSE ? END,
        stopped_by = NULL, operation = ? WHERE id = ?
        """

    static let insertion = """
        INSERT INTO device
        (id, name, platform, environment, push_token, push_token_at, public_key, thumbprint, revocation, binding, approval,
        created_at, operation, state, user_id, failures)
        """
}

extension NewDevice {
    /// The changes of a repeated binding: the phone gets a new revocation code too.
    func changes(_ operation: Operation) -> [SQLValue] {
        [
            .text(name), .word(platform), .word(environment), .text(pushToken), .timestamp(at), .blob(revocation),
            .text(binding), .id(approval), .word(state), .id(operation),
        ]
    }

    func values(_ operation: Operation) -> [SQLValue] {
        [
            .id(id), .text(name), .word(platform), .word(environment), .text(pushToken), .timestamp(at),
            .blob(publicKey), .blob(thumbprint), .blob(revocation), .text(binding), .id(approval), .timestamp(at),
            .id(operation), .word(state),
        ]
    }
}
