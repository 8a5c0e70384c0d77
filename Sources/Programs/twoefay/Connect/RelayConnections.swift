import Bytes
import EventLoop
import HTTP
import TwoefayClient

/// The sidecar's connections to the relay, all with the same certificate. They are used on their
/// loop only.
///
/// The relay allows 100 streams on a connection, and a held request occupies one for up to a minute.
/// When all connections are full, another one is opened, which is closed when it is idle.
///
/// A caller that leaves resets its stream, and the relay ends connections with many resets. So a
/// connection takes no more requests after `resets` of them: other callers must not pay for that.
///
/// Invariant: a connection lives until its last request has ended, also after `replace`.
final class RelayConnections {
    struct Access: Sendable {
        let relay: WebAddress
        let authority: [UInt8]
        let certificate: [UInt8]
        let key: Secret
    }

    private final class Line {
        let transport: HTTP2Carrier
        var requests = 0
        var resets = 0

        var isFree: Bool { requests < RelayConnections.streams && resets < RelayConnections.resets }

        init(_ transport: HTTP2Carrier) { self.transport = transport }
    }

    /// The number of streams that the relay allows on a connection.
    static let streams = 100
    /// The number of resets after which a connection takes no more requests; the relay allows twice as
    /// many at once.
    static let resets = 100

    private let loop: EventLoop
    private var access: Access
    private var lines: [Line] = []

    init(_ access: Access, on loop: EventLoop) throws(CallFault) {
        self.access = access
        self.loop = loop
        lines = [try open()]
    }

    /// Uses another certificate for requests from now on. Throws if it cannot be used, and then
    /// changes nothing.
    func replace(by access: Access) throws(CallFault) {
        let former = self.access
        self.access = access
        do throws(CallFault) {
            lines = [try open()]
        } catch {
            self.access = former
            throw error
        }
    }

    func send(_ request: Request, deadline: Duration) async throws(CallFault) -> Response {
        let line = try free()
        line.requests += 1
        defer {
            line.requests -= 1
            if line.requests == 0, lines.count > 1 { lines.removeAll { $0 === line } }
        }
        do throws(CallFault) {
            return try await line.transport.send(
                request.method, request.path + (request.query.map { "?\($0)" } ?? ""),
                fields: PassedFields.ofRequest(request.fields), body: request.body, deadline: deadline)
        } catch {
            if case .cancelled = error { line.resets += 1 }
            throw error
        }
    }

    /// Pauses before another attempt, until the task is cancelled.
    func pause(for duration: Duration) async { await lines.first?.transport.pause(for: duration) }

    private func free() throws(CallFault) -> Line {
        if let line = lines.first(where: \.isFree) { return line }
        // Those that are idle all the same have had their resets.
        lines.removeAll { $0.requests == 0 }
        let line = try open()
        lines.append(line)
        return line
    }

    private func open() throws(CallFault) -> Line {
        Line(
            try HTTP2Carrier(
                loop: loop, relay: access.relay, authority: access.authority, certificate: access.certificate,
                key: access.key))
    }
}
