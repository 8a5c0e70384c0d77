import EventLoop
import HTTP
import HTTP2
import World

/// One connection to the relay, and whether there is still somebody at its other end. A connection can die without a word:
/// a firewall has forgotten it, a machine has lost its power. While calls wait there, and where an answer has failed to come,
/// the relay is asked, and has to say that it is there, or the line is closed: what waits may be repeated over another.
///
/// Lives on its loop. It stands until the last of its calls has ended, also where no new ones are sent over it.
final class RelayConnection {
    private let loop: EventLoop
    private let client: HTTP2Client
    private var calls = 0
    private var beat: TimerID?
    private var isAsked = false
    /// The relay last said something.
    private var heard: Instant

    init(_ client: HTTP2Client, on loop: EventLoop) {
        self.client = client
        self.loop = loop
        heard = loop.time.instant()
    }

    /// Takes new calls.
    var isOpen: Bool { client.state == .open }

    /// `completion` is called once, perhaps before this returns.
    func send(
        _ request: ClientRequest, deadline: Duration,
        completion: @escaping (Result<Response, RequestFailure>) -> Void
    ) -> HTTP2Client.Sent {
        calls += 1
        // After a long rest nobody knows: asked now, what is found dead leaves time for another try.
        if loop.time.instant() - heard >= Self.rest { ask() }
        listen()
        return client.send(request, deadline: deadline) { result in
            self.ended(result)
            completion(result)
        }
    }

    func giveUp(_ sent: HTTP2Client.Sent) { client.giveUp(sent) }

    /// What is under way ends here.
    func close() { client.close() }

    private func ended(_ result: Result<Response, RequestFailure>) {
        calls -= 1
        if calls == 0, let beat {
            loop.cancel(beat)
            self.beat = nil
        }
        switch result {
        case .success: heard = loop.time.instant()
        // Whoever gave up may have waited in vain, too.
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

    private static let rest = Duration.seconds(15)
}
