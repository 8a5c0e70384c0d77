import EventLoop
import JSON
import Phone
import TestSupport
import Testing
import World

/// A phone shows its person's account.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AccountPhoneTests {
    @Test(arguments: [Responder.Identity.certificate, .dpop])
    func accountHasPhonesAndLogins(identity: Responder.Identity) async throws {
        let relay = try await RunningRelay.start()
        let shop = try await relay.website("shop")
        let registered = try await shop.curl(
            "POST", "/register", json: #"{"username": "alice", "email": "alice@example.com"}"#)
        let uri = try #require(registered["activation"]?.object?["uri"]?.string, "\(registered)")
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        let loop = group.loops[0]
        let account = try await loop.perform { () async -> Result<OwnAccount, any Error> in
            do {
                let enroller = try Enroller(try Enrolment(try ActivationURI(uri), at: loop.time.now()), loop: loop)
                defer { enroller.close() }
                guard case .verified(let bound, _) = try await enroller.attempt() else {
                    throw CallFailure.unable("not bound")
                }
                let asked = try await shop.curl("POST", "/login", json: #"{"username": "alice"}"#)
                let challenge = asked["challenge"]?.string ?? ""
                let cancelled = try await shop.curl("DELETE", "/challenge/\(challenge)")
                #expect(cancelled.status == 204, "\(cancelled)")
                let phone = try Responder(bound, by: identity, loop: loop)
                defer { phone.close() }
                return .success(try await phone.account())
            } catch {
                return .failure(error)
            }
        }.get()
        #expect(account.username == "alice" && account.devices.count == 1)
        #expect(account.devices.first?.isThis == true && account.devices.first?.state == "active")
        #expect(account.factors.map(\.kind) == ["mail"] && account.factors.first?.address == "a…@example.com")
        let login = try #require(account.logins.first)
        #expect(login.result == "failure" && login.reason == "cancelled")
        #expect(login.report?.context.isEmpty == false && login.report?.nonce.isEmpty == false)
    }
}
