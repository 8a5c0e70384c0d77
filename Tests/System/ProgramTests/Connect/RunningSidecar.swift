import Glibc
import JSON
import TestSupport
import Testing

/// The program `twoefay connect` with the certificate of a relay's website, on a Unix socket and on a
/// free port.
final class RunningSidecar: Sendable {
    static let token = "abcdefghijklmnopqrstuvwxyz-0123456789"

    let child: Child
    let directory: TemporaryDirectory
    let port: Int64
    private let reaper: ProcessReaper

    var socket: String { directory("run/shop.sock") }

    /// - Parameter website: a website that `RunningRelay.website` has added.
    init(_ relay: RunningRelay, website: String = "shop") async throws {
        directory = try TemporaryDirectory()
        try Self.copy("\(relay.directory(website)).pem", to: directory("shop.pem"))
        try Self.copy("\(relay.directory(website)).key", to: directory("shop.key"))
        try Self.copy(relay.file("ca.pem"), to: directory("ca.pem"))
        try TextFile.write("\(Self.token)\n", to: directory("token"))
        try #require(chmod(directory("token"), 0o600) == 0)
        child = try Child(
            try BuiltProgram.twoefay.path,
            [
                "connect", "--json", "--relay", relay.origin, "--certificate", directory("shop.pem"), "--socket",
                directory("run/shop.sock"), "--listen", "127.0.0.1:0", "--token-file", directory("token"),
            ])
        reaper = try ProcessReaper(of: child.pid)
        let line = try await child.line(.output, with: #""event":"listening""#)
        let listening = try #require(try JSONReader.read(Array(line.utf8)).object)
        try #require(listening["website"]?.string == website)
        port = try #require(listening["port"]?.integer)
    }

    deinit {
        child.signal(SIGKILL)
        reaper.dismiss()
    }

    /// Copies a file as a new one, which only its owner can read.
    static func copy(_ path: String, to target: String) throws {
        try TextFile.write(try TextFile.read(path), to: target + ".new")
        try #require(chmod(target + ".new", 0o600) == 0)
        try #require(rename(target + ".new", target) == 0)
    }

    /// Waits for the line of an event.
    @discardableResult func event(_ name: String, number: Int = 1) async throws -> String {
        try await child.line(.output, with: #""event":"\#(name)""#, number: number)
    }

    // MARK: Callers

    /// Starts a request over the Unix socket, as any program of the website sends it.
    func begin(
        _ method: String, _ path: String, _ json: String? = nil, _ arguments: [String] = []
    ) throws -> Child {
        try Child("curl", Self.curl(method, json) + arguments + ["--unix-socket", socket, "http://localhost\(path)"])
    }

    func curl(
        _ method: String, _ path: String, _ json: String? = nil, _ arguments: [String] = []
    ) async throws -> CurlCaller.Answer {
        try await CurlCaller.read(try begin(method, path, json, arguments))
    }

    /// Sends a request over TCP.
    func tcp(_ method: String, _ path: String, _ arguments: [String]) async throws -> CurlCaller.Answer {
        try await CurlCaller.read(
            try Child("curl", Self.curl(method, nil) + arguments + ["http://127.0.0.1:\(port)\(path)"]))
    }

    private static func curl(_ method: String, _ json: String?) -> [String] {
        let body = json.map { ["--header", "content-type: application/json", "--data-binary", $0] } ?? []
        return ["--silent", "--show-error", "--include", "--max-time", "120", "--path-as-is", "--request", method]
            + body
    }

    /// Sends these bytes to the Unix socket, and returns what comes until the connection is closed.
    func raw(_ text: String) async throws -> String {
        let script = """
            import socket, sys
            line = socket.socket(socket.AF_UNIX)
            line.settimeout(120)
            line.connect(sys.argv[1])
            line.sendall(sys.argv[2].encode("latin-1"))
            while True:
                try: part = line.recv(65536)
                except ConnectionError: break
                if not part: break
                sys.stdout.write(part.decode("latin-1"))
            """
        let ended = try await Child.run("python3", ["-c", script, socket, text])
        try #require(ended.status == 0, "\(ended.errors)")
        return ended.output
    }
}
