import Glibc

extension Settings {
    /// The control socket of an installation by the Debian package.
    static let standardControl = "/run/twoefay/control"
    static let controlVariable = "TWOEFAY_CONTROL"

    /// The option of commands that the relay performs.
    public static let controlOption = Command.Option(
        "control", .one("SOCKET"),
        "The control socket of the running relay, which then performs the command. See docs/operators/help-desk.md.")

    /// Returns the socket of the relay that shall perform a command; nil if the tool performs it
    /// itself, because this account can read the settings and the master key.
    ///
    /// - Parameter isRelaysOwn: whether only a running relay can perform the command.
    public static func control(of invocation: Invocation, isRelaysOwn: Bool = false) throws(Failure) -> String? {
        if let text = invocation.value("control") { return path(written: text) }
        guard let file = file(invocation), Files.isReadable(file) else { return standardSocket }
        let settings = try load(invocation)
        if !isRelaysOwn, Files.isReadable(settings.path(of: settings.masterKey)) { return nil }
        return settings.control.socket.map { settings.path(of: $0) } ?? standardSocket
    }

    /// The socket that the environment names, or the standard one if it exists.
    private static var standardSocket: String? {
        if let text = getenv(controlVariable).map({ String(cString: $0) }), !text.isEmpty { return path(written: text) }
        return Files.exists(standardControl) ? standardControl : nil
    }

    /// Returns the path of a socket that may be written as `control.socket` is: `unix:/run/…`.
    private static func path(written text: String) -> String {
        let prefix = "unix:"
        return text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : text
    }
}

extension Invocation {
    /// The command line that says the same, without the options that only the tool needs. Operands
    /// follow `--`, so that none is taken for an option.
    ///
    /// - Parameter operands: those that the relay gets.
    public func forwarded(_ operands: [String]) -> [String] {
        let own = ["config", "control"]
        let options = given.filter { !own.contains($0.key) }.sorted { $0.key < $1.key }.flatMap { name, values in
            values.isEmpty ? ["--\(name)"] : values.map { "--\(name)=\($0)" }
        }
        return command.words + options + ["--"] + operands
    }
}
