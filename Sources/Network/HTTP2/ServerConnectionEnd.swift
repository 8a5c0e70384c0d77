import CNghttp2
import EventLoop
import HTTP
import Log
import World

/// The ends of a server's connection: by time, by an error of the client, or by its abuse budget.
extension ServerConnection {
    // MARK: Time

    func notePending() {
        let pending = link.isBlocked || unsent > 0
        if clock.pending(sent: pending ? link.sent : nil, now: loop.now) {
            check(by: loop.now + limits.write)
        }
    }

    /// Makes sure that `check` runs by then.
    func check(by moment: Instant) {
        guard state.isLive, let timer, timer.due > moment else { return }
        loop.cancel(timer.id)
        schedule(moment)
    }

    private func schedule(_ moment: Instant) {
        let id = loop.schedule(at: moment) { [weak self] in
            self?.timer = nil
            self?.check()
        }
        timer = (id, moment)
    }

    func check() {
        guard state.isLive else { return }
        let now = loop.time.instant()
        let dropsEnd = discardDeadline(now)
        var oldest = streams.values.lazy.filter(\.isAwaited).map(\.began).min()
        if let since = inspector.incompleteSince { oldest = min(since, oldest ?? since) }
        switch clock.verdict(now, sent: link.sent, oldestRequest: oldest, isIdle: streams.isEmpty) {
        case .fine(let next):
            if let timer { loop.cancel(timer.id) }
            schedule(min(next, dropsEnd ?? next))
        case .overdue(let what): end(what)
        }
    }

    /// Resets the streams that were answered, but still receive their request after its time limit.
    /// Returns the earliest time limit of the others.
    private func discardDeadline(_ now: Instant) -> Instant? {
        var next: Instant?
        for stream in streams.values where stream.isDropping {
            let limit = requestLimit(stream.began)
            if limit <= now {
                resetAnswered(stream)
                flushSoon()
            } else {
                next = min(limit, next ?? limit)
            }
        }
        return next
    }

    private func end(_ what: ConnectionClock.Overdue) {
        log.debug("connection.overdue", [.remote: remote, .reason: "\(what)"])
        switch what {
        case .handshake:
            if state.isAwaitingProxyHeader { server.proxies.refuse(remote, .late, at: loop.now, log) }
            link.end(.finished)
        case .write: link.reset()
        case .settings: terminate(NGHTTP2_SETTINGS_TIMEOUT)
        case .request:
            if case .http1(let session)? = state.receivingSession {
                let now = loop.now
                session.refuse(.late, now)
                handleEvents(now)
            }
            terminate(NGHTTP2_ENHANCE_YOUR_CALM)
        case .idle: terminate(NGHTTP2_NO_ERROR)
        }
    }

    // MARK: The end

    /// Ends the connection, because its peer has used up its abuse budget.
    func calm() {
        if terminate(NGHTTP2_ENHANCE_YOUR_CALM) { server.noteAbuse(by: remote) }
    }

    /// Ends the connection, because the client's frames have an error.
    func end(_ violation: FrameInspector.Violation) {
        log.debug("connection.malformed", [.remote: remote, .reason: "\(violation)"])
        switch violation {
        case .protocolError: terminate(NGHTTP2_PROTOCOL_ERROR)
        case .streamClosed: terminate(NGHTTP2_STREAM_CLOSED)
        case .headerBlock: calm()
        }
    }

    /// Sends a GOAWAY with this error code. Returns false if the connection ends already.
    @discardableResult
    private func terminate(_ code: nghttp2_error_code) -> Bool {
        guard let session = state.close() else { return false }
        session.terminate(code)
        flushSoon()
        // A peer that does not read the GOAWAY is reset after two seconds.
        if let timer { loop.cancel(timer.id) }
        let moment = loop.time.instant() + .seconds(2)
        let id = loop.schedule(at: moment) { [weak self] in
            self?.timer = nil
            self?.link.reset()
        }
        timer = (id, moment)
        return true
    }

    func abort() { link.end(.finished) }
}
