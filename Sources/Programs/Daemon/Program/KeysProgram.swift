import EventLoop
import Glibc
import Hardening
import JSON
import KeyService
import Log
import World

/// The program `twoefay-keys`: reads the settings, then runs the key service.
public enum KeysProgram {
    static let reader = CommandLineReader(
        program: "twoefay-keys",
        about: "Holds the master key and the key of the phones' authority for the relay, until SIGTERM.",
        shared: Program.sharedOptions,
        commands: [
            Command(
                "", "Serves the relay at the socket that 'key_service' in the settings names, until SIGTERM.",
                options: [
                    Settings.configOption,
                    .init("check", .nothing, "Check the settings, the files that they name and the command, and exit."),
                    .init(
                        "peer", .one("USER"),
                        "The relay's user, by name or number, if it is not the user of this process. Then the group of "
                            + "this process may open the socket, but all other users are refused."),
                ],
                notes:
                    "It gives the relay keys that are derived from the master key, and certificates for phones. The master "
                    + "key and the authority's key never leave it. SIGHUP reads the files again. The log goes to standard error.",
                examples: [
                    "twoefay-keys --config /etc/twoefay/twoefay.yaml", "twoefay-keys --peer twoefay",
                    "twoefay-keys --check",
                ])
        ])

    public static func run(_ arguments: [String]) -> Int32 {
        // This process starts itself anew as the launcher of the command.
        if arguments.first == CommandLauncher.word { return CommandLauncher.run(Array(arguments.dropFirst())) }
        return Program.run(reader, arguments, complain: Program.printErrorWithinDeadline) {
            invocation throws(Failure) in
            let memory = MemoryProtection.begin()
            let settings = try Settings.load(invocation)
            guard let socket = settings.keys else {
                throw Failure(
                    .failed, "the settings have no 'key_service', so the relay reads its keys itself",
                    next: "Set 'key_service: unix:PATH' in the settings of the relay and of this process.")
            }
            let peer = try invocation.value("peer").map { (name) throws(Failure) in try user(name) }
            let warnings = try settings.checkCommandFile()
            if invocation.has("check") { return try check(settings, warnings) }
            // The launcher is started before a key is read.
            let launcher = try settings.startLauncher()
            let supervisor = Supervisor.connect()
            let holder = KeyHolder(settings, try KeyFiles.load(settings, at: SystemTime().now()))
            let listener = try listen(settings.path(of: socket), isShared: peer != nil)
            do throws(Failure) {
                // This log writes at once, because a log with its own thread must not start before
                // the process is restricted.
                let log = Log(format: settings.log.format, minimum: settings.log.level)
                memory.report(to: log)
                if let fault = supervisor.fault { log.warning("keys.unmanaged", [.reason: fault]) }
                for warning in warnings { log.warning("keys.command", [.reason: warning]) }
                try restrict(settings, listener, log: log)
                try KeyServiceRun.run(
                    settings, holder, listener, supervisor, launcher: launcher,
                    users: Set([getuid(), peer].compactMap { $0 }))
            } catch {
                listener.close()
                throw error
            }
            return Report("", json: .object([:]))
        }
    }

    private static func check(_ settings: Settings, _ warnings: [String]) throws(Failure) -> Report {
        let files = try KeyFiles.load(settings, at: SystemTime().now())
        var lines = ["The settings are valid. The master key file has \(files.data.sealing.count) keys."]
        if let program = settings.command.words.first {
            lines.append("\(program) issues the certificates of phones.")
        }
        lines += warnings.map { "Warning: \($0)" }
        return Report(
            lines.joined(separator: "\n"),
            json: .object([
                "keys": .integer(Int64(files.data.sealing.count)),
                "command": .array(settings.command.words.map { .string($0) }),
                "warnings": .array(warnings.map { .string($0) }),
            ]))
    }

    /// Restricts this process, unless it loads a token's module. The module is code of the token's
    /// maker. It may open devices and connect to services, so the paths and system calls that it
    /// needs are unknown.
    private static func restrict(_ settings: Settings, _ listener: KeyListener, log: Log) throws(Failure) {
        guard settings.token.module != nil, settings.hardening != .off else {
            _ = try settings.restrictProcess(settings.keyServiceRules(socket: listener.path), log: log)
            return
        }
        guard settings.hardening != .required else {
            throw Failure(
                .failed, "hardening: required, and a process with a PKCS#11 module cannot be restricted",
                next: "Give twoefay-keys separate settings with 'hardening: on', and restrict it by its systemd unit.")
        }
        log.warning("hardening.off", [.reason: "what the PKCS#11 module needs is not known"])
    }

    private static func listen(_ path: String, isShared: Bool) throws(Failure) -> KeyListener {
        do throws(SystemFailure) {
            return try KeyListener(path: path, isShared: isShared)
        } catch {
            throw Failure(
                .failed, "keys: cannot listen at \(path): \(error)",
                next:
                    "Its directory must exist and be writable for this user, and no other process may listen there.")
        }
    }

    /// Returns the id of a user, given by name or by number.
    private static func user(_ name: String) throws(Failure) -> uid_t {
        if let number = uid_t(name) { return number }
        guard let entry = getpwnam(name) else {
            throw Failure(.usage, "--peer: there is no user \(name)", next: "Give the user that runs twoefayd.")
        }
        return entry.pointee.pw_uid
    }
}

extension Settings {
    /// Throws if the command must not be run. Returns warnings about its place.
    fileprivate func checkCommandFile() throws(Failure) -> [String] {
        guard let program = command.words.first else { return [] }
        if let fault = CommandFile.fault(program) {
            throw Failure(
                .failed, "phone_ca.command: \(fault)",
                next: "The command must be a program that only root or the user of twoefay-keys can change.")
        }
        return CommandFile.warnings(program)
    }

    /// Starts the process that runs the command; nil without one.
    fileprivate func startLauncher() throws(Failure) -> Int32? {
        guard !command.words.isEmpty else { return nil }
        do throws(SystemFailure) {
            // Nobody waits for the launcher, so the kernel must not keep its status.
            signal(SIGCHLD, SIG_IGN)
            return try CommandLauncher.start(command.words, timeout: .seconds(command.seconds)).socket
        } catch {
            throw Failure(
                .failed, "the launcher of phone_ca.command cannot be started: \(error)",
                next: "The machine is out of processes, memory or file descriptors.")
        }
    }
}
