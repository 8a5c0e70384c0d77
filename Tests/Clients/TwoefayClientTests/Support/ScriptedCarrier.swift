import JSON
import Synchronization
import TestSupport
import TwoefayClient

/// A relay with scripted answers, and a clock that only pauses move.
final class ScriptedCarrier: Carrier {
    private struct State {
        var lines: [Result<RelayReply, CallFault>]
        var calls: [RelayCall] = []
        var pauses: [Duration] = []
    }

    let time = TestTime()
    private let state: Mutex<State>

    init(lines: [Result<RelayReply, CallFault>]) { state = Mutex(State(lines: lines)) }

    convenience init(_ lines: Result<RelayReply, CallFault>...) { self.init(lines: lines) }

    var calls: [RelayCall] { state.withLock { $0.calls } }
    var pauses: [Duration] { state.withLock { $0.pauses } }

    func client(_ retries: RetryPolicy = RetryPolicy()) -> RelayClient {
        RelayClient(self, retries: retries, time: time, randomness: SeededRandomness(seed: 1))
    }

    func send(_ call: RelayCall) async throws(CallFault) -> RelayReply {
        let line = state.withLock { state in
            state.calls.append(call)
            return state.lines.isEmpty ? .failure(.odd("the script is over")) : state.lines.removeFirst()
        }
        return try line.get()
    }

    func pause(for duration: Duration) async {
        state.withLock { $0.pauses.append(duration) }
        time.advance(by: duration)
    }
}

extension Result where Success == RelayReply, Failure == CallFault {
    static func reply(_ status: Int, _ body: JSONObject? = nil, fields: [String: String] = [:]) -> Self {
        guard var body else { return .success(RelayReply(status: status, fields: fields)) }
        let isProblem = status >= 400
        if isProblem { body["status"] = .integer(Int64(status)) }
        let type = ["content-type": isProblem ? "application/problem+json" : "application/json"]
        return .success(
            RelayReply(status: status, fields: type.merging(fields) { $1 }, body: JSONWriter.write(body)))
    }

    /// Returns a refusal in the relay's format.
    static func problem(_ status: Int, _ code: String, retryAfter: Int? = nil) -> Self {
        .reply(
            status, ["code": .string(code), "detail": "for a test"],
            fields: retryAfter.map { ["Retry-After": String($0)] } ?? [:])
    }

    static let asked = reply(
        201,
        [
            "login": "verified", "challenge": "c1", "number": "47", "factor": "push",
            "expires_at": "2026-11-21T10:09:47.940Z",
        ])
    static let waiting = reply(200, ["login": "wait", "challenge": "c1", "steps": []])
    static let denied = reply(200, ["login": "failure", "challenge": "c1", "steps": [], "reason": "denied"])
}
