import EventLoop
import FakePushServices
import JSON
import Synchronization
import World

/// All messages between the website, the relay, the phones and the other servers, for display.
final class ActivityFeed: Sendable {
    /// An event that is not a message.
    enum FeedEvent: String, Sendable {
        case relayStarted = "relay_started"
        case relayKilled = "relay_killed"
        case relayDied = "relay_died"
        case relayFailed = "relay_failed"
        case pushDown = "push_down"
        case pushUp = "push_up"
        case phoneOffline = "phone_offline"
        case phoneOnline = "phone_online"
        case textsSlow = "sms_slow"
        case textsFast = "sms_fast"
        case textDelayed = "sms_delayed"
        case operatorUnlocked = "operator_unlocked"
        case operatorFailed = "operator_failed"
    }

    private struct State {
        var last: Int64 = 0
        var entries: [(number: Int64, json: JSONValue)] = []
        var usernames: [String] = []
    }

    let longPoll: LongPoll
    private let time: any TimeSource
    private let state = Mutex(State())

    static let most = 2000

    init(loop: EventLoop) {
        longPoll = LongPoll(loop: loop)
        time = loop.time
    }

    func add(_ message: Message) {
        var entry: JSONObject = [
            "from": .string(message.from.rawValue), "to": .string(message.to.rawValue), "head": .string(message.head),
            "fields": .array(message.fields.map { .string($0) }), "body": .object(message.body),
            "routine": .bool(message.isRoutine),
        ]
        if message.to == .relay, message.head == "POST /register", let name = message.body["username"]?.string {
            state.withLock { if !$0.usernames.contains(name) { $0.usernames.append(name) } }
        }
        if let phone = message.phone { entry.set("phone", .integer(Int64(phone))) }
        add(entry)
    }

    /// Adds a push and the push service's answer to it.
    func add(_ request: RecordedRequest) {
        let token = request.push.map { "\($0.deviceToken.prefix(12))…" } ?? ""
        let head = request.push == nil ? "POST \(request.path)" : "POST /3/device/\(token)"
        add(Message(.relay, .pushService, head, body: request.push?.payload ?? [:]))
        add(Message(.pushService, .relay, request.answer, body: [:]))
    }

    func add(_ note: FeedEvent, _ text: String? = nil) {
        var entry: JSONObject = ["note": .string(note.rawValue)]
        if let text { entry.set("text", .string(text)) }
        add(entry)
    }

    /// The names of the users that the website has registered, taken from its observed requests.
    var usernames: [String] { state.withLock { $0.usernames } }

    /// Returns the entries after the given number, and the number of the last entry.
    func entries(after number: Int64) -> (entries: [JSONValue], last: Int64) {
        state.withLock { state in
            let first = state.entries.firstIndex { $0.number > number } ?? state.entries.endIndex
            return (state.entries[first...].map(\.json), state.last)
        }
    }

    private func add(_ entry: JSONObject) {
        var entry = entry
        entry.set("at", .string(time.now().rfc3339))
        state.withLock { state in
            state.last += 1
            entry.set("n", .integer(state.last))
            state.entries.append((state.last, .object(entry)))
            if state.entries.count > Self.most { state.entries.removeFirst() }
        }
        longPoll.notifyWaiters()
    }
}

extension Message {
    /// Whether the message only polls, or reports that nothing is new.
    fileprivate var isRoutine: Bool {
        switch (from, to) {
        case (.website, .relay): head == "POST /auth" || head.hasPrefix("GET /user/")
        case (.phone, .relay): head == "POST /pending"
        case (.relay, .website): body["login"] == "wait" || body["devices"] != nil
        case (.relay, .phone):
            body["pending"]?.array?.isEmpty == true || fields.contains { $0.contains("use_dpop_nonce") }
        default: false
        }
    }
}
