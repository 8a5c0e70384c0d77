import Domain
import Glibc
import World

/// The settings of a program's option `--config`, for all programs.
extension Settings {
    /// The settings of an installation by the Debian package.
    static let standardPath = "/etc/twoefay/twoefay.yaml"
    /// The variable of the environment that names the settings.
    static let pathVariable = "TWOEFAY_CONFIG"

    public static let configOption = Command.Option(
        "config", .one("FILE"),
        "The settings, as `twoefay init` writes them (default: $\(pathVariable), then \(standardPath)).")

    /// Returns the path of the settings: that of `--config`, then that of the environment, then the
    /// standard one if it exists. Nil if there is none.
    static func file(_ invocation: Invocation) -> String? {
        if let path = invocation.value("config") { return path }
        if let path = getenv(pathVariable).map({ String(cString: $0) }), !path.isEmpty { return path }
        return Files.exists(standardPath) ? standardPath : nil
    }

    /// Reads the file that `--config` names, or the environment.
    ///
    /// A running relay that performs the command has settings of its own.
    public static func load(_ invocation: Invocation) throws(Failure) -> Settings {
        if let host = invocation.host { return host.settings }
        var settings = try loadWithPlaces(invocation).settings
        settings.reason = try reason(invocation)
        return settings
    }

    /// Returns the reason that the operator gives for this run.
    public static func reason(_ invocation: Invocation) throws(Failure) -> String? {
        guard let reason = invocation.value("reason") else { return nil }
        if let complaint = FieldRule.line(reason, limit: 256) {
            throw Failure(
                .usage, "--reason \(complaint)",
                next: "Nothing was changed. Give a reason in one line, or leave it out.")
        }
        return reason
    }

    /// Reads the file that `--config` names, and the files that the settings name. All faults of
    /// both are in one failure, so that an operator sees them in one run.
    static func loadWithFiles(
        _ invocation: Invocation, at now: Timestamp
    ) throws(Failure) -> (Settings, LoadedFiles) {
        let (path, read, problems) = try examine(invocation)
        let settings = read.settings
        guard !problems.isEmpty else {
            return (settings, try LoadedFiles.load(settings, read.places, at: now, forStart: true))
        }
        var reading = LoadedFilesReader(settings: settings, now: now)
        reading.knowsOrigin = !problems.contains { $0.message.hasPrefix("origin ") }
        _ = reading.all()
        reading.checkPlaces()
        guard !reading.problems.isEmpty else { throw invalid(path, problems.map(\.description)) }
        let beside = "With the settings that could be read, and the defaults for the others, these files are faulty:"
        let files = reading.problems.map { read.places.located($0, settings) }
        throw invalid(path, problems.map(\.description) + [beside] + files)
    }

    /// Reads the file that `--config` names, or the environment, with the positions in it.
    static func loadWithPlaces(_ invocation: Invocation) throws(Failure) -> SettingsOfFile {
        let (path, read, problems) = try examine(invocation)
        guard problems.isEmpty else { throw invalid(path, problems.map(\.description)) }
        return read
    }

    private static func examine(
        _ invocation: Invocation
    ) throws(Failure) -> (path: String, SettingsOfFile, [SettingsReader.Problem]) {
        let (path, bytes) = try bytes(invocation)
        do throws(SettingsReader.Problems) {
            let (read, problems) = try SettingsReader.examine(bytes, file: path)
            return (path, read, problems)
        } catch {
            throw invalid(path, error.all.map(\.description))
        }
    }

    private static func bytes(_ invocation: Invocation) throws(Failure) -> (path: String, [UInt8]) {
        try requireOperator(invocation)
        guard let path = file(invocation) else {
            throw Failure(
                .usage, "there are no settings: --config FILE is missing, and \(standardPath) does not exist",
                next: "Make a new installation with 'twoefay init DIR', then give --config DIR/twoefay.yaml.")
        }
        do {
            return (path, try Files.read(path))
        } catch {
            throw Failure(
                Files.exists(path) ? .failed : .notFound, "the settings cannot be read: \(error.text)",
                next: "Check the path, or make a new installation with 'twoefay init DIR'.")
        }
    }

    /// Refuses a command that only an account with the settings can run, if this account has a control
    /// socket instead. A new installation would not help it.
    private static func requireOperator(_ invocation: Invocation) throws(Failure) {
        let name = invocation.command.name
        if let path = file(invocation), Files.isReadable(path) || errno == ENOENT { return }
        guard !name.isEmpty, let socket = try control(of: invocation) else { return }
        throw Failure(
            .failed,
            "the relay does not perform '\(name)' at its control socket \(socket), and you cannot read the settings",
            next: "An operator who can read the settings must run it. docs/operators/help-desk.md lists the commands "
                + "of the socket.")
    }

    private static func invalid(_ path: String, _ problems: [String]) -> Failure {
        Failure(
            .failed, "the settings are not valid\n" + problems.joined(separator: "\n"),
            next:
                "docs/operators/settings.md explains every key. Correct the file, then try "
                + "'twoefayd --config \(path) --check'.")
    }
}
