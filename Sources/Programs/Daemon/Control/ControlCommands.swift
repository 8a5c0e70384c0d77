import Crypto
import Domain
import KeyService
import Relay
import Storage
import World

/// The commands that the running relay performs for callers of its control socket.
public protocol ControlCommands: Sendable {
    /// Reads a command line, without the name of the program. It throws for a command that is not
    /// performed here.
    func read(_ arguments: [String]) throws(Failure) -> ControlCommand
}

/// A command that was read, and not yet performed.
public struct ControlCommand: Sendable {
    let invocation: Invocation
    /// The roles that may run it.
    let roles: Set<ControlRole>
    /// Whether it changes something, and so counts for the limit of changes.
    let isChange: Bool
    /// The website, user or phone that the command line names; nil if it names none.
    let subject: AuditSubject.Named?
    /// The note of its row in the audit: its name, and the way in which it searches.
    let note: String
    let run: @Sendable (Invocation) throws(Failure) -> Report

    public init(
        _ invocation: Invocation, for roles: Set<ControlRole>, isChange: Bool, about subject: AuditSubject.Named?,
        note: String, run: @escaping @Sendable (Invocation) throws(Failure) -> Report
    ) {
        self.invocation = invocation
        self.roles = roles
        self.isChange = isChange
        self.subject = subject
        self.note = note
        self.run = run
    }
}

/// The means of a command that the running relay performs: the relay's settings, store and
/// keys, and its caller in place of a terminal.
public struct CommandHost: Sendable {
    public let settings: Settings
    public let store: Store
    let keys: DataKeys
    /// Whether the caller's terminal shows colours.
    public let isColored: Bool
    /// Whether the caller's terminal shows progress.
    let showsProgress: Bool
    var stop = ControlStop()
    let caller: ControlReply
    let reloading: @Sendable () throws(Failure) -> ReloadOutcome

    /// Returns the id of a new change.
    public func newOperation() -> Operation {
        Operations(key: keys.relay.operations, randomness: SystemRandomness()).new()
    }

    /// Returns the sealer for secrets.
    public func usableSealer() throws(Failure) -> Sealer { try keys.usableSealer() }

    /// Sends a part of the output at once.
    public func say(_ text: String) { caller.say(text) }

    /// Sends a line of progress.
    func showProgress(_ text: String) { caller.showProgress(text) }

    /// Ends the command of a caller that has left, or does not read the answer. When the relay stops, no
    /// further change begins.
    public func requireCaller(toChange isChange: Bool) throws(Failure) {
        if isChange, stop.hasBegun {
            throw Failure(
                .unavailable, "the relay stops",
                next: "This was not done. If the command has several steps, 'twoefay audit tail' shows those that were "
                    + "done. Run it again when the relay is back.")
        }
        guard caller.isGone else { return }
        throw Failure(
            .unavailable, "the caller has left",
            next: "Nothing more was done. Run it again, and keep the connection open.")
    }

    /// Lets the caller ask the person at the terminal. The command then comes again with `--yes`.
    public func confirm(_ consequence: String) -> Failure {
        caller.ask(consequence)
        return Failure(.usage, "a confirmation is needed", next: consequence)
    }

    /// Reloads the relay, and waits for the outcome.
    public func reload() throws(Failure) -> ReloadOutcome { try reloading() }
}
