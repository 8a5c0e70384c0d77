import Daemon
import EventLoop
import FakePushServices
import JSON
import Phone
import TwoefayClient
import World

/// Three logins of two users: one is approved, one is denied, and one expires.
///
/// The login that expires starts first. The shortest lifetime of a challenge is one minute, and the
/// other two logins run during that minute. Tested in `WalkthroughDemoTests.swift`.
struct Walkthrough {
    /// The result of one login.
    struct LoginResult: Sendable {
        let name: String
        let person: String
        let challenge: String
        let expected: Ending
        let verdict: Website.Verdict
        let took: Duration

        var outcome: LoginOutcome { verdict.outcome }
        /// Whether the login ended as expected. A user may be let in if and only if the login
        /// succeeded with a valid receipt.
        var isAsExpected: Bool {
            expected == Ending(login: outcome.login, reason: outcome.reason, proof: outcome.proof)
                && verdict.isLetIn == outcome.isSuccess
        }
    }

    let sandbox: Sandbox
    let narration: Narration
    let website: Website
    let pushService: FakePushService
    let randomness: any Randomness

    struct Ending: Sendable, Equatable {
        let login: LoginOutcome.Login
        var reason: Reason?
        var proof: Proof?
    }

    /// A user with a phone.
    private struct Person {
        let name: String
        let phone: ScriptedPhone
    }

    /// A pause before each decision, so that a spectator sees that the website waits.
    private static let pauseToWatch = Duration.seconds(2)
    private static let shortestLife = Duration.seconds(60)

    func run() async throws -> [LoginResult] {
        let (website, narration) = (website, narration)
        narration.chapter("1. Alice and Bob each add a phone")
        let alice = try await bind("alice", to: "Alice's phone", isFirst: true)
        let bob = try await bind("bob", to: "Bob's phone", isFirst: false)

        narration.chapter("2. Bob logs in, but does not look at his phone: this login expires")
        let forgotten = try await ask(bob, from: "192.0.2.8", living: Self.shortestLife)
        async let expiry = Self.end(of: forgotten, at: website, narration)
        _ = try await receivePush(for: bob)
        await sandbox.loop.sleep(for: Self.pauseToWatch)
        narration.say(
            "The phone shows the request, and nobody answers. The Shop waits: the relay holds its POST /auth. The request "
                + "is open for \(Self.shortestLife.components.seconds) s, the shortest time possible. Two other logins fit into it."
        )

        narration.chapter("3. Alice logs in: she approves this login")
        let approved = try await logIn("approved", alice, from: "192.0.2.7") { context, number in
            narration.say(
                "The Shop shows the number \(number ?? "none"). Her phone shows the request: "
                    + "\(context.displayName), \(context.username), from \(context.ip ?? "nowhere"). "
                    + "This is her login, so she enters the number and approves.")
            narration.say(
                "The phone signs her answer together with everything that it showed. The Shop gets this signature and "
                    + "verifies it with the phone's key, so it need not trust the relay.")
            return .approve(number: number)
        }

        narration.chapter("4. Somebody else has Alice's password: she denies this login")
        let denied = try await logIn("denied", alice, from: "203.0.113.99") { context, _ in
            narration.say(
                "Her phone shows the address \(context.ip ?? "nowhere"). This is not her login, so she denies it.")
            return .deny
        }

        narration.chapter("5. Bob's request expires")
        let countdown = countDown(to: forgotten.expiresAt)
        let (verdict, took) = await expiry
        countdown.stop()
        let expired = LoginResult(
            name: "expired", person: bob.name, challenge: forgotten.challenge,
            expected: Ending(login: .failure, reason: .expired), verdict: try verdict.get(), took: took)
        return [approved, denied, expired]
    }

