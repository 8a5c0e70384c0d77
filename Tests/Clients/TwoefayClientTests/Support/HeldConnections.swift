import Crypto
import EventLoop
import HTTP
import HTTP2
import TestSupport
import TwoefayClient
import World

extension FakeRelay {
    /// Returns the carrier of a website that this relay knows.
    func carrier(
        on loop: EventLoop, to address: WebAddress, mostConnections: Int = HTTP2Carrier.usualConnections
    ) throws -> HTTP2Carrier {
        let issued = try websites.issueClient(uri: "twoefay:website:shop", days: 1, at: SystemTime().now())
        return try HTTP2Carrier(
            loop: loop, relay: address, authority: try authority.certificatePEM(),
            certificate: try issued.certificatePEM(), key: try issued.keyPEM(), mostConnections: mostConnections)
    }
}

/// Connections of a relay whose requests control them. `/held` is answered after a `/release` on
/// any of them, `/leave` sends GOAWAY on its connection, and `/silence` ends all output on its
/// connection.
final class HeldConnections: ServerController {
    /// Events such as `held 1`, with the number of the connection.
    private let continuation: AsyncStream<String>.Continuation
    private var all: [Kept] = []

    init(_ continuation: AsyncStream<String>.Continuation) { self.continuation = continuation }

    func admit(_ number: Int) -> Admission { .serve }

    func opened(_ connection: ServerConnection) -> any ConnectionController {
        let kept = Kept(connection, number: all.count + 1, self)
        all.append(kept)
        return kept
    }

    private func release() {
        for kept in all { kept.release() }
    }

    private final class Kept: ConnectionController {
        private let connection: ServerConnection
        private let number: Int
        private let continuation: AsyncStream<String>.Continuation
        private weak var keeper: HeldConnections?
        private var held: [Int32] = []
        private var isSilent = false

        init(_ connection: ServerConnection, number: Int, _ keeper: HeldConnections) {
            self.connection = connection
            self.number = number
            self.keeper = keeper
            continuation = keeper.continuation
        }

        func handle(_ request: Request, stream: Int32) -> Reply? {
            switch request.path {
            case "/held":
                held.append(stream)
                continuation.yield("held \(number)")
                return nil
            case "/leave": connection.goAway(lastStream: stream)
            case "/silence":
                isSilent = true
                connection.freeze()
                continuation.yield("silent \(number)")
                return nil
            case "/release": keeper?.release()
            default: break
            }
            return .now(Response(status: 200))
        }

        func release() {
            for stream in held { connection.answer(stream, Response(status: 200 + number)) }
            if isSilent { connection.cut() }
        }

        func closed(stream: Int32) {
            if held.contains(stream) { continuation.yield("closed \(number)") }
        }

        func ended() { continuation.yield("ended \(number)") }
    }
}
