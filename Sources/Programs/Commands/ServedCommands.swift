import Daemon
import Domain

/// The commands that the running relay performs for callers of its control socket.
extension Tool {
    /// The roles that may run each command. A command without an entry is not performed by the
    /// relay: most of these need files of the installation.
    public static let roles: [String: Set<ControlRole>] = {
        var roles: [String: Set<ControlRole>] = [:]
        for name in [
            "website list", "website show", "user list", "user search", "user find", "user show", "user logins",
            "user expiring", "device list", "device show", "notice list", "status",
        ] { roles[name] = [.auditor, .helpdesk, .operator] }
        for name in ["audit tail", "audit search", "outbox list", "keys list", "directory list", "website usage"] {
            roles[name] = [.auditor, .operator]
        }
        for name in [
            "user lock", "user unlock", "user activate", "user confirm-identity", "user recover",
            "user approve-recovery", "user cancel-recovery", "user temporary-code", "user remove-factor",
            "device suspend", "device resume", "device rename", "device verify", "device revoke",
            "device unlock-code", "notice leave", "notice withdraw",
        ] { roles[name] = [.helpdesk, .operator] }
        for name in [
            "user export", "user delete", "user enable", "user expire", "outbox replay", "outbox drop", "keys roll",
            "reload",
        ] { roles[name] = [.operator] }
        return roles
    }()

    private static let served: [Subcommand] =
        (ofWebsites + ofUsers + ofDevices + ofDirectories + ofOutbox + ofKeys + ofAudit + [reloadRelay, status])
        .filter { roles[$0.command.name] != nil }

    /// Returns the command with the options that the tool and the relay add to it.
    public static func withOptions(_ command: Command) -> Command {
        var command = command
        if recordedCommands.contains(command.name) { command.options.append(Program.reasonOption) }
        if roles[command.name] != nil { command.options.append(Settings.controlOption) }
        if ["website add", "website edit"].contains(command.name) {
            for (index, option) in command.options.enumerated() {
                let words = Policy.words(of: option.name)
                let isReset = command.name == "website edit" && !words.isEmpty
                command.options[index].choices = words + (isReset ? ["default"] : [])
            }
        }
        return command
    }

    /// Reads the command lines of callers.
    fileprivate static let servedReader = CommandLineReader(
        program: "twoefay", about: "", shared: Program.sharedOptions, commands: served.map { withOptions($0.command) })

    fileprivate static func command(of invocation: Invocation) throws(Failure) -> ControlCommand {
        let name = invocation.command.name
        guard let subcommand = served.first(where: { $0.command.name == name }), let roles = roles[name] else {
            // Our own bug: the reader accepts only the commands of this very list.
            fatalError("a command without a function: \(name)")
        }
        return ControlCommand(
            invocation, for: roles, isChange: recordedCommands.contains(name), about: invocation.subject,
            note: recordedCommands.contains(name) ? name : invocation.searchNote, run: subcommand.run)
    }

    /// Has the running relay perform a command if this account cannot, or if the command line says
    /// so. Returns nil if the tool shall perform it itself.
    public static func performedByRelay(_ invocation: Invocation) throws(Failure) -> Report? {
        let name = invocation.command.name
        guard roles[name] != nil,
            let path = try Settings.control(of: invocation, isRelaysOwn: name == reloadRelay.command.name)
        else { return nil }
        return try ControlClient.run(
            invocation.forwarded(name == leaveNotice.command.name ? invocation.noticeOperands : invocation.operands),
            at: path, isColored: invocation.isOnTerminal, showsProgress: invocation.showsProgress
        ) { consequence throws(Failure) in try invocation.confirm(consequence) }
    }
}

extension Policy {
    /// The words that a policy takes, for completion; empty if there is no list of them. The refusal of
    /// another word has the list.
    fileprivate static func words(of key: String) -> [String] {
        var policy = Policy()
        do throws(Policy.Fault) {
            try policy.set(key, to: "?")
        } catch {
            let opening = "\(key) must be one of "
            guard error.message.hasPrefix(opening) else { return [] }
            return error.message.dropFirst(opening.count).split(separator: ", ").map(String.init)
        }
        return []
    }
}

/// The commands of the tool for `twoefayd`.
public struct RelayCommands: ControlCommands {
    public init() {}

    public func read(_ arguments: [String]) throws(Failure) -> ControlCommand {
        switch try Tool.servedReader.read(arguments) {
        case .run(let invocation): return try Tool.command(of: invocation)
        case .help:
            throw Failure(.usage, "the relay prints no help", next: "Ask the program twoefay for it.")
        }
    }
}
