import Daemon
import EventLoop
import FakeAPNs
import JSON
import Phone
import World

/// Three logins, as two people live through them. The one that is to expire begins first: the least that a question may
/// live is a minute, and the others are played in it.
struct Play {
    /// A login that was played.
    struct Ended: Sendable {
        let name: String
        let person: String
        let challenge: String
        let expected: Website.Outcome
        let outcome: Website.Outcome
        let took: Duration

        var isRight: Bool { outcome == expected }
    }

    let stage: Stage
    let story: Story
    let website: Website
    let pushService: FakeAPNs

    /// A user with a phone.
    private struct Person {
        let name: String
        let token: String
        let phone: Handset
    }

    /// Time to look at a phone, so that it is seen that the website waits.
    private static let glance = Duration.seconds(2)
    private static let shortestLife: Int64 = 60

    func run() async throws(CallFailure) -> [Ended] {
        let (website, story) = (website, story)
        story.chapter("1. Two phones are bound, which is done once")
        let alice = try await bind("alice", to: "Alice's phone", isFirst: true)
        let bob = try await bind("bob", to: "Bob's phone", isFirst: false)

        story.chapter("2. Bob logs in, and his phone lies in a drawer: this one will expire")
        let forgotten = try await ask(bob, from: "192.0.2.8", living: Self.shortestLife)
        async let runOut = Self.end(of: forgotten, at: website, story)
        _ = try await ring(bob)
        await stage.loop.sleep(for: Self.glance)
        story.say(
            "It rings, and nobody hears it. The Shop waits: the relay holds its POST /auth. The question lives "
                + "\(Self.shortestLife) s, the least there is; two other logins are played meanwhile.")

        story.chapter("3. Alice logs in: this one will be approved")
        let approved = try await play("approved", alice, from: "192.0.2.7") { context, number in
            story.say(
                "The Shop shows the number \(number ?? "none"). The phone shows what it has just asked for: "
                    + "\(context.displayName), \(context.username), from \(context.ip ?? "nowhere"). "
                    + "\"That is me\": she types the number and says yes.")
            story.say(
                "The phone signs that, with a digest of every byte that it showed. The Shop gets the same signature with "
                    + "its answer, and can check it without trusting the relay.")
            return .approve(number: number)
        }

        story.chapter("4. Somebody else has Alice's password: this one will be denied")
        let denied = try await play("denied", alice, from: "203.0.113.99") { context, _ in
            story.say("Her phone shows \(context.ip ?? "nowhere"), which is not hers. \"That is not me\": she says no.")
            return .deny
        }

        story.chapter("5. Nobody answers for Bob")
        let countdown = countDown(to: forgotten.expiresAt)
        let (outcome, took) = await runOut
        countdown.stop()
        let expired = Ended(
            name: "expired", person: bob.name, challenge: forgotten.challenge,
            expected: .init(login: "failure", reason: "expired"), outcome: try outcome.get(), took: took)
        return [approved, denied, expired]
    }

    private func bind(
        _ name: String, to phoneName: String, isFirst: Bool
    ) async throws(CallFailure) -> Person {
        let registered = try await website.register(username: name, email: "\(name)@example.com")
        let activation: ActivationURI
        do {
            activation = try ActivationURI(registered.activation)
        } catch {
            throw .unable("the activation cannot be read: \(error)")
        }
        story.say("The Shop shows the uri as a QR code, and \(phoneName) scans it:")
        story.say(registered.activation)
        if isFirst {
            story.say(
                "The phone makes a key that never leaves it, connects to the relay, and goes on only if the relay's "
                    + "authority has the key that 'pin' names. It proves that it has its own by signing what it sends.")
        }
        let phone = stage.makePhone()
        try await phone.enrol(activation, name: phoneName)
        return Person(name: name, token: registered.token, phone: phone)
    }

    private func play(
        _ name: String, _ person: Person, from ip: String,
        decide: (ShownContext, String?) -> Statement.Decision
    ) async throws(CallFailure) -> Ended {
        let asked = try await ask(person, from: ip)
        let (website, story) = (website, story)
        async let told = Self.end(of: asked, at: website, story)
        let challenge = try await ring(person)
        let question = try await person.phone.look(at: challenge)
        await stage.loop.sleep(for: Self.glance)
        let decision = decide(question.context, asked.number)
        _ = try await person.phone.answer(decision, to: question)
        let (outcome, took) = await told
        let expected: Website.Outcome =
            switch decision {
            case .approve: .init(login: "success", proof: "signed")
            case .deny: .init(login: "failure", reason: "denied", proof: "signed")
            case .fraud: .init(login: "failure", reason: "fraud", proof: "signed")
            }
        return Ended(
            name: name, person: person.name, challenge: asked.challenge, expected: expected,
            outcome: try outcome.get(), took: took)
    }

    private func ask(
        _ person: Person, from ip: String, living seconds: Int64? = nil
    ) async throws(CallFailure) -> Website.Asked {
        try await website.login(
            .init(token: person.token, ip: ip, userAgent: "Firefox on Debian", expiresIn: seconds))
    }

    private static func end(
        of asked: Website.Asked, at website: Website, _ story: Story
    ) async -> (Result<Website.Outcome, CallFailure>, Duration) {
        let start = story.elapsed
        let outcome = await website.outcome(of: asked.challenge)
        return (outcome, story.elapsed - start)
    }

    /// The push as the phone gets it, with the challenge that it will answer.
    private func ring(_ person: Person) async throws(CallFailure) -> String {
        let push: ReceivedPush
        do {
            push = try await pushService.next()
        } catch {
            throw .unable("no push came for \(person.name) in \(error.within)")
        }
        guard push.deviceToken == person.phone.pushToken, let challenge = push.challenge else {
            throw .unable("the push was not for \(person.name)")
        }
        story.message(
            Message(
                .pushService, .phone, push.category ?? "push",
                body: ["alert": .object(push.alert), "challenge": .string(challenge)]))
        return challenge
    }

    private func countDown(to end: Timestamp) -> Countdown {
        let countdown = Countdown(loop: stage.loop, end: end) { [story] left in
            story.passing("Bob's question lives for another \(left) s …")
        }
        story.say(
            "There is nothing to do but to wait for \(countdown.left) s: nothing is shortened here.")
        countdown.tick()
        return countdown
    }
}

/// Tells once a second how much is left.
private final class Countdown {
    private let loop: EventLoop
    private let end: Timestamp
    private let tell: (Int64) -> Void
    private var isOver = false

    init(loop: EventLoop, end: Timestamp, tell: @escaping (Int64) -> Void) {
        self.loop = loop
        self.end = end
        self.tell = tell
    }

    /// Seconds, rounded up.
    var left: Int64 { max(0, ((end - loop.time.now()).wholeMilliseconds + 999) / 1000) }

    func tick() {
        guard !isOver, left > 0 else { return }
        tell(left)
        loop.schedule(after: .seconds(1)) { self.tick() }
    }

    func stop() { isOver = true }
}
