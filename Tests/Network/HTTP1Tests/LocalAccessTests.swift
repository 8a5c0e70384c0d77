import EventLoop
import HTTP
import HTTP1
import Log
import TestSupport
import Testing
import World

/// Clients from other machines or websites, and clients that do not follow the protocol.
@Suite(.timeLimit(.minutes(15))) struct LocalAccessTests {
    @Test(arguments: ["0.0.0.0", "::", "192.0.2.1", "::ffff:127.0.0.1", "128.0.0.1"])
    func remoteClientsAreRefused(_ host: String) async throws {
        let failure = await #expect(throws: SystemFailure.self) { _ = try await Rig(Mirror(), host: host) }
        #expect(failure?.description.contains("not a loopback address") == true)
    }

    @Test func otherLoopbackAddressesAreAccepted() async throws {
        let rig = try await Rig(Mirror(), host: "127.0.0.2")
        let asked = try await Child.run(
            "curl", ["--silent", "--max-time", "60", "http://127.0.0.2:\(rig.port)/"])
        #expect(asked.output.contains("host=127.0.0.2:\(rig.port);"))
    }

    @Test func portInUseIsAnError() async throws {
        let rig = try await Rig(Mirror())
        let port = rig.port
        try await withLoop { loop in
            let failure = await loop.perform { () -> SystemFailure? in
                do throws(SystemFailure) {
                    guard let address = SocketAddress(host: "127.0.0.1", port: port) else { return nil }
                    _ = try HTTP1Server(loop: loop, address: address, pages: Mirror(), log: Log(minimum: .error))
                    return nil
                } catch {
                    return error
                }
            }
            #expect(failure?.description.contains("in use") == true, "\(failure as Any)")
        }
    }

    @Test func foreignHostHeaderIsRefused() async throws {
        let rig = try await Rig(Mirror())
        for host in ["localhost:\(rig.port)", "LocalHost:\(rig.port)", "127.0.0.1:\(rig.port)", "[::1]:\(rig.port)"] {
            let got = try await rig.curl("/", "--header", "host: \(host)")
            #expect(got.output.hasPrefix("HTTP/1.1 200"), "\(host): \(got)")
        }
        for host in [
            "evil.example", "evil.example:\(rig.port)", "localhost", "127.0.0.1", "localhost:1",
            "localhost:0\(rig.port)",
            "localhost.evil.example:\(rig.port)", "localhost:\(rig.port).evil.example", "[::1]", "0.0.0.0:\(rig.port)",
            "loc\u{212a}alhost:\(rig.port)", "user@localhost:\(rig.port)",
        ] {
            let got = try await rig.curl("/", "--header", "host: \(host)")
            #expect(got.output.hasPrefix("HTTP/1.1 421"), "\(host): \(got)")
            #expect(!got.output.contains("GET ["))
        }
        for head in [
            "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost:\(rig.port)\r\nHost: localhost:\(rig.port)\r\nConnection: close\r\n\r\n",
            "GET http://localhost:\(rig.port)/ HTTP/1.1\r\nHost: localhost:\(rig.port)\r\nConnection: close\r\n\r\n",
            "GET * HTTP/1.1\r\nHost: localhost:\(rig.port)\r\nConnection: close\r\n\r\n",
        ] {
            let got = try await rig.raw(head, halfClose: true)
            #expect(got.output.hasPrefix("HTTP/1.1 400") || got.output.hasPrefix("HTTP/1.0 400"), "\(head): \(got)")
        }
    }

    @Test func crossOriginPostIsRefused() async throws {
        let rig = try await Rig(Mirror())
        let own = try await rig.curl("/", "--data", "a", "--header", "origin: http://localhost:\(rig.port)")
        #expect(own.output.hasPrefix("HTTP/1.1 200"), "\(own)")
        for origin in [
            "http://evil.example", "https://localhost:\(rig.port)", "null", "http://localhost", "localhost:\(rig.port)",
            "http://localhost:\(rig.port).evil.example",
        ] {
            let got = try await rig.curl("/", "--data", "a", "--header", "origin: \(origin)")
            #expect(got.output.hasPrefix("HTTP/1.1 403"), "\(origin): \(got)")
        }
    }

    @Test func silentConnectionIsClosed() async throws {
        var limits = PageLimits()
        limits.timeout = .milliseconds(100)
        let rig = try await Rig(Mirror(), limits: limits)
        for begun in ["", "GET / HTT", "GET / HTTP/1.1\r\nHost: localhost:\(rig.port)\r\nX-", "POST / HTTP/1.1\r\n"] {
            // The server closes the connection. If it did not, the script would fail after a
            // minute.
            #expect(try await rig.raw(begun).status == 0, "\(begun)")
        }
        // A client that sends one request in time and then nothing. A slow machine may need some
        // attempts.
        var kept = try await rig.raw("")
        for _ in 0..<100 where !kept.output.contains("GET [/]") {
            kept = try await rig.raw("GET / HTTP/1.1\r\nHost: localhost:\(rig.port)\r\n\r\n")
            #expect(kept.status == 0)
        }
        #expect(kept.output.contains("GET [/]"))
    }

    /// The client sends a byte every few milliseconds, so a timeout that detects only silence would
    /// not end it.
    @Test func slowClientIsDisconnected() async throws {
        var limits = PageLimits()
        limits.timeout = .milliseconds(300)
        let rig = try await Rig(Mirror(), limits: limits)
        let script = """
            import socket, sys
            line = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
            line.sendall(b"GET / HTTP/1.1\\r\\nX-Slow: ")
            line.settimeout(0.02)
            for count in range(3000):
                try:
                    line.sendall(b"x")
                    if not line.recv(1): break
                except TimeoutError: continue
                except OSError: break
            else: sys.exit("never closed")
            """
        let slow = try await Child.run("python3", ["-c", script, "\(rig.port)"])
        #expect(slow.status == 0, "\(slow.errors)")
    }

    @Test func connectionsOverTheLimitAreRefused() async throws {
        var limits = PageLimits()
        limits.connections = 2
        let rig = try await Rig(Mirror(), limits: limits)
        let script = """
            import socket, sys
            def ask(line):
                line.sendall(b"GET / HTTP/1.1\\r\\nHost: localhost:" + sys.argv[1].encode() + b"\\r\\n\\r\\n")
                try: return line.recv(65536)[:12]
                except ConnectionError: return b""
            def connect(): return socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
            first, second = connect(), connect()
            print(ask(first), ask(second))
            try: print(ask(connect()))
            except OSError: print(b"")
            print(ask(first), ask(second))
            """
        let result = try await Child.run("python3", ["-c", script, "\(rig.port)"])
        #expect(
            result.output == """
                b'HTTP/1.1 200' b'HTTP/1.1 200'
                b''
                b'HTTP/1.1 200' b'HTTP/1.1 200'

                """, "\(result.errors)")
    }

    @Test func malformedRequestIsHarmless() async throws {
        var limits = PageLimits()
        limits.timeout = .seconds(10)
        let rig = try await Rig(Mirror(), limits: limits)
        let host = "Host: localhost:\(rig.port)\r\n"
        let long = String(repeating: "y", count: 100_000)
        for text in [
            "\r\n\r\n\r\n", "\0\0\0\0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET /\r\n\r\n",
            "GET / HTTP/9.9\r\n\(host)\r\n", "GET /\(long) HTTP/1.1\r\n\(host)\r\n",
            "GET / HTTP/1.1\r\n\(host)X: \(long)\r\n\r\n", "GET / HTTP/1.1\r\n\(host)X\r\n\r\n",
            "GET / HTTP/1.1\r\n\(host): x\r\n\r\n",
            "POST / HTTP/1.1\r\n\(host)Content-Length: -1\r\n\r\n",
            "POST / HTTP/1.1\r\n\(host)Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\nab\r\n",
            "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}",
        ] {
            let got = try await rig.raw(text, halfClose: true)
            #expect(!got.output.contains(long))
        }
        #expect(try await rig.curl("/").output.hasPrefix("HTTP/1.1 200"))
    }
}

func withLoop<Value>(_ body: (EventLoop) async throws -> Value) async throws -> Value {
    let group = try LoopGroup.start(count: 1, time: SystemTime())
    defer { group.stopAndJoin() }
    return try await body(group.loops[0])
}
