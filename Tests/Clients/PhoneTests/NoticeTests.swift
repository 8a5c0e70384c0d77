import Bytes
import Crypto
import EventLoop
import Glibc
import HTTP
import JSON
import TestSupport
import Testing
import World

@testable import Phone

/// Notices that a phone must not show.
@Suite struct NoticeStatementTests {
    private let certificates: TestCertificates
    private let enrolment: Enrolment

    init() throws {
        certificates = try TestCertificates()
        let relay = try FakeRelay()
        enrolment = try relay.bound(try #require(WebAddress("https://login.example.com:8080")))
    }

    private func read(
        _ change: (inout JSONObject) -> Void = { _ in }, type: String = "twoefay-message+jwt",
        by server: IssuedCertificate? = nil
    ) throws -> Notice {
        let server = server ?? certificates.server
        var claims: JSONObject = [
            "v": 1, "aud": "https://login.example.com:8080#shop", "id_token": "ab12", "message": "m1",
            "from": "operator", "title": "Maintenance", "text": "No logins\non Sunday.",
            "created_at": "2026-11-21T10:04:30.120Z",
        ]
        change(&claims)
        let name = Base64URL.encode(SHA256.hash(server.certificate.der))
        let statement = try JWS.sign(
            header: ["typ": .string(type), "x5t#S256": .string(name)], payload: JSONWriter.write(claims),
            key: server.key)
        return try Notice(statement, by: certificates.server.certificate, id: "m1", for: enrolment)
    }

    @Test func noticeOfTheRelayIsRead() throws {
        let notice = try read()
        #expect(notice.author == .operator && notice.title == "Maintenance" && notice.text == "No logins\non Sunday.")
        #expect(notice.createdAt == Timestamp(rfc3339: "2026-11-21T10:04:30.120Z"))
    }

    @Test func noticeOfAnotherKeyOrKindIsRefused() throws {
        let other = try certificates.websites.issueServer(names: ["localhost"], days: 1, at: certificates.now)
        #expect(throws: Notice.Malformed.self) { try read(by: other) }
        #expect(throws: Notice.Malformed.self) { try read(type: "twoefay-time+jwt") }
    }

    @Test func noticeForAnotherReaderIsRefused() throws {
        for (name, value) in [
            ("aud", "https://login.example.com:8080#bank"), ("id_token", "cd34"), ("message", "m2"), ("v", 2),
            ("from", "bank"), ("title", .null), ("text", 1), ("created_at", "now"),
        ] as [(String, JSONValue)] {
            #expect(throws: Notice.Malformed.self, "\(name)") { try read { $0[name] = value } }
        }
    }
}

/// `twoefay phone notices` and `phone watch` with a real relay, and the operator's commands.
@Suite(.timeLimit(.minutes(15))) struct NoticeProgramTests {
    private func notices(_ ended: Child.Ended) throws -> [JSONObject] {
        let object = try #require(try JSONReader.read(Array(ended.output.utf8)).object, "\(ended.errors)")
        return object["notices"]?.array?.compactMap(\.object) ?? []
    }

    @Test(arguments: [StoreKind.file, .mariadb], [[], ["--dpop"]])
    func phoneReadsNoticesOfWebsiteAndOperator(kind: StoreKind, identity: [String]) async throws {
        let relay = try await RunningRelay.start(kind)
        let (shop, owner) = try await relay.enrolled()
        func phone(_ arguments: String...) async throws -> Child.Ended {
            try await owner.begin(["notices"] + arguments + identity + ["--keys", owner.keys]).ended()
        }
        #expect(try await phone().output.contains("There are no new notices."))
        let left = try await shop.curl(
            "POST", "/user/alice/messages", json: #"{"title":"Prices","text":"New prices.\nThe Shop"}"#)
        let first = try #require(left["message"]?.string, "\(left)")
        let sent = try await relay.operate(
            "notice", "leave", "alice", "No logins on Sunday.", "--title", "Maintenance", "--website", "shop",
            "--json")
        let second = try #require(
            try JSONReader.read(Array(sent.output.utf8)).object?["notice"]?.string, "\(sent.errors)")

        let listed = try notices(try await phone("--json"))
        #expect(Set(listed.compactMap { $0["notice"]?.string }) == [first, second])
        let shown = try await phone("--read", first)
        #expect(shown.status == 0, "\(shown.errors)")
        for part in ["the website shop", "Prices", "New prices.", "The Shop", "it asks nothing"] {
            #expect(shown.output.contains(part), "\(shown.output)")
        }
        #expect(try await phone("--read", second).output.contains("the relay's operator"))
        #expect(try notices(try await phone("--json")).isEmpty)
        #expect(try notices(try await phone("--archive", "--json")).count == 2)

        let seen = try notices(
            try await relay.operate("notice", "list", "alice", "--website", "shop", "--json"))
        #expect(seen.allSatisfy { $0["read_at"]?.string != nil } && seen.count == 2)
        // A website does not delete the operator's notice.
        #expect(try await shop.curl("DELETE", "/user/alice/messages/\(second)").status == 404)
        let withdrawn = try await relay.operate("notice", "withdraw", "alice", first, "--website", "shop")
        #expect(withdrawn.status == 0, "\(withdrawn.errors)")
        #expect(try await phone("--read", first).status == 3)
        let again = try await relay.operate("notice", "withdraw", "alice", first, "--website", "shop")
        #expect(again.status == 3 && again.errors.contains("has no notice"), "\(again.errors)")
        #expect(try relay.count("SELECT count(*) FROM audit WHERE event = 'notice.read'") == 2)
    }

    /// After a reload, the relay signs with the new certificate, also for connections with the old
    /// one.
    @Test(arguments: [Responder.Identity.certificate, .dpop])
    func noticeIsReadAfterTheRelaysCertificateChanged(identity: Responder.Identity) async throws {
        let relay = try await RunningRelay.start()
        let shop = try await relay.website("shop")
        let registered = try await shop.curl("POST", "/register", json: #"{"username":"alice"}"#)
        let uri = try #require(registered["activation"]?.object?["uri"]?.string, "\(registered)")
        let left = try await shop.curl(
            "POST", "/user/alice/messages", json: #"{"title":"Prices","text":"New prices."}"#)
        let id = try #require(left["message"]?.string, "\(left)")
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        let loop = group.loops[0]
        let notice = try await loop.perform { () async -> Result<Notice, any Error> in
            do {
                let enroller = try Enroller(try Enrolment(try ActivationURI(uri), at: loop.time.now()), loop: loop)
                defer { enroller.close() }
                guard case .verified(let bound, _) = try await enroller.attempt() else {
                    throw CallFailure.unable("not bound")
                }
                let phone = try Responder(bound, by: identity, loop: loop)
                defer { phone.close() }
                #expect(try await phone.notices().map(\.id) == [id])
                try relay.renewCertificate()
                relay.signal(SIGHUP)
                try await relay.logged("event=daemon.reloaded")
                return .success(try await phone.fetch(id))
            } catch {
                return .failure(error)
            }
        }.get()
        #expect(notice.title == "Prices")
        #expect(try relay.count("SELECT count(*) FROM audit WHERE event = 'notice.read'") == 1)
    }

    @Test func watchReportsNewNotices() async throws {
        let relay = try await RunningRelay.start()
        let (shop, owner) = try await relay.enrolled()
        _ = try await shop.curl("POST", "/user/alice/messages", json: #"{"title":"Prices","text":"New prices."}"#)
        let watch = try owner.begin(["watch", "--auto", "deny", "--json", "--keys", owner.keys])
        // The login ends the held request, so that the test need not wait for its time.
        _ = try await watch.line(.output, with: #""event":"watching""#)
        _ = try await shop.curl("POST", "/login", json: #"{"username":"alice"}"#)
        let line = try await watch.line(.output, with: #""event":"notices""#)
        #expect(line.contains(#""unread":1"#), "\(line)")
        watch.signal(SIGINT)
        #expect(await watch.ended().status == 0)
    }

    @Test func unshowableNoticeIsRefusedByTheTool() async throws {
        let relay = try await RunningRelay.start()
        _ = try await relay.enrolled()
        for (title, text, message) in [
            ("a\u{202e}b", "x", "--title must not contain"), ("x", "", "TEXT must not be empty"),
            ("x", String(repeating: "a", count: 1001), "TEXT must have at most 1000 characters"),
        ] {
            let refused = try await relay.operate(
                "notice", "leave", "alice", text, "--title", title, "--website", "shop")
            #expect(refused.status == 2 && refused.errors.contains(message), "\(refused.errors)")
        }
        let nobody = try await relay.operate("notice", "leave", "eve", "x", "--title", "x", "--website", "shop")
        #expect(nobody.status == 3)
    }
}
