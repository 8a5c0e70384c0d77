import Daemon

extension Settings {
    /// The next step after a change of files that relays have read.
    public var reloadHint: String { "Now reload every relay: \(waysToReload)." }

    /// The ways to reload a relay. That by the control socket, if there is one, shows the outcome.
    public var waysToReload: String {
        (control.socket == nil ? "" : "twoefay reload on its machine, or ")
            + "systemctl reload twoefayd, or SIGHUP to its process"
    }
}
