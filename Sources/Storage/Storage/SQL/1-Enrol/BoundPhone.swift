import Domain
import Relay

/// The row of a phone, for both ways of binding.
enum BoundPhone {
    /// The event in the audit.
    static let event = "device.bound"

    /// Updates a phone. MariaDB sets columns one after the other, so `approval` is set before
    /// `state`, whose old value it needs.
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
    /// The values of a repeated binding, which also gives the phone a new revocation code.
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
