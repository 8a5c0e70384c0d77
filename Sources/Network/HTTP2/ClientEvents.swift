import CNghttp2
import EventLoop
import HTTP
import Log
import TLS
import World

/// The events of the connection, and the client's reactions to them.
extension HTTP2Client: TurnEndObserver {
    public func turnEnded() {
        flushAtTurnEnd = false
        connection.link?.flush()
    }
}

extension HTTP2Client: TransportOwner {
    func transportIsUp() {
        let session = Session(
            role: .client, headerBytes: options.responseHeaderBytes, headerCount: options.responseHeaderCount,
            scratch: buffers.session)
        connection.handshakeCompleted(with: session)
        session.submitSettings(
            [
                (NGHTTP2_SETTINGS_ENABLE_PUSH, 0),
                (NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, UInt32(options.responseHeaderBytes)),
            ])
        session.openWindow(1_048_576)
        connection.link?.flush()
    }

    func transportReceived(_ bytes: UnsafeRawBufferPointer) {
        guard let session else { return }
        let cost = cost(of: bytes)
        if cost > 0, !budget.charge(cost, now: loop.time.instant()) {
            log.warning("client.abuse", [.host: host])
            end("the server sent too many frames that carry no answer")
            return
        }
        guard session.receive(bytes) else {
            end("the server sent invalid frames")
            return
        }
        handleEvents()
    }

    private func end(_ failure: String) { connection.link?.end(.failed(.http2(failure))) }

    /// The abuse cost of these bytes. The first reset of each of our open streams is free: a server
    /// may reset all of them at once, for example when it lowers its limit. Every further reset is
    /// charged.
    private func cost(of bytes: UnsafeRawBufferPointer) -> Int {
        var (cost, at) = (0, 0)
        var reset: Set<Int32> = []
        while let head = scanner.next(bytes, &at) {
            let isFree =
                head.type == FrameScanner.Head.reset && streams[head.stream] != nil
                && reset.insert(head.stream).inserted
            if !isFree { cost += head.cost }
        }
        return cost
    }

    func transportOutput(_ output: inout [UInt8], enough: Int) {
        guard let session else { return }
        guard session.send(into: &output, enough: enough) else {
            output.removeAll()
            end("libnghttp2 could not make the next frame")
            return
        }
        handleEvents()
    }

    func transportIsDrained() -> Bool {
        if state == .goingAway, streams.isEmpty { return true }
        return session?.isFinished ?? false
    }

    func transportIsBlocked() {}

    func transportEnded(_ end: TransportEnd) {
        let reason: String
        switch end {
        case .finished: reason = goAwayReason ?? "closed"
        case .closed: reason = goAwayReason ?? "closed by the server"
        case .failed(let failure): reason = failure.description
        }
        switch connection.transportEnded() {
        case .none: break
        case .tearDown: tearDown(reason)
        case .fail(let attempt):
            // In TLS 1.3 the client's handshake is complete before the server checks our
            // certificate. The server's alert arrives at the first read.
            if case .failed(.tls(let failure)) = end {
                attempt.finish(.tls(failure.description))
            } else {
                attempt.finish(.closed(reason))
            }
        }
    }

    private func handleEvents() {
        let scratch = buffers.session
        var index = 0
        while index < scratch.events.count, connection.session != nil {
            handle(scratch.events[index], scratch)
            index += 1
        }
        scratch.clear()
        // An answer frees a stream for a waiting request.
        if waiting > 0 { submitWaiting() }
        guard capacityChanged else { return }
        capacityChanged = false
        onCapacity?()
    }

    private func handle(_ event: SessionEvent, _ scratch: SessionScratch) {
        switch event {
        case .headers(let id, let block): headers(id, scratch.take(block))
        case .data(let id, let range): data(id, scratch.inbound[range])
        case .ended(let id): ended(id)
        case .closed(let id, let code): closed(id, code)
        case .settings:
            settingsReceived += 1
            capacityChanged = true
            connection.settingsArrived()?.finish(nil)
        case .goAway(_, let code, let debug): wentAway(code, scratch.inbound[debug])
        case .pingAcknowledged(let payload): pings.removeValue(forKey: payload)?(.zero)
        case .sentData: budget.earn()
        case .settingsAcknowledged, .sentEnd, .sentReset, .refused, .malformed: break
        }
    }

    private func wentAway(_ code: UInt32, _ debug: ArraySlice<UInt8>) {
        let text = String(decoding: debug, as: UTF8.self)
        goAwayReason = "GOAWAY \(code)" + (text.isEmpty ? "" : ": \(text)")
        switch connection.goAwayArrived() {
        case .none: break
        case .end(let link): link.end(.finished)
        // nghttp2 closes the streams above the last processed one as refused. Those events come
        // next.
        case .failWaiting: failWaiting()
        }
    }

    private func headers(_ id: Int32, _ block: HeaderBlock) {
        guard let pending = streams[id], !block.isInterim else { return }
        guard block.fault == nil else {
            abandon(pending, "the answer's header is too large")
            return
        }
        // A second block holds trailers, which we do not use.
        if pending.head == nil { pending.head = block }
    }

    private func data(_ id: Int32, _ bytes: ArraySlice<UInt8>) {
        guard let pending = streams[id], !pending.isCompleted else { return }
        guard pending.body.count + bytes.count <= options.responseBytes else {
            abandon(pending, "the answer is too large")
            return
        }
        pending.body.append(contentsOf: bytes)
    }

    private func abandon(_ pending: PendingRequest, _ reason: String) {
        if let stream = pending.stream { session?.submitReset(stream, NGHTTP2_CANCEL) }
        pending.complete(.failure(.ambiguous(reason)), on: loop)
        flushSoon()
    }

    private func ended(_ id: Int32) {
        guard let pending = streams[id], !pending.isCompleted, let head = pending.head, let status = head.status else {
            return
        }
        budget.earn()
        let response = Response(status: status, fields: head.fields, body: pending.body)
        // The server answered before it read the whole body, so the rest is not sent.
        if !pending.isSent { session?.submitReset(id, NGHTTP2_CANCEL) }
        pending.complete(.success(response), on: loop)
    }

    private func closed(_ id: Int32, _ code: UInt32) {
        guard let pending = streams.removeValue(forKey: id) else { return }
        capacityChanged = true
        if code == NGHTTP2_REFUSED_STREAM.rawValue {
            pending.complete(.failure(.notSent(goAwayReason ?? "refused")), on: loop)
        } else {
            pending.complete(.failure(pending.failure("the stream ended with code \(code)")), on: loop)
        }
        if state == .goingAway, streams.isEmpty { flushSoon() }
    }
}
