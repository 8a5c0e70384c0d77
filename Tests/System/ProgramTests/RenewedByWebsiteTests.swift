import Bytes
import Crypto
import Glibc
import JSON
import TestSupport
import Testing
import World

/// The renewal of a website's certificate by the website, with built programs, curl and openssl.
@Suite("POST /website/certificate", .timeLimit(.minutes(15)), .mayBlock) struct RenewedByWebsiteTests {
    private static let day = Duration.seconds(86_400)

    private static func fixture(_ kind: StoreKind = .file, tables: Int64? = nil) async throws -> Fixture {
        try await Fixture(kind, tables: tables) { try $0.set("tls.websites_renewal", to: "on") }
    }

    /// Gives `shop` a certificate for its key that ends in 25 days, also in the store.
    private static func age(_ fixture: Fixture) throws -> Certificate {
        let (relay, now) = (fixture.relay, SystemTime().now())
        let authority = try CertificateAuthority(
            certificatePEM: try TextFile.bytes(relay.file("website-ca.pem")),
            keyPEM: Secret(try TextFile.bytes(relay.file("website-ca.key"))))
        let old = try authority.issue(
            CertificateRequest(
                key: try key(fixture).publicKey, names: [.uri("twoefay:website:shop")], usages: [.clientAuth],
                notBefore: now - day * 800, notAfter: now + day * 25))
        try TextFile.write(try old.pem(), to: relay.directory("shop.pem"))
        func column(_ time: Timestamp) -> String { time.rfc3339.replacing("T", with: " ").replacing("Z", with: "") }
        try relay.execute(
            "UPDATE website_key SET serial = '\(old.serial)', not_before = '\(column(old.notBefore))', "
                + "not_after = '\(column(old.notAfter))'")
        return old
    }

    private static func key(_ fixture: Fixture) throws -> P256PrivateKey {
        try P256PrivateKey(pem: Secret(try TextFile.bytes(fixture.relay.directory("shop.key"))))
    }

    private static func body(_ pem: some StringProtocol) -> String {
        JSONWriter.text(.object(["csr": .string(String(pem))]))
    }

    private static func request(_ fixture: Fixture) throws -> String {
        String(decoding: try SigningRequest(commonName: "shop", key: try key(fixture)).pem(), as: UTF8.self)
    }

    private static func renew(_ fixture: Fixture, by caller: CurlCaller? = nil) async throws -> CurlCaller.Answer {
        try await (caller ?? fixture.shop).curl(
            "POST", "/website/certificate", json: body(try request(fixture)))
    }

    /// Returns the script of docs/operators/keys.md, for these files and this relay.
    private static func script(_ fixture: Fixture) throws -> String {
        let root = "\(#filePath)".split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        let page = try text("\(root)/docs/operators/keys.md")
        let start = try #require(page.firstRange(of: "```sh\n#!/bin/sh\n"))
        let end = try #require(page[start.upperBound...].firstRange(of: "```"))
        return String(page[start.upperBound..<end.lowerBound])
            .replacing("/etc/shop", with: fixture.relay.directory.path)
            .replacing("https://login.example.com:8080", with: fixture.relay.origin)
            .replacing("ca.pem", with: fixture.relay.file("ca.pem"))
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func scriptOfThePageRenews(_ kind: StoreKind) async throws {
        let fixture = try await Self.fixture(kind)
        let relay = fixture.relay
        let script = try Self.script(fixture)
        // It is too early at first, which is no fault.
        let before = try TextFile.bytes(relay.directory("shop.pem"))
        let early = try await Child.run("sh", ["-c", script])
        #expect(early.status == 0 && early.errors.isEmpty, "\(early)")
        #expect(try TextFile.bytes(relay.directory("shop.pem")) == before)

        let old = try Self.age(fixture)
        try TextFile.write(try old.pem(), to: relay.directory("old.pem"))
        let ended = try await Child.run("sh", ["-c", script])
        try #require(ended.status == 0, "\(ended)")
        let new = try Certificate(pem: try TextFile.bytes(relay.directory("shop.pem")))
        #expect(new.serial != old.serial && new.spkiThumbprint == old.spkiThumbprint)
        let verified = try await Child.run(
            "openssl",
            [
                "verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", relay.file("website-ca.pem"),
                relay.directory("shop.pem"),
            ])
        #expect(verified.status == 0, "\(verified)")
        let former = relay.caller(
            certificatePath: relay.directory("old.pem"), keyPath: relay.directory("shop.key"))
        for caller in [fixture.shop, former] { #expect(try await caller.curl("GET", "/user/ada").status == 404) }
        try await relay.logged("event=website.renewed website=shop")
        #expect(try fixture.trail("website.renewed", outcome: "website") == 1)
        let keys = try #require(try await fixture.json("website", "show", "shop")["keys"]?.array)
        #expect(keys.count == 1 && keys[0].object?["serial"]?.string == new.serial)
        #expect(keys[0].object?["expires_at"]?.string == new.notAfter.rfc3339)
        // The use of the new certificate is noted within seconds.
        var expiring: JSONValue?
        repeat {
            expiring = try await fixture.json("website", "list", "--expiring", "700")["websites"]
        } while expiring != []

        // The list has both.
        _ = try await fixture.json("website", "crl")
        try relay.change { try $0.set("tls.revoked", to: "website-crl.pem") }
        let revoked = try await fixture.json("website", "revoke-key", "shop", "--all", "--yes")
        #expect(revoked["list"]?.object?["count"] == 2)
        let list = try await Child.run("openssl", ["crl", "-in", relay.file("website-crl.pem"), "-noout", "-text"])
        for certificate in [old, new] {
            #expect(list.output.lowercased().contains("serial number: \(certificate.serial)"), "\(list.output)")
        }
        #expect(try await Self.renew(fixture).status == 401)
        #expect(try relay.count("SELECT count(*) FROM website_certificate") == 0)
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func hostileRequestsAreRefused(_ kind: StoreKind) async throws {
        let fixture = try await Self.fixture(kind)
        _ = try Self.age(fixture)
        func answer(_ json: String) async throws -> CurlCaller.Answer {
            try await fixture.shop.curl("POST", "/website/certificate", json: json)
        }
        let right = try Self.request(fixture)
        let other = try SigningRequest(commonName: "shop", key: try P256PrivateKey.generate()).pem()
        let another = try await answer(Self.body(String(decoding: other, as: UTF8.self)))
        #expect(another.status == 400 && another.text.contains("twoefay website renew"), "\(another)")
        let rsa = try await Child.run(
            "openssl", ["req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "-", "-subj", "/CN=shop"])
        // The last byte of the signature is changed.
        var der = try SigningRequest(pem: Array(right.utf8)).der
        der[der.count - 1] ^= 1
        let forged = "-----BEGIN CERTIFICATE REQUEST-----\n\(Base64.encode(der))\n-----END CERTIFICATE REQUEST-----\n"
        for pem in ["", "x", right + right, rsa.output, forged, String(repeating: "x", count: 9000)] {
            let refused = try await answer(Self.body(pem))
            #expect(refused.status == 400 && refused["code"] == "invalid", "\(refused)")
        }
        #expect(try await answer(#"{"csr":1}"#).status == 400)
        #expect(try await answer("{}").status == 400)
        #expect(try await answer(Self.body(String(repeating: "x", count: 65_536))).status == 413)
        #expect(try await fixture.relay.caller().curl("POST", "/website/certificate", json: "{}").status == 401)

        // An answer that was lost is repeated: from the kept answer, or by another certificate.
        let fields = ["idempotency-key": "1"]
        let first = try await fixture.shop.curl(
            "POST", "/website/certificate", json: Self.body(right), fields: fields)
        let kept = try await fixture.shop.curl(
            "POST", "/website/certificate", json: Self.body(right), fields: fields)
        #expect(first.status == 200 && kept.text == first.text, "\(first)")
        for _ in 1..<8 { #expect(try await answer(Self.body(right)).status == 200) }
        let limited = try await answer(Self.body(right))
        #expect(limited.status == 429, "\(limited)")
        #expect(Int(limited.field("retry-after") ?? "").map { $0 > 6 * 86_400 } == true)
        try await fixture.relay.logged("event=website.certificates website=shop count=8")
        #expect(try await fixture.json("website", "disable", "shop")["state"] == "disabled")
        #expect(try await answer(Self.body(right)).status == 401)
    }

    @Test func reloadTurnsItOnAndOff() async throws {
        let fixture = try await Fixture(.file)
        let relay = fixture.relay
        _ = try Self.age(fixture)
        let off = try await Self.renew(fixture)
        #expect(off.status == 403 && off.text.contains("tls.websites_renewal"), "\(off)")
        for (number, (setting, status)) in [("on", 200), ("off", 403)].enumerated() {
            try relay.change { try $0.set("tls.websites_renewal", to: setting) }
            relay.signal(SIGHUP)
            try await relay.logged("event=daemon.reloaded", number: number + 1)
            #expect(try await Self.renew(fixture).status == status)
        }
        try relay.change { try $0.set("tls.websites_renewal", to: "on") }
        try #require(rename(relay.file("website-ca.key"), relay.file("away")) == 0)
        relay.signal(SIGHUP)
        let refused = try await relay.logged("event=daemon.reload ")
        #expect(refused.contains("website-ca.key") && refused.contains("tls.websites_renewal"), "\(refused)")
        #expect(try await Self.renew(fixture).status == 403)
    }

    /// The former authority is trusted until it is taken out, and the new one signs.
    @Test(arguments: [StoreKind.file, .mariadb]) func websiteMovesToTheNewAuthority(_ kind: StoreKind) async throws {
        let fixture = try await Self.fixture(kind)
        let relay = fixture.relay
        #expect(try await Self.renew(fixture).status == 409)
        _ = try await fixture.json("authority", "replace", "websites")
        relay.signal(SIGHUP)
        try await relay.logged("event=daemon.reloaded")
        let renewed = try await Self.renew(fixture)
        try #require(renewed.status == 200, "\(renewed)")
        #expect(try await fixture.json("website", "list", "--unmoved")["websites"]?.array?.count == 1)
        let moved = try relay.caller(
            "moved", certificate: try #require(renewed["certificate"]?.string),
            key: try text(relay.directory("shop.key")))
        #expect(try await Self.renew(fixture, by: moved).status == 409)
        // The use of the new certificate is noted within seconds. That of the former one counts for a day.
        var isMoving = false
        repeat {
            let websites = try await fixture.json("website", "list", "--unmoved")["websites"]?.array
            isMoving = websites?.first?.object?["moving"] == true
        } while !isMoving
        // An earlier use of the former one may be noted late.
        var unmoved: JSONValue?
        repeat {
            try relay.execute("UPDATE website_certificate SET used_at = '2026-01-01 00:00:00.000'")
            unmoved = try await fixture.json("website", "list", "--unmoved")["websites"]
        } while unmoved != []
        _ = try await fixture.json("authority", "finish", "websites")
        relay.signal(SIGHUP)
        try await relay.logged("event=daemon.reloaded", number: 2)
        #expect(try await moved.curl("GET", "/user/ada").status == 404)
        await #expect(throws: CurlCaller.Failed.self) { try await fixture.shop.curl("GET", "/user/ada") }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func keyProcessSigns(_ kind: StoreKind) async throws {
        let fixture = try await Self.fixture(kind)
        let relay = fixture.relay
        await relay.stop()
        let old = try Self.age(fixture)
        try relay.change { try $0.set("key_service", to: "unix:socket") }
        let keys = try await KeyProcess.start(relay.settings)
        // Neither the relay nor a request opens the file any more.
        try #require(rename(relay.file("website-ca.key"), relay.file("away")) == 0)
        try await relay.restart()
        let renewed = try await Self.renew(fixture)
        try #require(renewed.status == 200, "\(renewed)")
        try await keys.logged("event=keys.issued website=shop process=\(relay.pid)")
        let new = try Certificate(pem: Array(try #require(renewed["certificate"]?.string).utf8))
        #expect(new.spkiThumbprint == old.spkiThumbprint && new.uris == ["twoefay:website:shop"])
        #expect(renewed["expires_at"]?.string == new.notAfter.rfc3339)

        // A relay that was reloaded before the key process refuses what the former authority signs.
        try #require(rename(relay.file("away"), relay.file("website-ca.key")) == 0)
        _ = try await fixture.json("authority", "replace", "websites")
        relay.signal(SIGHUP)
        try await relay.logged("event=daemon.reloaded")
        #expect(try await Self.renew(fixture).status == 500)
        try await relay.logged("level=error event=website.renewal")
        keys.signal(SIGHUP)
        try await keys.logged("event=keys.reloaded")
        #expect(try await Self.renew(fixture).status == 200)
        await keys.end(SIGKILL)
        #expect(try await Self.renew(fixture).status == 503)
    }

    @Test func unusableKeysAreNamed() async throws {
        let installed = try await Installed()
        let file = installed.directory("relay/website-ca.key")
        func checked(_ spoil: String, _ program: String) async throws -> Child.Ended {
            _ = try await Child.run("sh", ["-c", spoil], in: installed.directory("relay"))
            return try await Child.run(program, ["--config", installed.settings, "--check"])
        }
        let (relay, keys) = (try BuiltProgram.twoefayd.path, try BuiltProgram.keys.path)
        for renewal in ["off", "on"] {
            var settings = try text(installed.settings)
            try settings.set("tls.websites_renewal", to: renewal)
            try settings.set("tls.websites_key", to: "website-ca.key")
            try TextFile.write(settings, to: installed.settings)
            let line = try #require(
                settings.split(separator: "\n", omittingEmptySubsequences: false)
                    .firstIndex { $0.hasSuffix("websites_key: website-ca.key") })
            #expect(try await checked("cp website-ca.key kept", relay).status == 0)
            for (spoil, fault) in [
                ("rm website-ca.key", "No such file"),
                ("cp kept website-ca.key; chmod 644 website-ca.key", "by others"),
                ("chmod 600 website-ca.key; cp device-ca.key website-ca.key", "does not match its certificate"),
                ("echo x > website-ca.key", "reading a private key"),
            ] {
                let ended = try await checked(spoil, relay)
                guard renewal == "on" else {
                    #expect(ended.status == 0, "\(ended.errors)")
                    continue
                }
                #expect(ended.status == 1 && ended.errors.contains(fault), "\(ended.errors)")
                #expect(
                    ended.errors.contains("twoefay.yaml:\(line + 1):17: \(file): ")
                        && ended.errors.contains("set tls.websites_renewal: off"), "\(ended.errors)")
                let examined = try await Child.run(
                    try BuiltProgram.twoefay.path, ["--config", installed.settings, "doctor"])
                #expect(examined.output.contains(fault), "\(examined.output)")
                try settings.set("key_service", to: "unix:socket")
                try TextFile.write(settings, to: installed.settings)
                let ofKeys = try await checked("", keys)
                #expect(ofKeys.status == 1 && ofKeys.errors.contains(fault), "\(ofKeys.errors)")
                settings = settings.replacing("key_service: unix:socket", with: "# key_service: unix:/x")
                try TextFile.write(settings, to: installed.settings)
            }
            _ = try await Child.run("sh", ["-c", "cp kept website-ca.key"], in: installed.directory("relay"))
        }
    }

    /// A relay of this version on the tables of the former one works, and does not renew.
    @Test(arguments: [StoreKind.file, .mariadb]) func formerTablesLackRenewals(_ kind: StoreKind) async throws {
        let fixture = try await Self.fixture(kind, tables: 2)
        _ = try Self.age(fixture)
        let answer = try await Self.renew(fixture)
        #expect(answer.status == 503, "\(answer)")
        #expect(try await fixture.relay.logged("event=store.unavailable").contains("the version 2"))
        var usedAt: String?
        repeat {
            usedAt = try await fixture.json("website", "show", "shop")["keys"]?.array?.first?.object?["used_at"]?.string
        } while usedAt == nil
        #expect(try await fixture.json("website", "list", "--unmoved")["websites"] == [])
        _ = try await fixture.json("website", "revoke-key", "shop", "--all", "--yes")
        #expect(try await Self.renew(fixture).status == 401)
        _ = try await fixture.json("website", "remove", "shop", "--yes")
    }
}
