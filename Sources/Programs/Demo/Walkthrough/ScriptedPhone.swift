import Bytes
import EventLoop
import Phone
import Synchronization
import World

/// Somebody's phone in the play, which is told what its person wants.
public final class ScriptedPhone: Sendable {
    /// Where the push service finds it.
    public let pushToken: String
    private let loop: EventLoop
    private let randomness: any Randomness
    private let observer: MessageObserver
    private let responder = Mutex<Responder?>(nil)

    public init(loop: EventLoop, randomness: any Randomness, observer: @escaping MessageObserver = { _ in }) {
        pushToken = Hex.encode(randomness.bytes(32))
        self.loop = loop
        self.randomness = randomness
        self.observer = observer
    }

    public func enrol(_ activation: ActivationURI, name: String) async throws(CallFailure) {
        let begun: Enrolment
        do {
            begun = try Enrolment(
                activation, pushToken: pushToken, name: name, platform: .ios, at: loop.time.now(),
                randomness: randomness)
        } catch {
            throw .unable("\(error)")
        }
        let enroller = try Enroller(begun, loop: loop, witness: telling)
        defer { enroller.close() }
        guard case .verified(let bound, _) = try await enroller.attempt() else {
            throw .unable("the phone has to be approved first")
        }
        let phone = try Responder(bound, loop: loop, randomness: randomness, witness: telling)
        responder.withLock { $0 = phone }
    }

    /// What the push rang for: the phone asks the relay for it, since the push is not to be believed.
    public func look(at challenge: String) async throws(CallFailure) -> ChallengePrompt {
        let pending = try await bound().pending()
        guard let question = pending.questions.first(where: { $0.challenge == challenge }) else {
            throw .unable(pending.refused.first?.reason ?? "what the phone rang for is not asked any more")
        }
        return question
    }

    /// What the phone shows when somebody takes it in hand.
    public func asked() async throws(CallFailure) -> [ChallengePrompt] { try await bound().pending().questions }

    /// Signs what the person decided about what was shown. What the relay makes of it: `success` or `failure`.
    public func answer(_ decision: SignedStatement.Decision, to question: ChallengePrompt) async throws(CallFailure)
        -> String
    {
        try await bound().answer(decision, to: question)
    }

    public func close() { responder.withLock { $0 }?.close() }

    private func bound() throws(CallFailure) -> Responder {
        guard let phone = responder.withLock({ $0 }) else { throw .unable("the phone is not bound") }
        return phone
    }

    private var telling: RelayConnection.Observer {
        let witness = observer
        return { said in
            switch said {
            case .call(let call): witness(Message(.phone, .relay, call))
            case .answer(let answer): witness(Message(.relay, .phone, answer))
            }
        }
    }
}
