import Foundation
import Synchronization
import TwoefayPhone

/// Enrolments in memory.
final class MemoryStorage: PhoneStorage {
    private let enrolments = Mutex<[String: [UInt8]]>([:])

    var stored: [String: [UInt8]] { enrolments.withLock { $0 } }

    func store(_ enrolment: Enrolment) throws { enrolments.withLock { $0[enrolment.id] = enrolment.stored } }
    func remove(_ id: String) throws { enrolments.withLock { $0[id] = nil } }
}

/// A clock of the phone that is wrong by an offset. Its pauses take a hundredth of their time.
final class SetClock: PhoneClock {
    private let system = SystemClock()
    private let state: Mutex<(offset: Int64, slept: [Int64])>

    init(offset: Int64 = 0) { state = Mutex((offset, [])) }

    /// The pauses so far, in milliseconds.
    var slept: [Int64] { state.withLock { $0.slept } }

    func now() -> Timestamp {
        Timestamp(milliseconds: system.now().milliseconds + state.withLock { $0.offset })
    }

    func monotonic() -> Int64 { system.monotonic() + state.withLock { $0.slept.reduce(0, +) } }

    func sleep(milliseconds: Int64) async {
        state.withLock { $0.slept.append(milliseconds) }
        await system.sleep(milliseconds: milliseconds / 100)
    }
}

/// A transport that loses the answers of some requests, after the relay has received them.
final class LossyTransport: Transport {
    private let inner: any Transport
    private let toLose: Mutex<[String]>
    private let breaks: Bool
    private let requests = Mutex<[RelayRequest]>([])

    /// - Parameter paths: the requests, such as `POST /verify`, whose answers are lost: as often as
    ///   each is named.
    /// - Parameter breaks: whether nothing is sent any more after the first loss.
    init(_ inner: any Transport, losing paths: [String], thenBreaks breaks: Bool = false) {
        self.inner = inner
        self.breaks = breaks
        toLose = Mutex(paths)
    }

    var sent: [RelayRequest] { requests.withLock { $0 } }

    func send(
        _ request: RelayRequest, to server: ServerTrust, isFresh: Bool
    ) async throws(TransportFailure) -> RelayReply {
        requests.withLock { $0.append(request) }
        if breaks, toLose.withLock(\.isEmpty) { throw .untrusted("broken") }
        let reply = try await inner.send(request, to: server, isFresh: isFresh)
        // A request for a nonce is not the one that is meant.
        let isLost =
            reply.status != 401
            && toLose.withLock { paths in
                paths.firstIndex(of: "\(request.method) \(request.path)").map { paths.remove(at: $0) } != nil
            }
        if isLost { throw .noAnswer("lost") }
        return reply
    }
}

/// A relay that answers with what the test has prepared.
final class ScriptedRelay: Transport {
    typealias Step = @Sendable (RelayRequest, ServerTrust) throws -> RelayReply

    private let steps = Mutex<[Step]>([])
    private let requests = Mutex<[(request: RelayRequest, server: ServerTrust)]>([])

    var asked: [(request: RelayRequest, server: ServerTrust)] { requests.withLock { $0 } }

    func answer(_ step: @escaping Step) { steps.withLock { $0.append(step) } }

    func answer(_ status: Int, _ body: JSONObject, _ fields: [String: String] = [:], certificate: [UInt8] = []) {
        answer { _, _ in RelayReply(status: status, fields: fields, body: body.bytes, certificate: certificate) }
    }

    func send(
        _ request: RelayRequest, to server: ServerTrust, isFresh: Bool
    ) async throws(TransportFailure) -> RelayReply {
        requests.withLock { $0.append((request, server)) }
        guard let step = steps.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else {
            throw .notSent("no more answers")
        }
        do {
            return try step(request, server)
        } catch let failure as TransportFailure {
            throw failure
        } catch {
            throw .notSent("\(error)")
        }
    }
}
