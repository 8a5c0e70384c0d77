import Bytes
import Synchronization
import TwoefayClient
import World

/// The website's data about one browser.
struct Session: Sendable {
    /// The token in every form. A forged form of another site does not have it, although the
    /// browser sends the cookie.
    let token: String
    fileprivate let begun: Instant
    fileprivate var seen: Instant

    /// The language that the visitor chose; nil for the browser's preference.
    var language: Language?
    /// The customer that is logged in with password and second factor.
    var account: String?
    var entrance: LoginMethod?
    var question: PendingConfirmation?
    /// A notice that the next page shows once.
    var notice: Notice?
    /// The activation that the screen shows for a phone.
    var activation: Activation?
    var authenticator: RelayClient.TOTPSetup?

    struct Activation: Sendable {
        let uri: String
        let expiresAt: Instant
        /// The number of pinned phones when the activation was made. If there are more, the
        /// activation was used.
        let phonesBefore: Int
    }

    /// The method by which the customer logged in.
    enum LoginMethod: Sendable, Equatable {
        case signUp
        case phone
        case code(Factor?)
    }

    struct Notice: Sendable, Equatable {
        enum Kind: String, Sendable { case good, bad, warn }
        let kind: Kind
        let text: ShopText
    }
}

/// The sessions of all browsers, by the random id in their cookie. They are kept in memory, and
/// their number is limited. Tested in `ShopComponentTests.swift` and `ShopDefenceTests.swift`.
final class Sessions: Sendable {
    private let sessions = Mutex<[String: Session]>([:])
    private let time: any TimeSource
    private let randomness: any Randomness

    static let rest = Duration.seconds(30 * 60)
    static let life = Duration.seconds(12 * 3600)
    private static let most = 2_000

    init(time: any TimeSource, randomness: any Randomness) {
        self.time = time
        self.randomness = randomness
    }

    /// Returns a session; nil if it is unknown or has expired.
    func find(_ id: String) -> Session? {
        let now = time.instant()
        return sessions.withLock { sessions in
            guard let session = sessions[id], Self.isAlive(session, now) else {
                sessions[id] = nil
                return nil
            }
            sessions[id]?.seen = now
            return session
        }
    }

    func begin() -> (id: String, session: Session) { begin { _ in } }

    /// Replaces a session by a new one with another id, which keeps only the language. An attacker
    /// who planted a cookie in this browser before the login gains nothing (session fixation).
    func renew(_ id: String, _ change: (inout Session) -> Void) -> String {
        let old = sessions.withLock { $0.removeValue(forKey: id) }
        return begin { session in
            session.language = old?.language
            change(&session)
        }.id
    }

    @discardableResult
    func change<Value>(_ id: String, _ change: (inout Session) -> Value) -> Value? {
        sessions.withLock { sessions in
            guard var session = sessions[id] else { return nil }
            defer { sessions[id] = session }
            return change(&session)
        }
    }

    /// Ends the customer's sessions in all browsers after a fraud report.
    ///
    /// A fraud report also ends sessions that wait for an approval. The browser that opened this
    /// challenge keeps only its result and its language.
    func endSessionsAfterFraud(_ reason: Reason?, of account: String, _ challenge: String) {
        // With `frozen`, the fraud was reported earlier, perhaps not through this website. A frozen
        // user cannot log in, but a session with a pending login stays, because it leads to the
        // unlock page.
        guard reason == .fraud || reason == .frozen else { return }
        sessions.withLock { sessions in
            sessions = sessions.compactMapValues { session in
                let isIn = session.account == account
                let comesIn = reason == .fraud && session.question?.account == account
                guard isIn || comesIn else { return session }
                guard session.question?.challenge == challenge else { return nil }
                var left = Session(token: session.token, begun: session.begun, seen: session.seen)
                (left.language, left.question) = (session.language, session.question)
                return left
            }
        }
    }

    private func begin(_ change: (inout Session) -> Void) -> (id: String, session: Session) {
        let now = time.instant()
        let id = Base64URL.encode(randomness.bytes(32))
        var session = Session(token: Base64URL.encode(randomness.bytes(32)), begun: now, seen: now)
        change(&session)
        let begun = session
        sessions.withLock { sessions in
            if sessions.count >= Self.most { sessions = sessions.filter { Self.isAlive($0.value, now) } }
            // Sessions without a login are dropped first, since anybody can create any number of
            // them.
            if sessions.count >= Self.most, let oldest = sessions.min(by: { Self.goesFirst($0.value, $1.value) })?.key {
                sessions[oldest] = nil
            }
            sessions[id] = begun
        }
        return (id, begun)
    }

    private static func goesFirst(_ one: Session, _ other: Session) -> Bool {
        guard (one.account == nil) == (other.account == nil) else { return one.account == nil }
        return one.seen < other.seen
    }

    private static func isAlive(_ session: Session, _ now: Instant) -> Bool {
        now - session.seen < rest && now - session.begun < life
    }
}
