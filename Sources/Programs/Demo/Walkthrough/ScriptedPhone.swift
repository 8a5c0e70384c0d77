import Bytes
import EventLoop
import Phone
import Synchronization
import World

/// A phone in the walkthrough, whose decisions are scripted.
public final class ScriptedPhone: Sendable {
    /// The device token of the phone.
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

    /// Returns the challenge that a push named. The phone fetches it from the relay, since the
    /// content of a push is not trusted.
    public func look(at challenge: String) async throws(CallFailure) -> ChallengePrompt {
        let pending = try await bound().pending()
        guard let question = pending.questions.first(where: { $0.challenge == challenge }) else {
            throw .unable(pending.refused.first?.reason ?? "the challenge that the push named is no longer pending")
        }
        return question
    }

    /// Returns the challenges that the phone shows when its owner opens the app.
    public func asked() async throws(CallFailure) -> [ChallengePrompt] { try await bound().pending().questions }

    /// Signs and sends the person's decision. It returns the result at the relay: `success` or
    /// `failure`.
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
