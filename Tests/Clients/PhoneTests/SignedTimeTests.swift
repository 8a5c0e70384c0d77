import Bytes
import Crypto
import EventLoop
import HTTP
import JSON
import TestSupport
import Testing
import World

@testable import Phone

/// Statements of the time that a phone must not believe.
@Suite struct SignedTimeTests {
    private let certificates: TestCertificates
    private let sent: Timestamp
    private let origin = "https://login.example.com:8080"

    init() throws {
        certificates = try TestCertificates()
        sent = certificates.now
    }

    private func statement(
        _ change: (inout JSONObject) -> Void = { _ in }, type: String = "twoefay-time+jwt",
        by server: IssuedCertificate? = nil
    ) throws -> String {
        let server = server ?? certificates.server
        var claims: JSONObject = [
            "v": 1, "aud": .string(origin), "nonce": "n-1", "time": .string((sent + .seconds(100)).rfc3339),
        ]
        change(&claims)
        let name = Base64URL.encode(SHA256.hash(server.certificate.der))
        return try JWS.sign(
            header: ["typ": .string(type), "x5t#S256": .string(name)], payload: JSONWriter.write(claims),
            key: server.key)
    }

    private func read(_ statement: String, roundTrip: Duration = .seconds(2)) throws -> SignedTime {
        try SignedTime(
            statement, by: certificates.server.certificate, origin: origin, nonce: "n-1", sent: sent,
            roundTrip: roundTrip)
    }

    @Test func offsetIsTakenAtTheMiddleOfTheRoundTrip() throws {
        let time = try read(try statement())
        #expect(time.offset == .seconds(99))
        #expect(time.uncertainty == .seconds(1))
    }

    @Test func statementOfAnotherKindOrKeyIsRefused() throws {
        let other = try certificates.websites.issueServer(names: ["localhost"], days: 1, at: sent)
        #expect(throws: SignedTime.Malformed.self) { try read(try statement(by: other)) }
        #expect(throws: SignedTime.Malformed.self) { try read(try statement(type: "twoefay-message+jwt")) }
        #expect(throws: SignedTime.Malformed.self) { try read("e30.e30.e30") }
    }

    @Test func replayedOrForeignStatementIsRefused() throws {
        for (name, value) in [
            ("nonce", "n-2"), ("aud", "https://other.example.com"), ("v", 2), ("time", "yesterday"), ("time", .null),
        ] as [(String, JSONValue)] {
            let changed = try statement { $0[name] = value }
            #expect(throws: SignedTime.Malformed.self, "\(name)") { try read(changed) }
        }
    }

    /// A statement that an attacker holds back would set the clock back.
    @Test func delayedStatementIsRefused() throws {
        #expect(try read(try statement(), roundTrip: .seconds(10)).uncertainty == .seconds(5))
        #expect(throws: SignedTime.Malformed.self) { try read(try statement(), roundTrip: .seconds(11)) }
    }
}

