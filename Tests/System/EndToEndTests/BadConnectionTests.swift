import Glibc
import JSON
import TestSupport
import Testing

/// Connections with faults below the requests.
@Suite("Bad connections", .timeLimit(.minutes(15)), .mayBlock) struct BadConnectionTests {
    @Test func clientWithoutModernTLSIsRefused() async throws {
        try await Fixture.run { fixture in
            let shop = try await fixture.website("shop")
            let refused: [(String, [String])] = [
                ("no ALPN, HTTP/2 all the same", ["--no-alpn", "--http2-prior-knowledge"]),
                ("TLS 1.1", ["--tlsv1.0", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"]),
                ("TLS 1.0", ["--tlsv1.0", "--tls-max", "1.0", "--ciphers", "DEFAULT@SECLEVEL=0"]),
            ]
            for (what, arguments) in refused {
                let status = try await shop.refusal("GET", "/health", arguments: arguments)
                #expect(APIClient.broken.contains(status), "\(what): curl ended with \(status)")
            }
            for version in ["1.2", "1.3"] {
                let answer = try await shop.curl("GET", "/user/bob", arguments: ["--tls-max", version])
                #expect(answer.status == 404)
            }
        }
    }

    @Test func plaintextClientIsDisconnected() async throws {
        try await Fixture.run { fixture in
            let texts = [
                "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                String(repeating: "garbage ", count: 4096), "\0\0\0\0\0\0\0\0", "\u{16}\u{3}\u{1}zz not a hello",
            ]
            for text in texts {
                let wire = try Wire(to: fixture.relay.port)
                wire.send(text)
                // A connection in the middle of a record ends when the handshake's time is over, which takes too
                // long for this test.
                guard text.utf8.first != 0x16 else { continue }
                let rest = try #require(wire.rest(), "not shown out after \(text.prefix(20))")
                // An alert at most.
                #expect(rest.count <= 7, "\(rest)")
            }
            for _ in 0..<50 {
                let wire = try Wire(to: fixture.relay.port)
                wire.send([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3])
                wire.reset()
            }
            _ = try await fixture.relay.logged("event=connection.failed")
        }
    }

    /// Listeners of one user can share a port; two relays must not.
    @Test func secondRelayOnThePortDoesNotStart() async throws {
        try await Fixture.run { fixture in
            let second = try await Child.run(try BuiltProgram.twoefayd.path, ["--config", fixture.relay.settings])
            #expect(second.status == 5)
            #expect(second.errors.contains("cannot listen on 127.0.0.1:\(fixture.relay.port)"), "\(second.errors)")
            #expect(try await fixture.nobody.curl("POST", "/login").status == 401)
        }
    }

    /// Uses openssl's own client, which sends the given bytes and then disconnects.
    @Test func abortedRequestLeavesNothingBehind() async throws {
        try await Fixture.run { fixture in
            let shop = try await fixture.website("shop", ["--answers", "website"])
            let relay = fixture.relay
            let begin = Frames.preface + Frames.settings
            let body = Array(#"{"username":"half"}"#.utf8)
            let post = Frames.headers(Frames.post("/register", length: body.count), flags: 4)
            let whole = Frames.headers(Frames.post("/register", length: body.count), flags: 4)
            let stories: [(String, [UInt8])] = [
                ("a reset in the middle of the body", begin + post + Frames.data(Array(body[..<9])) + Frames.reset()),
                ("an end in the middle of the body", begin + post + Frames.data(Array(body[..<9]))),
                ("an end in the middle of a frame", begin + post + Array(Frames.data(body).dropLast(5))),
                ("an end in the middle of the fields", begin + Array(whole.dropLast(20))),
                (
                    "fields that never end",
                    begin + Frames.headers(Frames.post("/register", length: 1), flags: 0)
                ),
                (
                    "a shorter body than was said",
                    begin + post + Frames.data(Array(body[..<9]), flags: 1)
                ),
                (
                    "a longer body than was said",
                    begin + Frames.headers(Frames.post("/register", length: 5), flags: 4) + Frames.data(body, flags: 1)
                ),
                ("a frame that is too long", begin + Frames.frame(0, 0, stream: 1, [], claimed: 0xffffff)),
                ("HTTP/1.1 inside", Array("POST /register HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)),
                ("nothing", []), ("half a preface", Array(Frames.preface[..<10])),
            ]
            func send(_ bytes: [UInt8]) async throws -> Child.Ended {
                try TextFile.write(bytes, to: relay.directory("sent"))
                let descriptor = open(relay.directory("sent"), O_RDONLY | O_CLOEXEC)
                defer { close(descriptor) }
                return try await Child(
                    "openssl",
                    [
                        "s_client", "-connect", "127.0.0.1:\(relay.port)", "-alpn", "h2", "-CAfile",
                        relay.file("ca.pem"), "-verify_return_error", "-cert", relay.directory("shop.pem"), "-key",
                        relay.directory("shop.key"), "-quiet", "-no_ign_eof",
                    ], input: descriptor
                ).ended()
            }
            for (what, bytes) in stories {
                let ended = try await send(bytes)
                #expect(ended.errors.contains("verify return:1"), "\(what): \(ended.errors)")
                #expect(try await shop.curl("GET", "/health").status == 200, "after \(what)")
            }
            #expect(try await shop.curl("GET", "/user/half").status == 404)
            // The same without a fault is processed, although the client does not wait for the answer.
            _ = try await send(begin + post + Frames.data(body, flags: 1))
            try await relay.logged("event=user.registered")
            #expect(try await shop.curl("GET", "/user/half").status == 200)
        }
    }
}
