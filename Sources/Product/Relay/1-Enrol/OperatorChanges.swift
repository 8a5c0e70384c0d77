import Domain
import World

extension DeviceChange {
    /// Returns the change for an operator's `device suspend`, `resume` or `revoke`; nil if there is
    /// nothing to do.
    ///
    /// If somebody else has suspended a phone, the operator's suspension replaces that one, and
    /// only an operator can resume the phone. A phone without a key cannot be resumed after it was
    /// unbound. The operator's `resume` then only allows its website to bind it again, and that
    /// binding is reported like any other. Likewise, if an operator revokes an unbound phone
    /// without a key, its website cannot bind it again.
    ///
    /// - Parameter stopper: the author of the suspension or revocation.
    public static func byOperator(
        _ state: DeviceState, _ device: DeviceView, of user: UserID, stoppedBy stopper: ChangeAuthor?, at now: Timestamp
    ) -> DeviceChange? {
        var change = DeviceChange(device.id, of: user, by: .operator, at: now)
        change.state = state
        if device.state == .revoked, device.publicKey == nil, state != .suspended {
            change.isOfUnbound = true
            return (state == .active) == (stopper == .operator) ? change : nil
        }
        guard device.state != state || (state == .suspended && stopper != .operator) else { return nil }
        if state == .revoked { change.pushToken = "" }
        return change
    }
}