/// A phone whose clock is wrong, over real TLS.
@Suite(.timeLimit(.minutes(15))) struct WrongClockTests {
    /// The certificates do not fit the phone's clock, or the clock is wrong by more than a proof may
    /// be.
    @Test(arguments: [-1095, 2, 0], [StoreKind.file, .mariadb])
    func phoneWithAWrongClockEnrolsAndAnswers(days: Int, kind: StoreKind) async throws {
        let error = Duration.seconds(Int64(days) * 86_400)
        let relay = try await RunningRelay.start(kind)
        let shop = try await relay.website("shop")
        let registered = try await shop.curl("POST", "/register", json: #"{"username":"alice"}"#)
        let uri = try #require(registered["activation"]?.object?["uri"]?.string, "\(registered)")
        let group = try LoopGroup.start(count: 1, time: WrongTime(by: error))
        defer { group.stopAndJoin() }
        let loop = group.loops[0]
        let (bound, offset) = try await loop.perform { () async -> Result<(Enrolment, Duration), any Error> in
            do {
                let begun = try Enrolment(try ActivationURI(uri), at: loop.time.now())
                let enroller = try Enroller(begun, loop: loop)
                defer { enroller.close() }
                guard case .verified(let bound, _) = try await enroller.attempt() else {
                    throw CallFailure.unable("not bound")
                }
                // A phone that has forgotten its offset measures it again.
                var forgetful = bound
                forgetful.clockOffset = .zero
                for (enrolment, identity) in [
                    (bound, Responder.Identity.certificate), (bound, .dpop), (forgetful, .certificate),
                    (forgetful, .dpop),
                ] {
                    let phone = try Responder(enrolment, by: identity, loop: loop)
                    defer { phone.close() }
                    #expect(try await phone.pending().isEmpty)
                }
                let phone = try Responder(forgetful, by: .dpop, loop: loop)
                defer { phone.close() }
                return .success((bound, try await phone.synchronise().1.clockOffset))
            } catch {
                return .failure(error)
            }
        }.get()
        #expect(bound.device != nil)
        let wrong = offset + error
        #expect(wrong < .seconds(30) && wrong > .seconds(-30), "\(offset)")
    }

    /// If the certificate has expired by the phone's clock, only the person may set the clock back.
    @Test func clockThatIsAheadIsSetBackOnRequestOnly() async throws {
        let relay = try FakeRelay()
        let ahead = Duration.seconds(3 * 86_400)
        let failure = try await relay.run(clock: WrongTime(by: ahead), certified: SystemTime().now()) {
            loop, address in
            for _ in 0..<2 { relay.answer { try relay.signedTime(SystemTime().now(), for: $0, at: address) } }
            relay.answer(200, Listed.answer([]))
            let enrolment = try relay.bound(address)
            let phone = try Responder(enrolment, loop: loop)
            defer { phone.close() }
            let failure = await #expect(throws: CallFailure.self) { try await phone.pending() }
            #expect(phone.line.clock.offset == .zero)
            let corrected = try Responder(try await phone.synchronise().1, loop: loop)
            defer { corrected.close() }
            #expect(try await corrected.pending().isEmpty)
            return failure
        }
        let text = failure?.description ?? ""
        #expect(text.contains("certificate has expired") && text.contains("s ahead: set the clock"), "\(text)")
        #expect(relay.asked.map(\.path) == ["/time", "/time", "/pending"])
    }

    /// Whoever has the key of an expired certificate can sign a time at which it was valid.
    @Test func expiredKeyReceivesNoActivationCode() async throws {
        let relay = try FakeRelay()
        let issued = SystemTime().now() - .seconds(3 * 86_400)
        let failure = await #expect(throws: CallFailure.self) {
            try await relay.run(certified: issued) { loop, address in
                relay.answer { try relay.signedTime(issued + .seconds(3600), for: $0, at: address) }
                let begun = try Enrolment(try relay.activation(address), at: loop.time.now())
                let enroller = try Enroller(begun, loop: loop)
                defer { enroller.close() }
                _ = try await enroller.attempt()
            }
        }
        #expect(failure?.description.contains("certificate has expired") == true, "\(String(describing: failure))")
        #expect(relay.asked.map(\.path) == ["/time"])
    }

    /// The signed time comes over a connection whose dates were not checked. The `date` comes over
    /// one whose dates were checked, and limits it.
    @Test(arguments: [0, -12]) func signedTimeMustFitTheDateOfTheAnswer(hours: Int64) async throws {
        let relay = try FakeRelay()
        let issued = SystemTime().now() - .seconds(13 * 3600)
        let offset = try await relay.run(certified: issued) { loop, address in
            relay.answer(401, ["code": "unauthenticated"], fields: [.init("dpop-nonce", "n1")])
            relay.answer { try relay.signedTime(SystemTime().now() + .seconds(hours * 3600), for: $0, at: address) }
            relay.answer(200, Listed.answer([]))
            var enrolment = try relay.bound(address)
            enrolment.clockOffset = .seconds(3 * 3600)
            let phone = try Responder(enrolment, by: .dpop, loop: loop)
            defer { phone.close() }
            #expect(try await phone.pending().isEmpty)
            return phone.line.clock.offset
        }
        #expect(relay.asked.map(\.path) == ["/pending", "/time", "/pending"])
        if hours == 0 {
            #expect(offset < .seconds(30) && offset > .seconds(-30), "\(offset)")
        } else {
            #expect(offset == .seconds(3 * 3600))
        }
    }

    /// The certificate ends soon by the phone's clock alone. The answer to the renewal corrects it.
    @Test func phoneThatIsAheadRenewsItsCertificateOnce() async throws {
        let relay = try await RunningRelay.start()
        let shop = try await relay.website("shop")
        let registered = try await shop.curl("POST", "/register", json: #"{"username":"alice"}"#)
        let uri = try #require(registered["activation"]?.object?["uri"]?.string, "\(registered)")
        let group = try LoopGroup.start(count: 1, time: WrongTime(by: .seconds(100 * 86_400)))
        defer { group.stopAndJoin() }
        let loop = group.loops[0]
        let renewals = try await loop.perform { () async -> Result<Int, any Error> in
            do {
                let enroller = try Enroller(try Enrolment(try ActivationURI(uri), at: loop.time.now()), loop: loop)
                defer { enroller.close() }
                guard case .verified(var enrolment, _) = try await enroller.attempt() else {
                    throw CallFailure.unable("not bound")
                }
                var renewals = 0
                for _ in 0..<2 {
                    let phone = try Responder(enrolment, loop: loop)
                    defer { phone.close() }
                    guard phone.isToRenew else { continue }
                    enrolment = try await phone.change(renews: true)
                    renewals += 1
                }
                return .success(renewals)
            } catch {
                return .failure(error)
            }
        }.get()
        #expect(renewals == 1)
    }

    @Test func storedOffsetIsReadAgain() throws {
        let relay = try FakeRelay()
        let address = try #require(WebAddress("https://127.0.0.1:1"))
        var enrolment = try relay.bound(address)
        enrolment.clockOffset = .milliseconds(-1500)
        #expect(try Enrolment(kept: JSONWriter.write(enrolment.json())).clockOffset == .milliseconds(-1500))
        enrolment.clockOffset = .zero
        #expect(try enrolment.json()["clock_offset"] == nil)
    }

    /// A relay whose certificate has expired cannot make a phone with a right clock use it.
    @Test func expiredCertificateIsRefusedAtTheSignedTime() async throws {
        let relay = try FakeRelay()
        let failure = await #expect(throws: CallFailure.self) {
            try await relay.run(certified: SystemTime().now() - .seconds(3 * 86_400)) { loop, address in
                relay.answer { try relay.signedTime(SystemTime().now(), for: $0, at: address) }
                let phone = try Responder(try relay.bound(address), loop: loop)
                defer { phone.close() }
                _ = try await phone.pending()
            }
        }
        guard case .notSent(let reason) = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(reason.contains("certificate has expired"))
        #expect(relay.asked.map(\.path) == ["/time"])
    }

    /// The statement must be signed by the certificate of the connection, and answer this request.
    @Test func unbelievableTimeLeavesTheClock() async throws {
        let relay = try FakeRelay()
        let (offset, failure) = try await relay.run { loop, address in
            relay.answer(200, ["time": "e30.e30.e30"])
            let phone = try Responder(try relay.bound(address), loop: loop)
            defer { phone.close() }
            do throws(CallFailure) {
                return (try await phone.synchronise().1.clockOffset, CallFailure?.none)
            } catch {
                return (Duration.zero, error)
            }
        }
        #expect(offset == .zero)
        #expect(failure?.description.contains("cannot be believed") == true, "\(String(describing: failure))")
    }

    @Test func programStoresTheOffset() async throws {
        let relay = try await RunningRelay.start()
        let shop = try await relay.website("shop")
        let registered = try await shop.curl("POST", "/register", json: #"{"username":"alice"}"#)
        let uri = try #require(registered["activation"]?.object?["uri"]?.string, "\(registered)")
        let owner = try Owner()
        #expect(try await owner.phone("enrol", uri).status == 0)
        let asked = try await owner.phone("time", "--json")
        let answer = try #require(try JSONReader.read(Array(asked.output.utf8)).object, "\(asked.errors)")
        #expect(answer["relay"]?.string == relay.origin)
        let offset = try #require(answer["offset_milliseconds"]?.integer)
        #expect(abs(offset) < 30_000)
        let shown = try await owner.phone("show", "--json")
        #expect(try JSONReader.read(Array(shown.output.utf8)).object?["clock_offset"]?.integer == offset)
        #expect(try await owner.phone("time").output.contains("The time of \(relay.origin) is "))
    }
}
