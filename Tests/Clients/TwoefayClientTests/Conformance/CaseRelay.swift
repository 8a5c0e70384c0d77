import JSON
import Synchronization
import TwoefayClient
import World

/// A relay that gives the answers of a case, and a clock that only pauses move.
final class CaseRelay: Carrier, TimeSource {
    private struct State {
        var milliseconds: Int64
        var calls: [RelayCall] = []
    }

    private let one: ConformanceCase
    private let state: Mutex<State>

    init(_ one: ConformanceCase) {
        self.one = one
        state = Mutex(State(milliseconds: one.clock * 1000))
    }

    var calls: [RelayCall] { state.withLock { $0.calls } }

    func now() -> Timestamp { Timestamp(milliseconds: state.withLock { $0.milliseconds }) }

    func instant() -> Instant { Instant(nanoseconds: now().milliseconds * 1_000_000) }

    func pause(for duration: Duration) async { state.withLock { $0.milliseconds += duration.wholeMilliseconds } }

    func send(_ call: RelayCall) async throws(CallFault) -> RelayReply {
        let index = state.withLock { state in
            state.calls.append(call)
            return state.calls.count - 1
        }
        guard let answer = one.answer(index) else { throw .odd("the case has no answer \(index)") }
        guard let answer = answer.object else { throw .unanswered("the connection is lost") }
        var fields: [String: String] = [:]
        for member in answer["headers"]?.object?.members ?? [] { fields[member.name] = member.value.string }
        let number = call.body?["number"]?.string ?? ""
        let body = (answer["body"]?.string ?? "").replacing("{number}", with: number)
        return RelayReply(status: Int(answer["status"]?.integer ?? 0), fields: fields, body: Array(body.utf8))
    }

    /// The requests that were sent, with their keys numbered by first use; nil if two requests with one
    /// key differ.
    var requests: JSONValue? {
        var keys: [(key: String, bytes: [UInt8])] = []
        var requests: [JSONValue] = []
        for call in calls {
            var request: JSONObject = ["method": .string(call.method), "path": .string(call.path), "key": .null]
            var body = call.body
            if call.path == "/login" { body?.set("request", nil) }
            request["body"] = body.map { .object($0) } ?? .null
            if let key = call.fields["idempotency-key"] {
                let known = keys.firstIndex { $0.key == key }
                if let known, keys[known].bytes != call.bytes { return nil }
                if known == nil { keys.append((key, call.bytes)) }
                request["key"] = .integer(Int64((known ?? keys.count - 1) + 1))
            }
            requests.append(.object(request))
        }
        return .array(requests)
    }
}

/// Randomness whose blocks of 32 bytes are the `k` of a case. The keys of requests differ all the same.
struct CaseRandomness: Randomness {
    let k: [UInt8]?

    func fill(_ bytes: UnsafeMutableRawBufferPointer) {
        if let k, bytes.count == k.count { bytes.copyBytes(from: k) } else { SystemRandomness().fill(bytes) }
    }
}
