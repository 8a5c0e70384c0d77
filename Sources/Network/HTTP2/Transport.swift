import EventLoop
import Glibc
import TLS

/// Why a connection is no more.
enum TransportEnd: Sendable {
    /// We ended it.
    case finished
    /// The peer closed it.
    case closed
    case failed(TLSFailure)
}

/// The protocol above a link.
protocol TransportOwner: AnyObject {
    /// The first byte of a client's handshake has come: `beginHandshake` is to be called. Until
    /// then a connection has no TLS session.
    func transportHasFirstByte()
    /// TLS stands (or the plain connection does).
    func transportIsUp()
    /// The bytes are good for the length of the call.
    func transportReceived(_ bytes: UnsafeRawBufferPointer)
    /// The peer has changed its TLS keys, so often since the last call.
    func transportUpdatedKeys(_ count: Int)
    /// Appends what there is to send, about `enough` of it.
    func transportOutput(_ output: inout [UInt8], enough: Int)
    /// Everything that `transportOutput` gave is with the socket. True if the link has done its work.
    func transportIsDrained() -> Bool
    /// The socket takes no more for now.
    func transportIsBlocked()
    /// The last call. The descriptor is closed.
    func transportEnded(_ end: TransportEnd)
}

extension TransportOwner {
    /// A client begins by itself.
    func transportHasFirstByte() {}
    func transportUpdatedKeys(_ count: Int) {}
}

/// Buffers that the connections of one loop share: a turn of one of them fills and empties them.
final class SharedBuffers {
    let input = UnsafeMutableRawBufferPointer.allocate(byteCount: 32_768, alignment: 16)
    var output: [UInt8] = []
    let session = SessionScratch()

    init() { output.reserveCapacity(40_960) }
    deinit { input.deallocate() }
}

/// One connection's bytes: a socket, TLS or not, on its loop. It reads no further while the peer does not take what it
/// is sent, so what a peer can make us hold is bounded by one read and one write.
final class Transport {
    typealias Introduced = (Result<ProxyHeader, ProxyHeader.Fault>) -> Void

    private enum State {
        /// A proxy says whose connection it is.
        case introduction
        /// No byte of a handshake has come, or its turn has not.
        case silent
        case handshake
        case up
        /// All is sent; waits for the peer to have read it, because a close with bytes unread would reset it away.
        case lingering
        /// The socket stands, and nobody looks at it.
        case frozen
        case ended
    }

    /// One TLS record.
    private static let enough = 16_384

    let fd: Int32
    private let loop: EventLoop
    private var tls: TLSSession?
    /// For a server: the session is made at the first byte, so that a connection that says nothing costs little.
    private let context: TLSServerContext?
    private let buffers: SharedBuffers
    private weak var owner: (any TransportOwner)?
    private var state = State.handshake
    /// The reader of the PROXY header; nil if none is expected or it has been read.
    private var introduction: (reading: ProxyHeaderReader, done: Introduced)?
    private var watch: DescriptorWatcher?
    private var linger: TimerID?
    /// The bytes that the socket did not take. TLS must be given the same bytes again.
    private var leftover: [UInt8] = []
    private var leftoverStart = 0
    /// Reading may have to write first, and writing to read, when TLS changes its keys.
    private var readNeedsWrite = false
    private var writeNeedsRead = false
    /// Key updates already reported to the owner.
    private var keyUpdates = 0
    private var isFlushing = false
    private var again = false
    /// Bytes handed to the socket so far: how a stalled peer is seen.
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
    var isOpen: Bool { state == .introduction || state == .silent || state == .handshake || state == .up }
    var isIntroducing: Bool { state == .introduction }
    var peer: PeerCertificate? { tls?.peer }
    var tlsVersion: String? { tls?.version }

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
            // There may be no place for the caller.
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

    /// The first byte has come, or the peer has given up. Nothing is taken from the socket yet.
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

    /// In place of `start`: as if it had been frozen at once.
    func stand(owner: any TransportOwner) {
        self.owner = owner
        freeze()
    }

    /// Neither reads nor writes any more, and lets the socket stand until the end.
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
            // Not reading, and yet told: both directions are gone.
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
            // What came behind the handshake is with TLS already.
            if state == .up { receive() }
        case .incomplete(let interest): watch?.change(interest)
        case .failed(let failure): end(.failed(failure))
        }
    }

    // MARK: In

    private func receive() {
        // Some at a time: other connections have their turn too.
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

    /// What TLS holds already the socket will not tell of again.
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

    /// Writes what the owner has, as far as the socket takes it.
    func flush() {
        // The owner may ask for it from within what a flush has called.
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
            // Reading had been put off.
            comeBack()
        }
        for _ in 0..<16 {
            buffers.output.removeAll(keepingCapacity: buffers.output.capacity <= 131_072)
            owner?.transportOutput(&buffers.output, enough: Self.enough)
            guard state == .up else { return false }
            if buffers.output.isEmpty { return owner?.transportIsDrained() ?? true }
            guard writeOutput() else { return false }
        }
        // More than a quarter of a megabyte at once: others first.
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

    /// Nil if nothing more can be written now, or ever.
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

    /// Nothing more is to be sent. Lets the peer read it all before the descriptor goes.
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

    /// For a peer that does not take what it is sent: without it the kernel would go on trying. Nothing is said before.
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
