import HTTP
import HTTP2
import Testing

@testable import Pushes

/// A connection without a network. The test decides what the service sends.
final class SimulatedTransport: PushTransport {
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
    /// Whether the requests that begin now are not written.
    var isBlocked = false
    /// Whether the credential is known to be valid: an answer arrived that the service gives only to an accepted
    /// sender.
    private(set) var isProven: Bool

    /// Creates a connection. If `isCautious`, the sender may open one stream before the first good answer.
    init(address: String, isCautious: Bool, took: @escaping (String) -> Void, opened: @escaping (String?) -> Void) {
        self.address = address
        self.took = took
        self.opened = opened
        isProven = !isCautious
    }

    var activeStreams: Int { streams.count }
    var freeStreams: Int { state == .open ? max(0, peerMaxConcurrentStreams - streams.count) : 0 }
    /// Whether a PING is unanswered and nothing has arrived since.
    private(set) var isDoubted = false
    /// Whether a correct sender would send another push on it.
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

    /// The stream numbers of the pushes in flight, in order.
    var underway: [Int32] { streams.keys.sorted() }

    func id(of number: Int32) -> String? { streams[number]?.id }

    func answer(_ number: Int32, _ response: Response) {
        guard let stream = streams[number] else { return }
        isDoubted = false
        if [200, 410, 429].contains(response.status) { isProven = true }
        // As in HTTP/2, the answer comes before the end of the stream.
        stream.completion(.success(response))
        if streams.removeValue(forKey: number) != nil { freed() }
    }

    func reset(_ number: Int32, isRefused: Bool) {
        guard let stream = streams.removeValue(forKey: number) else { return }
        if !isRefused { isDoubted = false }
        stream.completion(.failure(isRefused ? .notSent("refused") : .ambiguous("reset")))
        freed()
    }

    /// Sends a GOAWAY. Streams above `last` were not processed.
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

    /// Lets the unanswered PINGs time out.
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
