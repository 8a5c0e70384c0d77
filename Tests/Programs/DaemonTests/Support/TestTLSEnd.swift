import Bytes
import Crypto
import Glibc
import TestSupport
import World

/// A server with TLS on this machine, with a certificate of a test's choice. It answers each request
/// with a `Date` of its own.
final class TestTLSEnd: Sendable {
    let port: UInt16
    /// The authority of its certificate.
    let authority: CertificateAuthority
    private let child: Child
    private let directory: TemporaryDirectory

    var authorityPath: String { directory("authority.pem") }

    /// - Parameters:
    ///   - age: the days since the certificate was issued.
    ///   - days: the days for which it is valid.
    ///   - date: the time that it tells; nil for that of the request.
    static func start(age: Int = 0, days: Int = 30, date: Timestamp? = nil) async throws -> TestTLSEnd {
        let directory = try TemporaryDirectory()
        let now = SystemTime().now()
        let issued = now - .seconds(age * 86_400)
        let authority = try CertificateAuthority.create(commonName: "ends", days: 90, at: issued)
        let server = try authority.issueServer(names: ["localhost", "127.0.0.1"], days: days, at: issued)
        try TextFile.write(authority.certificatePEM(), to: directory("authority.pem"))
        try TextFile.write(server.certificatePEM(), to: directory("server.pem"))
        try TextFile.write(server.keyPEM().reveal(), to: directory("server.key"))
        let child = try Child(
            "/usr/bin/python3",
            ["-c", script, directory("server.pem"), directory("server.key"), date?.httpDate ?? ""])
        let line = try await child.line(.output, with: "port ")
        guard let port = UInt16(line.dropFirst(5)) else { throw Child.Problem(description: "no port: \(line)") }
        return TestTLSEnd(port, authority, child, directory)
    }

    private init(_ port: UInt16, _ authority: CertificateAuthority, _ child: Child, _ directory: TemporaryDirectory) {
        self.port = port
        self.authority = authority
        self.child = child
        self.directory = directory
    }

    deinit { child.signal(SIGKILL) }

    /// Waits for the first request. What the server writes may arrive after its answer.
    func firstRequest() async throws -> String { try await child.line(.output, with: "HEAD ") }

    /// The requests that arrived.
    var requests: [String] {
        child.written.output.split(separator: "\n").filter { $0.hasPrefix("HEAD ") || $0.hasPrefix("GET ") }.map(
            String.init)
    }

    private static let script = #"""
        import email.utils, socket, ssl, sys, threading

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])

        def serve(s):
            try:
                s = context.wrap_socket(s, server_side=True)
                f = s.makefile("rb")
                first = f.readline().decode()
                if first:
                    print(first.strip(), flush=True)
                while f.readline().strip():
                    pass
                date = sys.argv[3] or email.utils.formatdate(usegmt=True)
                s.sendall(("HTTP/1.1 404 Not Found\r\nDate: %s\r\nContent-Length: 0\r\n\r\n" % date).encode())
            except OSError:
                pass
            s.close()

        l = socket.create_server(("127.0.0.1", 0))
        print("port %d" % l.getsockname()[1], flush=True)
        while True:
            s, _ = l.accept()
            threading.Thread(target=serve, args=(s,), daemon=True).start()
        """#
}
