import Bytes
import Glibc
import TestSupport
import Testing
import World

@testable import DirectorySources

/// Servers that break the protocol. Each read must end with a failure, and never with a part of the
/// users.
@Suite(.timeLimit(.minutes(10)), .mayBlock) struct HostileServerTests {
    enum Fault: String, CaseIterable {
        /// It never answers the bind.
        case silent
        /// It closes the connection after one entry.
        case cut
        /// It sends one entry and then nothing.
        case stalled
        /// It sends half of a message and then nothing.
        case half
        /// It announces a message of a gigabyte.
        case huge
        /// It returns pages without entries for ever.
        case endless
        /// It sends bytes that are no LDAP.
        case garbage
        /// It ends the search with a referral to another server.
        case referral
        /// It ends a page without saying whether another one follows.
        case forgetful
    }

    @Test(arguments: Fault.allCases) func brokenAnswerIsAFailure(fault: Fault) async throws {
        let server = try await HostileServer(fault.rawValue)
        let (_, failure) = read(server)
        let kinds: [LDAPFailure.Kind] =
            switch fault {
            case .silent, .stalled, .half: [.timeout]
            case .cut: [.unreachable]
            case .huge, .garbage: [.unreachable, .timeout, .refused, .credentials]
            case .endless, .forgetful: [.incomplete]
            case .referral: [.refused]
            }
        #expect(failure.map { kinds.contains($0.kind) } == true, "\(failure as Any)")
        // The referral points to a second port of the same script, which nobody may call.
        #expect(!server.wasReferred)
    }

    /// RFC 4511 §4.5.3: references to other servers may stand between the entries.
    @Test func referencesBetweenEntriesAreNotFollowed() async throws {
        let server = try await HostileServer("reference")
        let (names, failure) = read(server)
        #expect(failure == nil && names == ["uid=ada"])
        #expect(!server.wasReferred)
    }

    /// Somebody on the path can send anything until the certificate is verified. libldap ends the
    /// process for this message, so it must not get to read it.
    @Test func messageBeforeTLSIsNeverParsed() async throws {
        let (_, failure) = read(try await HostileServer("unsolicited"), scheme: "ldaps")
        #expect(failure?.kind == .certificate, "\(failure as Any)")
    }

    @Test func textOfTheServerCannotControlATerminal() async throws {
        let (_, failure) = read(try await HostileServer("colourful"))
        let message = try #require(failure?.message)
        #expect(message.contains("pwned") && message.utf8.allSatisfy { (0x20..<0x7f).contains($0) })
        #expect(message.utf8.count < 500)
    }

    private func read(_ server: HostileServer, scheme: String = "ldap") -> ([String], LDAPFailure?) {
        var names: [String] = []
        do throws(LDAPFailure) {
            let connection = try LDAPConnection(
                LDAPServer(
                    urls: ["\(scheme)://127.0.0.1:\(server.port)"], authority: nil, isPlain: true,
                    account: .init(dn: "cn=admin", password: Secret(Array("password".utf8))), timeout: .seconds(1)),
                limits: LDAPLimits(), time: SystemTime())
            try connection.search("(uid=*)", below: "", attributes: ["uid"], pageSize: 10) { names.append($0.dn) }
            return (names, nil)
        } catch {
            return (names, error)
        }
    }
}

/// A server in Python that accepts one connection and breaks the protocol in one way.
private final class HostileServer: Sendable {
    let port: UInt16
    private let child: Child
    private let reserved: FreePort
    private let other: FreePort

    var wasReferred: Bool { child.written.output.contains("referred") }

    init(_ fault: String) async throws {
        (reserved, other) = (try FreePort(), try FreePort())
        port = reserved.port
        child = try Child("/usr/bin/python3", ["-c", Self.script, "\(port)", "\(other.port)", fault])
        _ = try await child.line(.output, with: "ready")
    }

    deinit { child.signal(SIGKILL) }

    /// The encodings are those of RFC 4511 appendix B.
    private static let script = """
        import socket, sys, threading
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
        entry = tlv(0x64, tlv(4, b"uid=ada") + tlv(0x30, tlv(0x30, tlv(4, b"uid") + tlv(0x31, tlv(4, b"ada")))))
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
        c, _ = a.accept()
        c.recv(65536)
        if fault == "unsolicited":
            # RFC 4511 §4.4: a notice without the name that it must have.
            c.sendall(message(0, result(0x78, 0, b"", tlv(0x8a, b""))))
        if fault != "silent":
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
                c.sendall(b"HTTP/1.1 400 Bad Request\\r\\n\\r\\n")
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
