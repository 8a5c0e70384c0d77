import JSON
import Synchronization
import TestSupport
import TwoefayClient

/// A relay with scripted answers, and a clock that only pauses move.
final class ScriptedTransport: RelayTransport {
    private struct State {
        var lines: [Result<RelayReply, CallFault>]
        var calls: [RelayCall] = []
        var pauses: [Duration] = []
    }

    let time = TestTime()
    private let state: Mutex<State>

    init(_ lines: Result<RelayReply, CallFault>...) { state = Mutex(State(lines: lines)) }

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
        .success(RelayReply(status: status, fields: fields, body: body.map { JSONWriter.write($0) } ?? []))
    }

    /// Returns a refusal in the relay's format.
    static func problem(_ status: Int, _ code: String, retryAfter: Int? = nil) -> Self {
        .reply(
            status, ["code": .string(code), "detail": "for a test", "status": .integer(Int64(status))],
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
