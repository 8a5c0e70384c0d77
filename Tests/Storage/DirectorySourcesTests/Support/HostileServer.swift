import Bytes
import Crypto
import Glibc
import TestSupport

/// A server in Python that accepts one connection and breaks the protocol in one way.
final class HostileServer: Sendable {
    let port: UInt16
    /// The file with the authority of its certificate.
    let authority: String
    private let directory: TemporaryDirectory
    private let child: Child
    private let reserved: FreePort
    private let other: FreePort

    var wasReferred: Bool { child.written.output.contains("referred") }
    /// Whether the client took nearly all that a dripping server sends.
    var wasEndured: Bool { child.written.output.contains("endured") }

    init(_ fault: String) async throws {
        (reserved, other) = (try FreePort(), try FreePort())
        port = reserved.port
        directory = try TemporaryDirectory()
        authority = directory("ca.pem")
        let certificates = try TestCertificates()
        try TextFile.write(certificates.websites.certificatePEM(), to: authority)
        try TextFile.write(certificates.server.certificatePEM(), to: directory("server.pem"))
        try TextFile.write(certificates.server.keyPEM().reveal(), to: directory("server.key"))
        child = try Child(
            "/usr/bin/python3",
            [
                "-c", Self.script, "\(port)", "\(other.port)", fault, directory("server.pem"), directory("server.key"),
            ])
        _ = try await child.line(.output, with: "ready")
    }

    deinit { child.signal(SIGKILL) }

    /// The encodings are those of RFC 4511 appendix B.
    private static let script = """
        import socket, ssl, sys, threading, time
        port, other, fault = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
        def tlv(tag, body):
            n = len(body)
            return bytes([tag]) + (bytes([n]) if n < 128 else b"\\x82" + n.to_bytes(2, "big")) + body
        def message(id, op, controls=b""):
            return tlv(0x30, tlv(2, bytes([id // 256, id % 256]) if id > 127 else bytes([id])) + op + controls)
        def result(tag, code=0, text=b"", more=b""):
            return tlv(tag, tlv(10, bytes([code])) + tlv(4, b"") + tlv(4, text) + more)
        def page(cookie):
            return tlv(0xa0, tlv(0x30, tlv(4, b"1.2.840.113556.1.4.319") + tlv(4, tlv(0x30, tlv(2, b"\\0") + tlv(4, cookie)))))
        name, uid = tlv(4, b"uid=ada"), tlv(0x30, tlv(4, b"uid") + tlv(0x31, tlv(4, b"ada")))
        entry = tlv(0x64, name + tlv(0x30, uid))
        # Each has a length of nine bytes, of which there are two.
        unnumbered = tlv(0x30, b"\\x02\\x09\\x01\\x02")
        cut = {
            "nameless": b"\\x04\\x09ui",
            "formless": name + tlv(0x30, b"\\x30\\x09\\x04\\x01"),
            "cropped": name + tlv(0x30, uid + b"\\x30\\x09\\x04\\x01"),
            "worthless": name + tlv(0x30, tlv(0x30, tlv(4, b"uid") + tlv(0x31, b"\\x04\\x09ad"))),
        }
        url = tlv(4, b"ldap://127.0.0.1:%d/" % other)
        def referred(s):
            s.accept()
            print("referred", flush=True)
        a, b = socket.socket(), socket.socket()
        for s, p in ((a, port), (b, other)):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", p))
            s.listen()
        threading.Thread(target=referred, args=(b,), daemon=True).start()
        print("ready", flush=True)
        def drip(c, begin):
            # It ends after a minute, so that a client without a limit of its own fails its test.
            c.sendall(begin)
            for number in range(1200):
                c.sendall(b"\\x02")
                time.sleep(0.05)
                if number == 1100:
                    print("endured", flush=True)
            sys.exit(0)
        c, _ = a.accept()
        if fault == "dripping":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[4], sys.argv[5])
            c = context.wrap_socket(c, server_side=True)
        c.recv(65536)
        if fault == "handshake":
            drip(c, b"\\x16\\x03\\x03\\x40\\0")
        if fault == "dripping":
            drip(c, b"\\x30\\x83\\x10\\0\\0")
        if fault == "unsolicited":
            # RFC 4511 §4.4: a notice without the name that it must have.
            c.sendall(message(0, result(0x78, 0, b"", tlv(0x8a, b""))))
        if fault == "unnumberedBind":
            c.sendall(unnumbered)
        elif fault != "silent":
            c.sendall(message(1, result(0x61)))
        id = 1
        while c.recv(65536):
            id += 1
            if fault == "cut":
                c.sendall(message(id, entry)); break
            elif fault == "stalled":
                c.sendall(message(id, entry))
            elif fault == "half":
                c.sendall(message(id, entry) + message(id, entry)[:9])
            elif fault == "huge":
                c.sendall(b"\\x30\\x84\\x40\\0\\0\\0" + b"\\x02\\x01\\x02")
            elif fault == "endless":
                c.sendall(message(id, result(0x65), page(b"more")))
            elif fault == "garbage":
                c.sendall(b"HTTP/1.1 400 Bad Request\\r\\n" + b"X-Filler: 0123456789\\r\\n" * 10)
            elif fault == "unnumbered":
                c.sendall(unnumbered)
            elif fault in cut:
                c.sendall(message(id, tlv(0x64, cut[fault])) + message(id, result(0x65), page(b"")))
            elif fault == "referral":
                c.sendall(message(id, result(0x65, 10, b"", tlv(0xa3, url))))
            elif fault == "forgetful":
                c.sendall(message(id, entry) + message(id, result(0x65), page(b"more") if id == 2 else b""))
            elif fault == "reference":
                c.sendall(message(id, tlv(0x73, url)) + message(id, entry) + message(id, result(0x65), page(b"")))
            elif fault == "colourful":
                c.sendall(message(id, result(0x65, 1, b"\\x1b]0;pwned\\x07\\xff\\n" * 20)))
        if fault in ("silent", "stalled", "half", "huge"):
            threading.Event().wait()
        """
}
