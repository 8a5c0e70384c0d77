import CNghttp2
import EventLoop
import Log
import World

/// How a server's connection comes to its end: in time, in order, or because the peer asks for too much.
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
        guard link.isOpen, let timer, timer.due > moment else { return }
        loop.cancel(timer.id)
        schedule(moment)
    }

    private func schedule(_ moment: Instant) {
        let id = loop.schedule(after: moment - loop.time.instant()) { [weak self] in
            self?.timer = nil
            self?.check()
        }
        timer = (id, moment)
    }

    func check() {
        guard link.isOpen else { return }
        let now = loop.time.instant()
        let oldest = streams.values.lazy.filter { !$0.isWhole }.map(\.began).min()
        switch clock.verdict(now, sent: link.sent, oldestRequest: oldest, isIdle: streams.isEmpty) {
        case .fine(let next):
            if let timer { loop.cancel(timer.id) }
            schedule(next)
        case .overdue(let what): end(what)
        }
    }

    private func end(_ what: ConnectionClock.Overdue) {
        log.debug("connection.overdue", [.remote: remote, .reason: "\(what)"])
        switch what {
        case .handshake:
            if link.isIntroducing { server.proxies.refuse(remote, .late, at: loop.now, log) }
            link.end(.finished)
        case .write: link.reset()
        case .settings: terminate(NGHTTP2_SETTINGS_TIMEOUT)
        case .request: terminate(NGHTTP2_ENHANCE_YOUR_CALM)
        case .idle: terminate(NGHTTP2_NO_ERROR)
        }
    }

    // MARK: The end

    /// The peer costs more than its requests are worth.
    func calm() {
        guard !isTerminated else { return }
        log.notice("connection.abuse", [.remote: remote])
        terminate(NGHTTP2_ENHANCE_YOUR_CALM)
    }

    private func terminate(_ code: nghttp2_error_code) {
        guard let session, !isTerminated else { return }
        isTerminated = true
        session.terminate(code)
        flushSoon()
        // A peer that does not take the GOAWAY is not waited for.
        if let timer { loop.cancel(timer.id) }
        let moment = loop.time.instant() + .seconds(2)
        let id = loop.schedule(after: .seconds(2)) { [weak self] in
            self?.timer = nil
            self?.link.reset()
        }
        timer = (id, moment)
    }

    /// Says that nothing new is taken, gives the client a round trip in which to hear it, and lets its streams end; those
    /// that are held end now.
    func drain() {
        guard !isDraining else { return }
        isDraining = true
        if session != nil { beginDrain() } else { link.end(.finished) }
    }

    func beginDrain() {
        guard let session else { return }
        session.submitShutdownNotice()
        let payload: UInt64 = 0x7477_6f65_6661_7921
        drainPing = payload
        session.submitPing(payload)
        flushSoon()
        for stream in streams.values { stream.exchange?.holdNoMore() }
        loop.schedule(after: .seconds(5)) { [weak self] in self?.finalGoAway() }
    }

    func finalGoAway() {
        guard let session, drainPing != nil else { return }
        drainPing = nil
        session.submitGoAway(NGHTTP2_NO_ERROR.rawValue, lastStream: min(lastStream, session.lastProcessed))
        flushSoon()
    }

    func abort() { link.end(.finished) }
}
