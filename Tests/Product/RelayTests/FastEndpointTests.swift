import Synchronization
import TestSupport
import Testing
import Webhooks

@testable import Relay

/// A website that answers its webhooks at once gets more of them at a time, and the store records
/// their deliveries together.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct FastEndpointTests {
    /// Answers when as many webhooks are under way together as expected.
    private final class Crowd: WebhookCourier {
        private let state: Mutex<(expected: [Int], waiting: [CheckedContinuation<Void, Never>])>

        init(_ expected: Int...) { state = Mutex((expected, [])) }

        func send(_ webhook: WebhookRequest) async -> WebhookOutcome {
            await withCheckedContinuation { continuation in
                let ready = state.withLock { state -> [CheckedContinuation<Void, Never>] in
                    state.waiting.append(continuation)
                    guard state.waiting.count == state.expected.first else { return [] }
                    state.expected.removeFirst()
                    defer { state.waiting = [] }
                    return state.waiting
                }
                for continuation in ready { continuation.resume() }
            }
            return .answered(status: 200)
        }
    }

    @Test(arguments: StoreKind.all) func windowDoublesWithEachRoundOfAnswers(kind: StoreKind) async throws {
        let fixture = try await WebhookFixture(kind)
        fixture.rig.relay.replace(Crowd(4, 8, 16))
        for _ in 0..<28 { try await fixture.cancelled() }
        try await fixture.webhookRound()
        #expect(try fixture.left() == 0)
        #expect(fixture.counted("delivered") == 28)
        #expect(fixture.lines(of: "webhook.delivered").count == 28)
    }

    /// The user of one webhook is deleted while several are under way.
    @Test(arguments: StoreKind.all) func vanishedWebhookDisturbsNoOther(kind: StoreKind) async throws {
        let fixture = try await WebhookFixture(kind)
        let rig = fixture.rig
        rig.webhooks.hold()
        for _ in 0..<4 { try await fixture.cancelled() }
        try await rig.on { relay in await relay.deliverWebhooks() }
        let first = await rig.webhooks.next()
        for _ in 0..<3 { _ = await rig.webhooks.next() }
        try rig.execute("DELETE FROM outbox WHERE id = x'\(first.id)'")
        rig.webhooks.release()
        await rig.settled()
        #expect(try fixture.left() == 0)
        #expect(rig.webhooks.sent.count == 4)
    }
}

extension WebhookFixture {
    fileprivate func webhookRound() async throws { try await rig.webhookRound(after: .zero) }
}
