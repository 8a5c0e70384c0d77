import Bytes
import Synchronization
import TwoefayClient
import World

/// What the website remembers of one browser.
struct Session: Sendable {
    /// Stands in every form: who has not seen our page does not know it, whatever cookie comes along.
    let token: String
    fileprivate let begun: Instant
    fileprivate var seen: Instant

    /// Chosen on a page; else the browser's.
    var language: Language?
    /// Whose name and second factor were right.
    var account: String?
    var entrance: LoginMethod?
    var question: PendingConfirmation?
    /// For the next page, once.
    var notice: Notice?
    /// What stands on the screen for a phone to read.
    var activation: Activation?
    var authenticator: RelayClient.TOTPSetup?

    struct Activation: Sendable {
        let uri: String
        let expiresAt: Instant
        /// Phones that were pinned when it was made: with one more it has done its work.
        let phonesBefore: Int
    }

    /// How somebody came in.
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

/// Who is who, by a cookie that nobody can guess. In memory, and bounded there.
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

    /// Nil for what is unknown or over.
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

    /// Another id, and nothing of what was known under the old one but the language: whoever planted a cookie in this browser
    /// before somebody logged in has nothing of it.
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

    /// What the end of a question means for every browser of that name: where the phone says that a stranger is at work,
    /// nobody stays logged in, nor comes in by what was said before. Only how that question ended may be read still.
    func endSessionsAfterFraud(_ reason: Reason?, of account: String, _ challenge: String) {
        // Frozen: it was said before, and perhaps not to us. There is no way in then, but one out of it, which stays.
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
            // Strangers first: they can make as many as they like.
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
