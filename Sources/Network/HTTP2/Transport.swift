import EventLoop
import Glibc
import TLS

/// The reason why a connection ended.
enum TransportEnd: Sendable {
    /// We ended it.
    case finished
    /// The peer closed it.
    case closed
    case failed(TLSFailure)
}

/// The protocol above a transport.
protocol TransportOwner: AnyObject {
    /// The first byte of a client's handshake has come. The owner must call `beginHandshake`; until
    /// then the connection has no TLS session.
    func transportHasFirstByte()
    /// TLS is complete (or the plain connection is up).
    func transportIsUp()
    /// The bytes are valid only during the call.
    func transportReceived(_ bytes: UnsafeRawBufferPointer)
    /// The peer has changed its TLS keys `count` times since the last call.
    func transportUpdatedKeys(_ count: Int)
    /// Appends bytes to send, about `enough` of them.
    func transportOutput(_ output: inout [UInt8], enough: Int)
    /// All bytes from `transportOutput` were written to the socket. Returns true if the transport
    /// can close.
    func transportIsDrained() -> Bool
    /// The socket accepts no more bytes at the moment.
    func transportIsBlocked()
    /// The last call. The descriptor is closed.
    func transportEnded(_ end: TransportEnd)
}

extension TransportOwner {
    /// Does nothing: a client's transport begins its handshake itself.
    func transportHasFirstByte() {}
    func transportUpdatedKeys(_ count: Int) {}
}

/// The buffers that the connections of one loop share. A connection uses them within one turn only.
final class SharedBuffers {
    let input = UnsafeMutableRawBufferPointer.allocate(byteCount: 32_768, alignment: 16)
    var output: [UInt8] = []
    let session = SessionScratch()

    init() { output.reserveCapacity(40_960) }
    deinit { input.deallocate() }
}

/// A socket with optional TLS as an asynchronous byte stream, on one loop.
///
/// Purpose: the owner gets bytes and gives bytes; the transport handles TLS, partial writes and the
/// end. A server's connection goes through introduction (PROXY header), silent, handshake, up and
/// lingering.
///
/// Invariant: it does not read while the peer does not take its output. So the memory that a peer
/// can occupy is bounded by one read and one write. Each turn reads and writes a limited amount, so
/// that other connections get their turns.
///
/// Risk: TLS may need to write in order to read, and the reverse, so the interest in events follows
/// `readNeedsWrite` and `writeNeedsRead`. Bytes that OpenSSL has buffered cause no further event of
/// the socket (`comeBack`). A close with unread bytes makes the kernel send a reset, which destroys
/// output on its way; so the transport lingers. After each call to the owner it checks its state,
/// because the owner may have ended it. Tests: `RoundTripTests`, `ServerTests`, `KeyUpdateTests`,
/// `ProxiedConnectionTests`.
final class Transport {
    typealias Introduced = (Result<ProxyHeader, ProxyHeader.Fault>) -> Void

    private enum State {
        /// Waits for the PROXY header of a balancer.
        case introduction
        /// No byte of a handshake has come, or its turn has not come.
        case silent
        case handshake
        case up
        /// Everything is sent. Waits until the peer has read it, because a close with unread bytes
        /// would send a reset.
        case lingering
        /// The socket stays open, but is neither read nor written.
        case frozen
        case ended
    }

    /// About one TLS record.
    private static let enough = 16_384

    let fd: Int32
    private let loop: EventLoop
    private var tls: TLSSession?
    /// For a server: the TLS session is made when the handshake begins, so that a silent connection
    /// costs little memory.
    private let context: TLSServerContext?
    private let buffers: SharedBuffers
    private weak var owner: (any TransportOwner)?
    private var state = State.handshake
    /// The reader of the PROXY header; nil if none is expected or it has been read.
    private var introduction: (reading: ProxyHeaderReader, done: Introduced)?
    private var watch: DescriptorWatcher?
    private var linger: TimerID?
    /// The bytes that the socket did not take. TLS must get the same bytes again.
    private var leftover: [UInt8] = []
    private var leftoverStart = 0
    /// When TLS changes its keys, a read may have to write first, and a write to read.
    private var readNeedsWrite = false
    private var writeNeedsRead = false
    /// The number of key updates reported to the owner.
    private var keyUpdates = 0
    private var isFlushing = false
    private var again = false
    /// The number of bytes written to the socket so far, by which a stalled peer is detected.
    private(set) var sent: UInt64 = 0

    init(
        loop: EventLoop, fd: Int32, tls: TLSSession?, context: TLSServerContext? = nil, buffers: SharedBuffers
    ) {
        self.context = context
        self.loop = loop
        self.fd = fd
        self.tls = tls
        self.buffers = buffers
    }

