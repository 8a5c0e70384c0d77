import DeliveryOutcomes
import Domain
import Relay
import Synchronization
import Webhooks

/// A push service of a test.
public typealias Pushes = RecordedPushes<Push, DeliveryOutcome>
/// A mail server or a text message gateway of a test.
public typealias RecordedMessages = RecordedPushes<Message, DeliveryOutcome>
/// The webhook endpoints of a test.
public typealias RecordedWebhooks = RecordedPushes<WebhookRequest, WebhookOutcome>

/// Records the items that it receives, and answers with prepared outcomes.
public final class RecordedPushes<Item: Sendable, Outcome: Sendable>: Sendable {
    private struct State {
        var sent: [Item] = []
        var answers: [Outcome] = []
        var otherwise: @Sendable (Item) -> Outcome
        var waiting: [CheckedContinuation<Item, Never>] = []
        var taken = 0
        /// Returns true if a phone belongs to this push service.
        var isServed: @Sendable (Platform, String) -> Bool = { _, _ in true }
        /// The service that this courier stands for; only for pushes.
        var service = PushService.configured(host: "push.example", isUnreachable: false)
        var isHolding = false
        var held: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>

    public init(otherwise: Outcome) { state = Mutex(State(otherwise: { _ in otherwise })) }

    /// Sets the outcome for items for which no answer is prepared.
    public func answerOtherwise(_ answer: @escaping @Sendable (Item) -> Outcome) {
        state.withLock { $0.otherwise = answer }
    }

    /// Holds back all answers until `release`.
    public func hold() { state.withLock { $0.isHolding = true } }

    public func release() {
        let held = state.withLock { state in
            defer { state.held = [] }
            state.isHolding = false
            return state.held
        }
        for continuation in held { continuation.resume() }
    }

    /// Adds the next answers, in order.
    public func answer(_ outcomes: Outcome...) { state.withLock { $0.answers += outcomes } }

    public var sent: [Item] { state.withLock { $0.sent } }

    /// Returns the next received item that was not returned yet, when it arrives.
    public func next() async -> Item {
        await withCheckedContinuation { continuation in
            let ready = state.withLock { state -> Item? in
                guard state.taken < state.sent.count else {
                    state.waiting.append(continuation)
                    return nil
                }
                state.taken += 1
                return state.sent[state.taken - 1]
            }
            if let ready { continuation.resume(returning: ready) }
        }
    }

    public func send(_ item: Item) async -> Outcome {
        let (answer, waiter) = state.withLock {
            state -> (@Sendable (Item) -> Outcome, CheckedContinuation<Item, Never>?) in
            state.sent.append(item)
            let waiter = state.waiting.isEmpty ? nil : state.waiting.removeFirst()
            if waiter != nil { state.taken += 1 }
            guard !state.answers.isEmpty else { return (state.otherwise, waiter) }
            let outcome = state.answers.removeFirst()
            return ({ _ in outcome }, waiter)
        }
        waiter?.resume(returning: item)
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.isHolding { state.held.append(continuation) }
                return !state.isHolding
            }
            if isFree { continuation.resume() }
        }
        return answer(item)
    }
}

extension RecordedPushes: PushCourier where Item == Push, Outcome == DeliveryOutcome {
    public convenience init() { self.init(otherwise: .accepted(by: nil)) }

    /// Restricts the service to some phones, by platform and device token.
    public func serveOnly(_ isServed: @escaping @Sendable (_ platform: Platform, _ pushToken: String) -> Bool) {
        state.withLock { $0.isServed = isServed }
    }

    /// Sets the service that this courier stands for.
    public func stand(for service: PushService) { state.withLock { $0.service = service } }

    public func service(of push: Push) -> PushService { state.withLock { $0.service } }

    public func serves(_ platform: Platform, pushToken: String) -> Bool {
        state.withLock { $0.isServed }(platform, pushToken)
    }
}

extension RecordedPushes: WebhookCourier where Item == WebhookRequest, Outcome == WebhookOutcome {
    public convenience init() { self.init(otherwise: .answered(status: 200)) }
}

extension RecordedPushes: MessageCourier where Item == Message, Outcome == DeliveryOutcome {
    public convenience init() { self.init(otherwise: .accepted(by: nil)) }
}
