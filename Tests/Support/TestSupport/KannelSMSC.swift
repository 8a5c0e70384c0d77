import Glibc

/// Kannel's own centre for trying out clients of SMPP (kannel-extras' drive_smpp), which writes down the texts that it is
/// handed. It knows transmitters and receivers, and turns to a bearerbox on a port that nobody can choose, without which it
/// ends: somebody listens there for it.
public final class KannelSMSC: Sendable {
    private static let program = "/usr/lib/kannel/test/drive_smpp"
    /// No other test gets it.
    static let bearerbox: UInt16 = 13_001

    public static var isInstalled: Bool { access(program, X_OK) == 0 }

    public var port: UInt16 { reserved.port }
    private let reserved: FreePort
    private let listener: Child
    private let centre: Child

    public init() async throws {
        reserved = try FreePort()
        // One at a time on this machine, in the place of its lock's waiting program: the others await their turn.
        listener = try Child(
            "flock", ["--no-fork", Self.program, "/usr/bin/python3", "-c", Self.script, "\(Self.bearerbox)"])
        _ = try await listener.line(.output, with: "ready")
        centre = try Child(Self.program, ["-v", "0", "-m", "1", "-p", "\(reserved.port)"])
        _ = try await centre.line(.errors, with: "accept_thread) maps to pid")
    }

    deinit { for child in [centre, listener] { child.killAndWait() } }

    /// The text of that submit, from 1 on, as soon as it has come.
    public func text(_ number: Int) async throws -> String {
        let line = try await centre.line(.errors, with: "submit_sm: short_message = <", number: number)
        return String(line.drop { $0 != "<" }.dropFirst().dropLast())
    }

    private static let script = """
        import socket, sys
        l = socket.create_server(("127.0.0.1", int(sys.argv[1])))
        print("ready", flush=True)
        kept = []
        while True:
            kept.append(l.accept())
        """
}
