import Domain
import World

extension DeviceChange {
    /// What an operator's `device suspend`, `resume` and `revoke` do; nil where there is nothing to do. What somebody else
    /// has stopped becomes the operator's to bring back. A phone without a key has nothing that could be resumed once it
    /// is unbound: given back, it waits for its website to bind it, which then is told as every binding is.
    ///
    /// - Parameter stopper: who suspended or revoked it.
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
