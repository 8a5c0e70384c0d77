import HTTP
import HTTP2
import Testing

@testable import APNs

/// A connection without a network: what comes from the service is what the test says.
final class SimulatedTransport: APNsTransport {
    private struct Stream {
        let id: String
        let completion: (Result<Response, RequestFailure>) -> Void
        var isWritten = true
    }

    let address: String
    private var opened: ((String?) -> Void)?
    private let took: (String) -> Void
    private(set) var state = ClientState.connecting {
        didSet { if state != oldValue { onStateChange?(state) } }
    }
    var onStateChange: ((ClientState) -> Void)?
    var onCapacity: (() -> Void)?
    private(set) var goAwayReason: String?
    private(set) var peerMaxConcurrentStreams = 1
    private(set) var settingsReceived = 0
    private var streams: [Int32: Stream] = [:]
    private var lastStream: Int32 = -1
    private var pings: [(Duration?) -> Void] = []
    /// What is begun now stays here.
    var isBlocked = false
    /// An answer has come that only a known sender gets: the sender's credential is known to be good.
    private(set) var isProven: Bool

    /// `isCautious`: the sender may open one stream before the first good answer.
    init(address: String, isCautious: Bool, took: @escaping (String) -> Void, opened: @escaping (String?) -> Void) {
        self.address = address
        self.took = took
        self.opened = opened
        isProven = !isCautious
    }

    var activeStreams: Int { streams.count }
    var freeStreams: Int { state == .open ? max(0, peerMaxConcurrentStreams - streams.count) : 0 }
    /// It was asked whether it stands, and has said nothing since.
    private(set) var isDoubted = false
    /// Would a correct sender send something more on it?
    var hasRoom: Bool { freeStreams > 0 && (isProven || streams.isEmpty) }

    // MARK: The sender's side

    func begin(
        _ request: FormedRequest, of form: RequestForm,
        completion: @escaping (Result<Response, RequestFailure>) -> Void
    ) -> Int32? {
        guard freeStreams > 0 else { return nil }
        #expect(hasRoom, "one stream until the first good answer")
        lastStream += 2
        let id = request.fields.first { $0.name == "apns-id" }?.value ?? ""
        streams[lastStream] = Stream(id: id, completion: completion, isWritten: !isBlocked)
        took(id)
        return lastStream
    }

    func cancel(_ number: Int32) -> Bool {
        guard let stream = streams.removeValue(forKey: number) else { return true }
        freed()
        return stream.isWritten
    }

    func ping(_ completion: @escaping (Duration?) -> Void) {
        guard state == .open || state == .goingAway else { return completion(nil) }
        isDoubted = true
        pings.append(completion)
    }

    func retire() {
        guard state == .open || state == .connecting else { return }
        state = .goingAway
        if streams.isEmpty { close() }
    }

    func close() {
        guard state != .closed else { return }
        let wasConnecting = state == .connecting
        let left = streams.sorted { $0.key < $1.key }
        streams = [:]
        state = .closed
        for (_, stream) in left {
            stream.completion(.failure(stream.isWritten ? .ambiguous("closed") : .notSent("closed")))
        }
        let asked = pings
        pings = []
        for answer in asked { answer(nil) }
        if wasConnecting { came("closed") }
    }

    // MARK: The service's side

    func open(limit: Int) {
        guard state == .connecting else { return }
        peerMaxConcurrentStreams = limit
        state = .open
        came(nil)
    }

    private func came(_ failure: String?) {
        opened?(failure)
        opened = nil
    }

    func refuse() {
        guard state == .connecting else { return }
        state = .closed
        came("Connection refused")
    }

    func allow(_ limit: Int) {
        guard state == .open else { return }
        peerMaxConcurrentStreams = limit
        settingsReceived += 1
        onCapacity?()
    }

    /// The numbers of what is under way, in order.
    var underway: [Int32] { streams.keys.sorted() }

    func id(of number: Int32) -> String? { streams[number]?.id }

    func answer(_ number: Int32, _ response: Response) {
        guard let stream = streams[number] else { return }
        isDoubted = false
        if [200, 410, 429].contains(response.status) { isProven = true }
        // As with HTTP/2: the answer comes first, then the stream has ended.
        stream.completion(.success(response))
        if streams.removeValue(forKey: number) != nil { freed() }
    }

    func reset(_ number: Int32, isRefused: Bool) {
        guard let stream = streams.removeValue(forKey: number) else { return }
        if !isRefused { isDoubted = false }
        stream.completion(.failure(isRefused ? .notSent("refused") : .ambiguous("reset")))
        freed()
    }

    /// What is above `last` was not worked on.
    func goAway(last: Int32) {
        guard state == .open || state == .goingAway else { return }
        goAwayReason = "GOAWAY 0"
        state = .goingAway
        for number in underway where number > last { reset(number, isRefused: true) }
        if state == .goingAway, streams.isEmpty { close() }
    }

    func answerPings() {
        isDoubted = false
        let asked = pings
        pings = []
        for answer in asked { answer(.milliseconds(1)) }
    }

    /// The time for it is over.
    func failPings() {
        let asked = pings
        pings = []
        for answer in asked { answer(nil) }
    }

    private func freed() {
        if state == .goingAway, streams.isEmpty { return close() }
        onCapacity?()
    }
}