    deinit {
        guard state != .ended else { return }
        watch?.cancel()
        close(fd)
    }

    var hasSession: Bool { tls != nil }
    var isBlocked: Bool { leftoverStart < leftover.count }
    private var isOpen: Bool { state == .introduction || state == .silent || state == .handshake || state == .up }
    var peer: PeerCertificate? { tls?.peer }
    var tlsVersion: String? { tls?.version }

    /// Starts reading.
    /// - Parameter introduced: called with the result of the PROXY header; nil if none is expected.
    ///   After a fault the connection ends.
    func start(owner: any TransportOwner, introduced: Introduced? = nil) throws(SystemFailure) {
        self.owner = owner
        watch = try loop.watch(fd: fd, .read) { [weak self] in self?.ready($0) }
        if let introduced {
            introduction = (ProxyHeaderReader(), introduced)
            state = .introduction
            introduce()
        } else {
            begin()
        }
    }

    private func introduce() {
        guard let progress = introduction?.reading.read(from: fd) else { return }
        switch progress {
        case .incomplete: break
        case .whole(let header):
            introduction?.done(.success(header))
            introduction = nil
            // The caller may have been refused.
            guard state == .introduction else { return }
            state = .handshake
            begin()
        case .closed: end(.closed)
        case .refused(let fault):
            introduction?.done(.failure(fault))
            end(.finished)
        case .failed(let failure): end(.failed(failure))
        }
    }

    private func begin() {
        if context != nil {
            state = .silent
        } else if tls == nil {
            state = .up
            owner?.transportIsUp()
        } else {
            handshake()
        }
    }

    /// Reacts to the first byte, or to the end of the peer. It takes no byte from the socket.
    private func listen(_ readiness: Readiness) {
        // A client that gives up before its turn must not cost its source a handshake.
        guard readiness.isDisjoint(with: [.hangUp, .failed]) else { return end(.closed) }
        watch?.change(.hangUp)
        owner?.transportHasFirstByte()
    }

    func beginHandshake() {
        guard state == .silent, let context else { return }
        do throws(TLSFailure) {
            tls = try TLSSession(server: context, fd: fd)
        } catch {
            end(.failed(error))
            return
        }
        state = .handshake
        watch?.change(.read)
        handshake()
    }

    /// Instead of `start`: the transport is frozen from the beginning.
    func stand(owner: any TransportOwner) {
        self.owner = owner
        freeze()
    }

    /// Stops reading and writing, and keeps the socket open until the end.
    func freeze() {
        guard isOpen else { return }
        state = .frozen
        watch?.cancel()
        watch = nil
    }

    private func ready(_ readiness: Readiness) {
        switch state {
        case .introduction: introduce()
        case .silent: listen(readiness)
        case .handshake: handshake()
        case .up:
            if readiness.contains(.write) || writeNeedsRead { flush() }
            if state == .up, !isBlocked || readNeedsWrite { receive() }
            // It does not read, but was told of a hang-up: both directions are closed.
            if state == .up, isBlocked, !readiness.isDisjoint(with: [.hangUp, .failed]) { end(.closed) }
        case .lingering: drain()
        case .frozen, .ended: break
        }
    }

    private func handshake() {
        guard let tls else { return }
        switch tls.handshake() {
        case .complete:
            state = .up
            setInterest()
            owner?.transportIsUp()
            // Bytes behind the handshake may be in TLS already.
            if state == .up { receive() }
        case .incomplete(let interest): watch?.change(interest)
        case .failed(let failure): end(.failed(failure))
        }
    }

    // MARK: In

    private func receive() {
        // A limited number of reads, so that other connections get their turns.
        for _ in 0..<8 {
            let outcome = read()
            if let tls, tls.keyUpdates != keyUpdates {
                let count = tls.keyUpdates - keyUpdates
                keyUpdates = tls.keyUpdates
                owner?.transportUpdatedKeys(count)
                guard state == .up else { return }
            }
            switch outcome {
            case .bytes(let count):
                readNeedsWrite = false
                owner?.transportReceived(UnsafeRawBufferPointer(rebasing: buffers.input[..<count]))
                guard state == .up else { return }
                let mayHoldMore = tls?.hasPending ?? (count == buffers.input.count)
                if mayHoldMore, !isBlocked { continue }
                flush()
                return
            case .incomplete(let interest):
                readNeedsWrite = interest.contains(.write)
                flush()
                return
            case .closed:
                end(.closed)
                return
            case .failed(let failure):
                end(.failed(failure))
                return
            }
        }
        flush()
        comeBack()
    }

