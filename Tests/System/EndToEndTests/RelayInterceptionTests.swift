import Bytes
import Crypto
import JSON
import TestSupport
import Testing
import World

/// An attacker in the middle, between a relay and its clients.
@Suite("An attacker between client and relay", .timeLimit(.minutes(15)), .mayBlock) struct RelayInterceptionTests {
    private func through(_ middle: Interposer, _ client: APIClient) -> APIClient {
        var client = client
        client.caller.port = middle.port
        return client
    }

    @Test func interceptorSeesOnlyTLS() async throws {
        try await Fixture.run { fixture in
            let middle = try Interposer(to: fixture.relay.port)
            let shop = through(middle, try await fixture.website("shop"))
            let (token, code) = try await shop.register("bob.middle")
            var phone = try await Phone(in: fixture, token: token, code: code, through: middle.port)
            phone.client.caller.port = middle.port
            let asked = try await shop.curl(
                "POST", "/login",
                [
                    "username": "bob.middle", "service": "Shop of Bob", "action": "transfer", "ip": "192.0.2.177",
                    "details": [["label": "amount", "value": "1234.56 EUR"]],
                ])
            let challenge = try #require(asked["challenge"]?.string)
            let number = try #require(asked["number"])
            let answered = try await phone.client.curl(
                "POST", "/success", ["challenge": .string(challenge), "number": number])
            #expect(answered["login"] == "success")
            #expect(try await shop.curl("POST", "/auth", ["challenge": .string(challenge)])["login"] == "success")

            let passed = middle.passed
            #expect(passed.count >= 5)
            for each in passed {
                #expect(!each.toServer.isEmpty && !each.toClient.isEmpty)
                #expect(Records.areAll(each.toServer))
                #expect(Records.areAll(each.toClient))
                for secret in fixture.kept.union([challenge, phone.device, "Shop of Bob", "transfer", "/register"]) {
                    let isSeen = Records.contain(secret, each.toServer) || Records.contain(secret, each.toClient)
                    #expect(!isSeen, "\(secret) was seen")
                }
            }
        }
    }

    /// TLS 1.2 reveals the client's certificate, but none of the content.
    @Test func interceptorSeesNoPlaintextInTLS12() async throws {
        try await Fixture.run { fixture in
            let middle = try Interposer(to: fixture.relay.port)
            let shop = through(middle, try await fixture.website("shop"))
            let answer = try await shop.curl(
                "POST", "/register", ["username": "bob.twelve", "email": "bob.twelve@example.com"],
                arguments: ["--tls-max", "1.2"])
            #expect(answer.status == 201)
            let passed = try #require(middle.passed.first)
            #expect(Records.areAll(passed.toServer) && Records.areAll(passed.toClient))
            for secret in fixture.kept {
                let isSeen = Records.contain(secret, passed.toServer) || Records.contain(secret, passed.toClient)
                #expect(!isSeen, "\(secret) was seen")
            }
        }
    }

    /// With every certificate that an attacker could obtain.
    @Test func interceptorCannotImpersonateTheRelay() async throws {
        try await Fixture.run { fixture in
            let relay = fixture.relay
            let shop = try await fixture.website("shop")
            let (token, code) = try await shop.register("bob.redirected")
            let phone = try await Phone(in: fixture, token: token, code: code)
            let now = SystemTime().now()
            let stranger = try CertificateAuthority.create(commonName: "Twoefay server authority", days: 1, at: now)
            let others = [
                ("another authority's", try stranger.issueServer(names: ["localhost", "127.0.0.1"], days: 1, at: now)),
                (
                    "of another name",
                    try fixture.authority("ca").issueServer(names: ["elsewhere.example.com"], days: 1, at: now)
                ),
                (
                    "from the websites' authority",
                    try fixture.authority("website-ca").issueServer(
                        names: ["localhost", "127.0.0.1"], days: 1, at: now)
                ),
                (
                    "from the phones' authority",
                    try fixture.authority("device-ca").issueServer(names: ["localhost", "127.0.0.1"], days: 1, at: now)
                ),
            ]
            var files = [("a website's own", relay.directory("shop.pem"), relay.directory("shop.key"))]
            for (index, (what, issued)) in others.enumerated() {
                let (certificate, key) = (relay.directory("fake\(index).pem"), relay.directory("fake\(index).key"))
                try TextFile.write(try issued.certificatePEM(), to: certificate)
                try TextFile.write(try issued.keyPEM().reveal(), to: key)
                files.append((what, certificate, key))
            }
            for (what, certificate, key) in files {
                let free = try FreePort()
                let port = free.port
                let fake = try Child(
                    "openssl",
                    [
                        "s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificate, "-key", key, "-alpn", "h2",
                        "-www",
                    ])
                defer {
                    fake.signal(9)
                    withExtendedLifetime(free) {}
                }
                _ = try await fake.line(.output, with: "ACCEPT")
                for client in [shop, phone.client] {
                    var redirected = client
                    redirected.caller.port = port
                    let status = try await redirected.refusal("GET", "/user/bob.redirected")
                    #expect(status == 60, "\(what): curl ended with \(status)")
                    // The same with Twoefay's own client.
                    await #expect(throws: Connection.Refused.self, "\(what)") { try await Connection(redirected) }
                }
            }
        }
    }

    @Test func interceptorCannotDowngradeTLS() async throws {
        try await Fixture.run { fixture in
            let shop = try await fixture.website("shop")
            _ = try await shop.register("bob.down")
            let middle = try Interposer(to: fixture.relay.port)
            let hidden = through(middle, shop)
            #expect(try await hidden.curl("GET", "/user/bob.down").status == 200)

            func hello(_ change: @escaping @Sendable ([UInt8]) -> [UInt8]) -> Interposer.Tamper {
                { piece, direction, number in direction == .toServer && number == 0 ? change(piece) : piece }
            }
            let plain = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".utf8)
            let attempts: [(String, Interposer.Tamper)] = [
                ("ALPN taken out", hello { Records.without(Records.alpn, $0) }),
                (
                    "HTTP/1.1 alone in ALPN",
                    hello { piece in
                        guard let place = Records.place(of: Records.alpn, in: piece) else { return [] }
                        var changed = piece
                        changed[place + 7] = UInt8(ascii: "x")
                        return changed
                    }
                ),
                ("TLS 1.3 taken out", hello { Records.without(Records.supportedVersions, $0) }),
                (
                    "TLS 1.1 said",
                    hello { piece in
                        var changed = Records.without(Records.supportedVersions, piece)
                        changed[10] = 2
                        return changed
                    }
                ),
                (
                    "SSL 3 said",
                    hello { piece in
                        piece.enumerated().map {
                            [1, 2, 9, 10].contains($0.offset) ? ($0.offset % 8 == 1 ? 3 : 0) : $0.element
                        }
                    }
                ),
                ("an answer in the clear", { piece, direction, _ in direction == .toClient ? plain : piece }),
                (
                    "a request in the clear",
                    { piece, direction, number in
                        direction == .toServer && number == 1
                            ? Array("DELETE /user/bob.down HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8) + piece : piece
                    }
                ),
                (
                    "a bit turned over on the way there",
                    { piece, direction, number in
                        guard direction == .toServer, number > 0, let last = piece.last else { return piece }
                        return piece.dropLast() + [last ^ 1]
                    }
                ),
                (
                    "a bit turned over on the way back",
                    { piece, direction, number in
                        guard direction == .toClient, let last = piece.last else { return piece }
                        return piece.dropLast() + [last ^ 1]
                    }
                ),
                (
                    "everything sent twice",
                    { piece, direction, number in
                        direction == .toServer && number > 0 ? piece + piece : piece
                    }
                ),
            ]
            for (what, tamper) in attempts {
                middle.set(tamper)
                let status = try await hidden.refusal("DELETE", "/user/nobody", arguments: ["--max-time", "20"])
                #expect(APIClient.broken.contains(status), "\(what): curl ended with \(status)")
            }
            middle.set(nil)
            #expect(try await hidden.curl("GET", "/user/bob.down").status == 200)

            // The relay accepts nothing without TLS.
            var open = shop.caller
            open.port = fixture.relay.port
            let clear = try await Child.run(
                "curl", ["--silent", "--show-error", "--max-time", "20", "http://127.0.0.1:\(open.port)/health"])
            #expect(clear.status != 0)
            #expect(clear.output.isEmpty)
        }
    }
}
