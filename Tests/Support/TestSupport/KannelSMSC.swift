import Glibc

/// Kannel's test centre for SMPP clients (`drive_smpp` of kannel-extras), which logs the texts that
/// it receives.
///
/// The centre supports transmitters and receivers only. It also connects to a bearerbox on a fixed
/// port, and ends if nothing listens there, so this class listens on that port.
public final class KannelSMSC: Sendable {
    private static let program = "/usr/lib/kannel/test/drive_smpp"
    /// The fixed port. `FreePort` never assigns it to another test.
    static let bearerbox: UInt16 = 13_001

    public static var isInstalled: Bool { access(program, X_OK) == 0 }

    public var port: UInt16 { reserved.port }
    private let reserved: FreePort
    private let listener: Child
    private let centre: Child

    public init() async throws {
        reserved = try FreePort()
        // Only one instance can run on this machine. `flock` makes the others wait.
        listener = try Child(
            "flock", ["--no-fork", Self.program, "/usr/bin/python3", "-c", Self.script, "\(Self.bearerbox)"])
        _ = try await listener.line(.output, with: "ready")
        centre = try Child(Self.program, ["-v", "0", "-m", "1", "-p", "\(reserved.port)"])
        _ = try await centre.line(.errors, with: "accept_thread) maps to pid")
    }

    deinit { for child in [centre, listener] { child.killAndWait() } }

    /// Returns the text of a submit, counted from 1, when it has arrived.
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
