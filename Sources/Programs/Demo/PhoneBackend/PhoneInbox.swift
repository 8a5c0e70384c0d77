import Bytes
import EventLoop
import FakePushServices
import JSON
import Synchronization
import World

/// The pushes, text messages and mails that arrive at the phones. While the phones are offline,
/// these wait, as they do at the real services. Tested in `PhoneInboxTests.swift`.
final class PhoneInbox: Sendable {
    /// A message on its way to a phone.
    struct Item: Sendable {
        /// The number of the phone; nil for all phones.
        let phone: Int?
        let json: JSONObject
        let message: Message
    }

    private struct State {
        var isOnline = true
        var last: Int64 = 0
        var arrived: [(number: Int64, phone: Int?, json: JSONValue)] = []
        var waiting: [Item] = []
    }

    static let phones = 1...9

    /// The largest number of arrived and of waiting messages. The oldest are dropped first.
    static let most = 200

    let longPoll: LongPoll
    /// The device token of each phone.
    let pushTokens: [String]
    private let feed: ActivityFeed
    private let time: any TimeSource
    private let state = Mutex(State())

    init(loop: EventLoop, feed: ActivityFeed, randomness: any Randomness) {
        longPoll = LongPoll(loop: loop)
        pushTokens = Self.phones.map { _ in Hex.encode(randomness.bytes(32)) }
        time = loop.time
        self.feed = feed
    }

    var isOnline: Bool { state.withLock { $0.isOnline } }

    func setOnline(_ isOnline: Bool) {
        let waiting = state.withLock { state in
            state.isOnline = isOnline
            guard isOnline else { return [Item]() }
            defer { state.waiting = [] }
            return state.waiting
        }
        for item in waiting { arrive(item) }
        longPoll.notifyWaiters()
    }

    func deliver(_ push: ReceivedPush) {
        guard let index = pushTokens.firstIndex(of: push.deviceToken) else { return }
        let phone = index + Self.phones.lowerBound
        var json: JSONObject = ["kind": "push", "from": "", "to": "", "text": "", "payload": .object(push.payload)]
        if let challenge = push.challenge { json.set("challenge", .string(challenge)) }
        let message = Message(
            .pushService, .phone, push.category ?? "push", body: push.payload, phone: phone)
        deliver(Item(phone: phone, json: json, message: message))
    }

    /// Delivers a mail or text message to all phones.
    func deliver(
        _ kind: String, from: String, to: String, subject: String? = nil, text: String, by party: Message.Party
    ) {
        var json: JSONObject = ["kind": .string(kind), "from": .string(from), "to": .string(to), "text": .string(text)]
        if let subject { json.set("subject", .string(subject)) }
        deliver(Item(phone: nil, json: json, message: Message(party, .phone, kind, body: json)))
    }

    /// Returns the messages for a phone after the given number, and the number of the last message.
    func messages(for phone: Int, after number: Int64) -> (messages: [JSONValue], last: Int64) {
        state.withLock { state in
            let new = state.arrived.filter { $0.number > number && ($0.phone == nil || $0.phone == phone) }
            return (new.map(\.json), state.last)
        }
    }

    private func deliver(_ item: Item) {
        let waits = state.withLock { state in
            if !state.isOnline {
                state.waiting.append(item)
                if state.waiting.count > Self.most { state.waiting.removeFirst() }
            }
            return !state.isOnline
        }
        if !waits {
            arrive(item)
            longPoll.notifyWaiters()
        }
    }

    private func arrive(_ item: Item) {
        var json = item.json
        json.set("at", .string(time.now().rfc3339))
        state.withLock { state in
            state.last += 1
            json.set("n", .integer(state.last))
            state.arrived.append((state.last, item.phone, .object(json)))
            if state.arrived.count > Self.most { state.arrived.removeFirst() }
        }
        feed.add(item.message)
    }
}