    private func bind(
        _ name: String, to phoneName: String, isFirst: Bool
    ) async throws -> Person {
        let uri = try await website.register(name, email: "\(name)@example.com")
        let activation = try ActivationURI(uri)
        narration.say("The Shop shows this link as a QR code, and \(phoneName) scans it:")
        narration.say(uri)
        if isFirst {
            narration.say(
                "The phone makes a key that never leaves it. It connects to the relay and checks the relay's certificate "
                    + "with 'pin' from the link. Its signature proves that it has the key.")
        }
        let phone = ScriptedPhone(loop: sandbox.loop, randomness: randomness) { [narration] in narration.message($0) }
        sandbox.onTearDown { phone.close() }
        try await phone.enrol(activation, name: phoneName)
        try await website.pinPhones(of: name)
        if isFirst {
            narration.say(
                "The Shop remembers the phone's key. It can trust this key because of 'k': a secret in the link that "
                    + "the relay never saw, and that the phone used to confirm its key.")
        }
        return Person(name: name, phone: phone)
    }

    private func logIn(
        _ name: String, _ person: Person, from ip: String,
        decide: (ShownContext, String?) -> SignedStatement.Decision
    ) async throws -> LoginResult {
        let asked = try await ask(person, from: ip)
        let (website, narration) = (website, narration)
        async let told = Self.end(of: asked, at: website, narration)
        let challenge = try await receivePush(for: person)
        let question = try await person.phone.look(at: challenge)
        await sandbox.loop.sleep(for: Self.pauseToWatch)
        let decision = decide(question.context, asked.number)
        _ = try await person.phone.answer(decision, to: question)
        let (verdict, took) = await told
        let expected: Ending =
            switch decision {
            case .approve: Ending(login: .success, proof: .signed)
            case .deny: Ending(login: .failure, reason: .denied, proof: .signed)
            case .fraud: Ending(login: .failure, reason: .fraud, proof: .signed)
            }
        return LoginResult(
            name: name, person: person.name, challenge: asked.challenge, expected: expected,
            verdict: try verdict.get(), took: took)
    }

    private func ask(
        _ person: Person, from ip: String, living life: Duration? = nil
    ) async throws -> OpenLogin {
        try await website.ask(
            LoginRequest(
                username: person.name, ip: ip, userAgent: "Firefox on Debian", service: "members", life: life))
    }

    private static func end(
        of asked: OpenLogin, at website: Website, _ narration: Narration
    ) async -> (Result<Website.Verdict, CallFault>, Duration) {
        let start = narration.elapsed
        let verdict: Result<Website.Verdict, CallFault>
        do throws(CallFault) {
            verdict = .success(try await website.verdict(on: asked))
        } catch {
            verdict = .failure(error)
        }
        return (verdict, narration.elapsed - start)
    }

    /// Waits for the push to this user's phone, and returns the challenge in it.
    private func receivePush(for person: Person) async throws -> String {
        let push: ReceivedPush
        do {
            push = try await pushService.next()
        } catch {
            throw CallFailure.unable("no push for \(person.name) arrived within \(error.within)")
        }
        guard push.deviceToken == person.phone.pushToken, let challenge = push.challenge else {
            throw CallFailure.unable("the push was not for \(person.name)")
        }
        narration.message(
            Message(
                .pushService, .phone, push.category ?? "push",
                body: ["alert": .object(push.alert), "challenge": .string(challenge)]))
        return challenge
    }

    private func countDown(to end: Timestamp) -> Countdown {
        let countdown = Countdown(loop: sandbox.loop, end: end) { [narration] left in
            narration.passing("Bob's request expires in \(left) s …")
        }
        narration.say(
            "Now we wait for \(countdown.left) s. The demo uses the real deadlines.")
        countdown.tick()
        return countdown
    }
}

/// Reports the remaining time once a second.
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

    /// The remaining seconds, rounded up.
    var left: Int64 { max(0, ((end - loop.time.now()).wholeMilliseconds + 999) / 1000) }

    func tick() {
        guard !isOver, left > 0 else { return }
        tell(left)
        loop.schedule(after: .seconds(1)) { self.tick() }
    }

    func stop() { isOver = true }
}
