import Bytes
import Crypto
import Glibc
import JSON
import TestSupport
import Testing
import World

/// Clients whose certificate is wrong in exactly one respect.
@Suite("Bad certificates", .timeLimit(.minutes(15)), .mayBlock) struct BadCertificateTests {
    private struct Names {
        static let shop = CertificateRequest.Name.uri("twoefay:website:shop")
        static let bank = CertificateRequest.Name.uri("twoefay:website:bank")
    }

    /// A request for a certificate over the website's own registered key.
    private static func request(
        _ key: P256PublicKey, names: [CertificateRequest.Name] = [Names.shop],
        usages: [CertificateRequest.Usage] = [.clientAuth], from: Duration = .seconds(-60), to: Duration = .seconds(600)
    ) -> CertificateRequest {
        let now = SystemTime().now()
        return CertificateRequest(
            key: key, commonName: "shop", names: names, usages: usages, notBefore: now + from, notAfter: now + to)
    }

    private static func key(of website: String, in fixture: Fixture) throws -> P256PrivateKey {
        try P256PrivateKey(pem: Secret(try TextFile.bytes(fixture.relay.directory("\(website).key"))))
    }

    @Test func unverifiableCertificateIsRefusedInTLS() async throws {
        try await Fixture.run { fixture in
            _ = try await fixture.website("shop")
            let key = try Self.key(of: "shop", in: fixture)
            let websites = try fixture.authority("website-ca")
            let stranger = try CertificateAuthority.create(
                commonName: "Twoefay website authority", days: 1, at: SystemTime().now())
            let bad: [(String, Certificate)] = [
                ("expired", try websites.issue(Self.request(key.publicKey, from: .seconds(-600), to: .seconds(-60)))),
                ("early", try websites.issue(Self.request(key.publicKey, from: .seconds(600), to: .seconds(1200)))),
                ("stranger", try stranger.issue(Self.request(key.publicKey))),
                ("server", try websites.issue(Self.request(key.publicKey, usages: [.serverAuth]))),
                ("useless", try websites.issue(Self.request(key.publicKey, usages: []))),
                ("from-ca", try fixture.authority("ca").issue(Self.request(key.publicKey))),
            ]
            for (name, certificate) in bad {
                let client = try fixture.holder(name, try certificate.pem(), key)
                for version in ["1.2", "1.3"] {
                    // Even a route without authentication refuses a caller that presents a bad
                    // certificate.
                    for path in ["/user/bob", "/health"] {
                        let status = try await client.refusal("GET", path, arguments: ["--tls-max", version])
                        #expect(
                            APIClient.broken.contains(status), "\(name) in TLS \(version): curl ended with \(status)")
                    }
                }
            }
            // The same key under a good certificate.
            let good = try fixture.holder("good", try websites.issue(Self.request(key.publicKey)).pem(), key)
            #expect(try await good.curl("GET", "/user/bob").status == 404)
        }
    }

    @Test func certificateWithoutExactlyOneKnownNameIsUnauthenticated() async throws {
        try await Fixture.run { fixture in
            let shop = try await fixture.website("shop")
            _ = try await fixture.website("bank")
            let key = try Self.key(of: "shop", in: fixture)
            let other = try P256PrivateKey.generate()
            let websites = try fixture.authority("website-ca")
            let phones = try fixture.authority("device-ca")
            let bad: [(String, Certificate, P256PrivateKey)] = [
                ("none", try websites.issue(Self.request(key.publicKey, names: [])), key),
                ("two", try websites.issue(Self.request(key.publicKey, names: [Names.shop, Names.bank])), key),
                ("twice", try websites.issue(Self.request(key.publicKey, names: [Names.shop, Names.shop])), key),
                ("dns", try websites.issue(Self.request(key.publicKey, names: [.dns("twoefay:website:shop")])), key),
                ("key", try websites.issue(Self.request(other.publicKey)), other),
                ("not-its-own", try websites.issue(Self.request(key.publicKey, names: [Names.bank])), key),
                ("phones", try phones.issue(Self.request(key.publicKey)), key),
                (
                    "device",
                    try websites.issue(
                        Self.request(
                            key.publicKey, names: [.uri("twoefay:device:\(String(repeating: "0", count: 32))")])),
                    key
                ),
            ]
            for (name, certificate, key) in bad {
                let client = try fixture.holder(name, try certificate.pem(), key)
                let answer = try await client.curl("GET", "/user/bob")
                #expect(answer.status == 401, "\(name)")
                #expect(answer["code"] == "unauthenticated", "\(name)")
                #expect(answer.isProblem)
                #expect(try await client.curl("GET", "/health").status == 200, "\(name)")
            }
            for (method, path) in [
                ("POST", "/register"), ("GET", "/user/bob"), ("DELETE", "/user/bob"), ("POST", "/user/bob/activation"),
                ("POST", "/login"), ("POST", "/auth"), ("POST", "/backup"), ("DELETE", "/challenge/x"),
                ("POST", "/success"), ("POST", "/failure"),
            ] {
                let answer = try await fixture.nobody.curl(method, path)
                #expect(answer.status == 401, "\(method) \(path)")
                #expect(answer["code"] == "unauthenticated")
                #expect(answer.isProblem)
            }
            #expect(try await shop.curl("GET", "/user/bob").status == 404)
        }
    }

    @Test func certificateOfTheWrongKindIsForbidden() async throws {
        try await Fixture.run { fixture in
            let shop = try await fixture.website("shop")
            let (token, code) = try await shop.register("bob.kind")
            let phone = try await Phone(in: fixture, token: token, code: code)
            for (method, path) in [
                ("POST", "/register"), ("GET", "/user/bob.kind"), ("DELETE", "/user/bob.kind"), ("POST", "/login"),
                ("POST", "/auth"), ("POST", "/backup"), ("DELETE", "/challenge/x"),
            ] {
                let answer = try await phone.client.curl(method, path)
                #expect(answer.status == 403, "\(method) \(path)")
                #expect(answer["code"] == "forbidden")
                #expect(answer.isProblem)
            }
            for path in ["/success", "/failure"] {
                for body: JSONObject in [["challenge": "x"], ["token": .string(token)]] {
                    let answer = try await shop.curl("POST", path, body)
                    #expect(answer.status == 403, "\(path)")
                    #expect(answer["code"] == "forbidden")
                }
            }
            // The phone's key for its own device, signed by the websites' authority.
            let wrong = try fixture.authority("website-ca").issue(
                Self.request(phone.key.key.publicKey, names: [.uri("twoefay:device:\(phone.device)")]))
            let client = try fixture.holder("wrong", try wrong.pem(), phone.key.key)
            #expect(try await client.curl("POST", "/success", ["challenge": "x"]).status == 401)
        }
    }

    @Test func refusedCertificateIsNamedInTheLog() async throws {
        try await Fixture.run { fixture in
            let websites = try fixture.authority("website-ca")
            let key = try P256PrivateKey.generate(SystemRandomness())
            let now = SystemTime().now()
            let expired = try websites.issue(
                CertificateRequest(
                    key: key.publicKey, commonName: "shop of 2025", names: [.uri("twoefay:website:shop")],
                    usages: [.clientAuth], notBefore: now - .seconds(600), notAfter: now - .seconds(60)))
            let client = try fixture.holder("expired", try expired.pem(), key)
            let status = try await client.refusal("GET", "/user/bob")
            #expect(APIClient.broken.contains(status), "curl ended with \(status)")
            let line = try await fixture.relay.logged("event=handshake.refused")
            #expect(line.contains("level=info") && line.contains("reason=expired"), "\(line)")
            #expect(line.contains("subject=\"/CN=shop of 2025\""), "\(line)")
        }
    }

    @Test func certificateInTheCRLIsRefused() async throws {
        try await Fixture.run { fixture in
            let relay = fixture.relay
            let websites = try fixture.authority("website-ca")
            let good = try await fixture.website("shop")
            let bad = try await fixture.website("bank")
            #expect(try await bad.curl("GET", "/user/bob").status == 404)

            func revoke(_ serials: [String]) throws {
                let now = SystemTime().now()
                let list = try websites.makeCRL(
                    revoked: serials.map { ($0, at: now - .seconds(1)) }, days: 1, at: now)
                try TextFile.write(list, to: relay.file("revoked.pem"))
            }
            try revoke([])
            await relay.stop()
            try relay.change { text throws in try text.set("tls.revoked", to: "revoked.pem") }
            try await relay.restart()
            #expect(try await bad.curl("GET", "/user/bob").status == 404)

            try revoke([try Certificate(pem: try TextFile.bytes(relay.directory("bank.pem"))).serial])
            relay.signal(SIGHUP)
            try await relay.logged("event=daemon.reloaded")
            // Each loop applies the reload by itself, and some may do so after the log line.
            var status: Int32 = 0
            for _ in 0..<20 where status == 0 { status = try await bad.refusal("GET", "/user/bob") }
            #expect(APIClient.broken.contains(status), "curl ended with \(status)")
            #expect(try await good.curl("GET", "/user/bob").status == 404)
        }
    }
}
