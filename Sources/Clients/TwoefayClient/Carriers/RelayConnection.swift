import EventLoop
import HTTP
import HTTP2
import World

/// A connection to the relay, with a liveness check by PING.
///
/// A connection can fail without a sign, for example because a firewall dropped its state or the
/// other machine lost power. Requests on it would then wait until their deadline. The connection
/// therefore sends a PING in three cases: every 15 seconds while calls are under way, after an
/// ambiguous failure, and before a call after 15 idle seconds. If the PING gets no answer, the
/// connection is closed, and its calls can be repeated over another one.
///
/// Invariant: a connection lives until its last call has ended, even if no new calls use it. It
/// must be used on its loop only. Tested in `RelayConnectionTests.swift`.
final class RelayConnection {
    private let loop: EventLoop
    private let client: HTTP2Client
    /// The number of calls under way.
    private(set) var calls = 0
    /// The number of calls that this connection was given.
    private(set) var total = 0
    private var resets = 0
    private var beat: TimerID?
    private var isAsked = false
    /// The time of the last answer or PING answer from the relay.
    private var heard: Instant

    init(_ client: HTTP2Client, on loop: EventLoop) {
        self.client = client
        self.loop = loop
        heard = loop.time.instant()
    }

    /// Whether the connection accepts new calls.
    var isOpen: Bool { client.state == .open }

    /// Whether the relay allows another stream now.
    var isFree: Bool { isOpen && calls < client.peerMaxConcurrentStreams }

    /// Sends a request.
    ///
    /// - Parameter completion: called once, possibly before this function returns.
    func send(
        _ request: ClientRequest, deadline: Duration,
        completion: @escaping (Result<Response, RequestFailure>) -> Void
    ) -> HTTP2Client.Sent {
        calls += 1
        total += 1
        // After an idle period the connection may be dead. A PING now detects that early enough for
        // another attempt.
        if loop.time.instant() - heard >= Self.rest { ask() }
        listen()
        return client.send(request, deadline: deadline) { result in
            self.ended(result)
            completion(result)
        }
    }

    /// Gives up a call, which resets its stream. The relay ends connections with many resets, so the
    /// connection accepts no more calls before that: other calls must not pay for it.
    func giveUp(_ sent: HTTP2Client.Sent) {
        resets += 1
        client.giveUp(sent)
        if resets == Self.mostResets { client.retire() }
    }

    /// Closes the connection and ends its calls.
    func close() { client.close() }

    private func ended(_ result: Result<Response, RequestFailure>) {
        calls -= 1
        if calls == 0, let beat {
            loop.cancel(beat)
            self.beat = nil
        }
        switch result {
        case .success: heard = loop.time.instant()
        // A call that reached its deadline may have waited on a dead connection.
        case .failure(.ambiguous): ask()
        case .failure(.notSent): break
        }
    }

    private func listen() {
        guard beat == nil else { return }
        beat = loop.schedule(after: Self.rest) { [weak self] in
            guard let self else { return }
            beat = nil
            ask()
            listen()
        }
    }

    private func ask() {
        guard !isAsked, client.state == .open || client.state == .goingAway else { return }
        isAsked = true
        client.ping { [weak self] trip in
            guard let self else { return }
            isAsked = false
            if trip == nil { client.close() } else { heard = loop.time.instant() }
        }
    }

    /// The number of resets after which the connection accepts no more calls. The relay allows twice as
    /// many at once.
    private static let mostResets = 100
    /// The interval of the PINGs, and the idle time after which a call sends one first.
    private static let rest = Duration.seconds(15)
}
