import FakePushServices
import HTTP2
import TestSupport
import Testing

/// The id of a push, which stays the same from the store to the last attempt.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct PushIDTests {
    @Test(arguments: KillTests.stores) func apnsIDIsStoredBeforeThePushIsSent(_ store: StoreKind) async throws {
        let apple = try await TestAPNs.start()
        let fixture = try await Fixture.start(store, apple: apple)
        let (token, _) = try await fixture.enrol("anna", pushToken: Fixture.pushToken("dead"))
        apple.service.script("dead", .silence)
        _ = try await fixture.login(token)
        let push = try #require(try await apple.service.nextRequest().push)
        let kept = try Ledger.read(fixture.relay) { try $0.texts("SELECT lower(hex(id)) FROM outbox") }
        #expect(kept.contains(push.id.filter { $0 != "-" }))
    }

    /// The outcome is unknown: the push is sent once more under the same id, and never again.
    @Test(arguments: [ScriptedAnswer.reset(.internalError), .reset(.internalError, accepts: true), .cut(accepts: true)])
    func ambiguousPushIsSentOnceMore(_ answer: ScriptedAnswer) async throws {
        let apple = try await TestAPNs.start()
        let fixture = try await Fixture.start(apple: apple)
        let (token, _) = try await fixture.enrol("anna", pushToken: Fixture.pushToken("dead"))
        apple.service.script("dead", answer, repeatsLast: true)
        let login = try await fixture.login(token)
        let (first, second) = (try await apple.service.nextRequest(), try await apple.service.nextRequest())
        #expect(first.push != nil && first.push?.id == second.push?.id)
        try await fixture.relay.logged("event=push.undeliverable challenge=\(login.challenge)")
        await #expect(throws: MailboxTimeout.self) { try await apple.service.nextRequest(within: .zero) }
        #expect(try await fixture.auth(login.challenge).steps == ["undeliverable"])
        #expect(apple.service.deliveries.twice.isSubset(of: apple.service.deliveries.unanswered))
    }
}