    private func read() -> TLSSession.Read {
        if let tls { return tls.read(into: buffers.input) }
        let count = recv(fd, buffers.input.baseAddress, buffers.input.count, 0)
        if count > 0 { return .bytes(count) }
        if count == 0 { return .closed }
        if errno == EAGAIN || errno == EINTR { return .incomplete(.read) }
        return .failed(TLSFailure("recv", [String(cString: strerror(errno))]))
    }

    /// Reads again in a later turn, because the socket will not report bytes that TLS has buffered
    /// already.
    private func comeBack() {
        guard !again else { return }
        again = true
        loop.schedule(after: .zero) { [weak self] in
            guard let self else { return }
            again = false
            if state == .up, !isBlocked { receive() }
        }
    }

    // MARK: Out

    /// Writes the owner's output, as far as the socket takes it.
    func flush() {
        // The owner may call this from within a flush.
        guard state == .up, !isFlushing else { return }
        isFlushing = true
        let finished = writeAll()
        isFlushing = false
        guard state == .up else { return }
        if finished { finish() } else { setInterest() }
    }

    private func writeAll() -> Bool {
        writeNeedsRead = false
        if isBlocked {
            guard writeLeftover() else { return false }
            // Reading was paused while output was blocked.
            comeBack()
        }
        for _ in 0..<16 {
            buffers.output.removeAll(keepingCapacity: buffers.output.capacity <= 131_072)
            owner?.transportOutput(&buffers.output, enough: Self.enough)
            guard state == .up else { return false }
            if buffers.output.isEmpty { return owner?.transportIsDrained() ?? true }
            guard writeOutput() else { return false }
        }
        // More than a quarter of a megabyte was written at once, so other connections come first.
        loop.schedule(after: .zero) { [weak self] in self?.flush() }
        return false
    }

    private func writeLeftover() -> Bool {
        while leftoverStart < leftover.count {
            let written = leftover.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[leftoverStart...])) }
            guard let written else { return false }
            leftoverStart += written
        }
        leftover = []
        leftoverStart = 0
        return true
    }

    private func writeOutput() -> Bool {
        var start = 0
        while start < buffers.output.count {
            let written = buffers.output.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[start...])) }
            guard let written else {
                if state == .up {
                    leftover = Array(buffers.output[start...])
                    leftoverStart = 0
                    owner?.transportIsBlocked()
                }
                return false
            }
            start += written
        }
        return true
    }

    /// Writes bytes. Returns nil if the socket takes no more now, or the connection has failed.
    private func write(_ bytes: UnsafeRawBufferPointer) -> Int? {
        if let tls {
            switch tls.write(bytes) {
            case .bytes(let count):
                sent += UInt64(count)
                return count
            case .incomplete(let interest):
                writeNeedsRead = interest.contains(.read)
                return nil
            case .failed(let failure):
                end(.failed(failure))
                return nil
            }
        }
        let count = send(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        if count >= 0 {
            sent += UInt64(count)
            return count
        }
        if errno != EAGAIN && errno != EINTR { end(.failed(TLSFailure("send", [String(cString: strerror(errno))]))) }
        return nil
    }

    private func setInterest() {
        var interest: Interest = []
        if !isBlocked || writeNeedsRead { interest.insert(.read) }
        if isBlocked && !writeNeedsRead || readNeedsWrite { interest.insert(.write) }
        watch?.change(interest)
    }

    // MARK: The end

    /// Ends our side, because there is nothing more to send. The peer can read all of it before the
    /// descriptor is closed.
    private func finish() {
        state = .lingering
        tls?.shutdown()
        Glibc.shutdown(fd, Int32(SHUT_WR))
        watch?.change(.read)
        linger = loop.schedule(after: .seconds(1)) { [weak self] in
            self?.linger = nil
            self?.end(.finished)
        }
    }

    private func drain() {
        for _ in 0..<8 {
            let count = recv(fd, buffers.input.baseAddress, buffers.input.count, 0)
            if count > 0 { continue }
            if count < 0, errno == EAGAIN || errno == EINTR { return }
            end(.finished)
            return
        }
    }

    /// Resets the connection of a peer that does not read. Otherwise the kernel would keep trying
    /// to send. Nothing is sent before.
    func reset() {
        guard state != .ended else { return }
        Socket.setReset(fd)
        state = .frozen
        end(.finished)
    }

    func end(_ reason: TransportEnd) {
        guard state != .ended else { return }
        if state == .up { tls?.shutdown() }
        state = .ended
        watch?.cancel()
        watch = nil
        if let linger { loop.cancel(linger) }
        linger = nil
        close(fd)
        leftover = []
        owner?.transportEnded(reason)
    }
}
