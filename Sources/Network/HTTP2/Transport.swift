import Crypto
import EventLoop
import Glibc
import TLS

/// A socket with optional TLS as an asynchronous byte stream, on one loop.
///
/// Purpose: the owner gets bytes and gives bytes; the transport handles TLS, partial writes and the
/// end. A server's transport goes through the states `introduction` (PROXY header), `silent`,
/// `handshake`, `up` and `lingering`; a client's transport begins with `handshake`.
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

    /// The side of TLS that this end takes.
    private enum Side {
        case plain
        case client(TLSSession)
        /// The TLS session is made when the handshake begins, so that a silent connection costs
        /// little memory.
        case server(TLSServerContext)
    }

    private enum State {
        /// Not started.
        case created(Side)
        /// Waits for the PROXY header of a balancer. The function is called with the result.
        case introduction(ProxyHeaderReader, Introduced, Side)
        /// No byte of a handshake has come, or its turn has not come.
        case silent(TLSServerContext)
        case handshake(TLSSession)
        /// Bytes can be read and written; without TLS if there is no session.
        case up(TLSSession?)
        /// Everything is sent. Waits until the peer has read it or the timer fires, because a close
        /// with unread bytes would send a reset. After a handshake that failed, that reset would
        /// destroy the alert; then there is no session any more.
        case lingering(TLSSession?, TimerID, TransportEnd)
        /// The socket stays open, but is neither read nor written.
        case frozen
        case ended
    }

    /// The result of a read from the socket, through TLS if there is a session.
    private enum Input {
        case bytes(Int)
        case incomplete(Interest)
        case closed
        case failed(TransportFailure)
    }

    /// About one TLS record.
    private static let enough = 16_384
    /// The bytes that a lingering transport reads and drops.
    private static let lingerBytes = 1_048_576

    let fd: Int32
    private let loop: EventLoop
    private let buffers: SharedBuffers
    private weak var owner: (any TransportOwner)?
    private var state: State
    private var watch: DescriptorWatcher?
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
    /// The bytes dropped since it lingers.
    private var dropped = 0
    /// Whether the owner wants no more bytes now. A peer that ends its side then ends the connection.
    var isPaused = false {
        didSet { if oldValue, !isPaused { comeBack() } }
    }
    /// The number of bytes written to the socket so far, by which a stalled peer is detected.
    private(set) var sent: UInt64 = 0

    /// Makes the server's end of a connection.
    /// - Parameter context: nil for a connection without TLS.
    convenience init(loop: EventLoop, fd: Int32, server context: TLSServerContext?, buffers: SharedBuffers) {
        self.init(loop, fd, context.map { .server($0) } ?? .plain, buffers)
    }

    /// Makes the client's end of a connection.
    /// - Parameter session: nil for a connection without TLS.
    convenience init(loop: EventLoop, fd: Int32, client session: TLSSession?, buffers: SharedBuffers) {
        self.init(loop, fd, session.map { .client($0) } ?? .plain, buffers)
    }

    private init(_ loop: EventLoop, _ fd: Int32, _ side: Side, _ buffers: SharedBuffers) {
        self.loop = loop
        self.fd = fd
        self.buffers = buffers
        state = .created(side)
    }

    deinit {
        if case .ended = state { return }
        loop.close(fd, of: watch)
    }

    private var isUp: Bool { if case .up = state { true } else { false } }
    var isBlocked: Bool { leftoverStart < leftover.count }
    private var isReading: Bool { !isBlocked && !isPaused }
    /// The session that is used to read and write; nil until the handshake begins, and without TLS.
    private var tls: TLSSession? {
        switch state {
        case .handshake(let tls): tls
        case .up(let tls), .lingering(let tls, _, _): tls
        case .created, .introduction, .silent, .frozen, .ended: nil
        }
    }
    var hasSession: Bool { tls != nil }
    var peer: PeerCertificate? { tls?.peer }
    var isResumed: Bool { tls?.isResumed ?? false }
    /// Whether the peer has chosen HTTP/1.1.
    var isHTTP1: Bool { tls?.isHTTP1 ?? false }
    var serverCertificate: Certificate? { tls?.serverCertificate }

    /// Starts reading.
    /// - Parameter introduced: called with the result of the PROXY header; nil if none is expected.
    ///   After a fault the connection ends.
    func start(owner: any TransportOwner, introduced: Introduced? = nil) throws(SystemFailure) {
        guard case .created(let side) = state else { return }
        self.owner = owner
        watch = try loop.watch(fd: fd, .read) { [weak self] in self?.ready($0) }
        if let introduced {
            introduce(ProxyHeaderReader(), introduced, side)
        } else {
            begin(side)
        }
    }

    private func introduce(_ reader: ProxyHeaderReader, _ introduced: @escaping Introduced, _ side: Side) {
        var reader = reader
        let progress = reader.read(from: fd)
        state = .introduction(reader, introduced, side)
        switch progress {
        case .incomplete: break
        case .whole(let header):
            introduced(.success(header))
            // The caller may have been refused.
            guard case .introduction = state else { return }
            begin(side)
        case .closed: end(.closed)
        case .refused(let fault):
            introduced(.failure(fault))
            end(.finished)
        case .failed(let failure): end(.failed(.socket(failure)))
        }
    }

    private func begin(_ side: Side) {
        switch side {
        case .server(let context): state = .silent(context)
        case .client(let tls):
            state = .handshake(tls)
            handshake(tls)
        case .plain:
            state = .up(nil)
            owner?.transportIsUp()
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
        guard case .silent(let context) = state else { return }
        let tls: TLSSession
        do throws(TLSFailure) {
            tls = try TLSSession(server: context, fd: fd)
        } catch {
            end(.failed(.tls(error)))
            return
        }
        state = .handshake(tls)
        watch?.change(.read)
        handshake(tls)
    }

    /// Instead of `start`: the transport is frozen from the beginning.
    func stand(owner: any TransportOwner) {
        self.owner = owner
        freeze()
    }

    /// Stops reading and writing, and keeps the socket open until the end.
    func freeze() {
        switch state {
        case .created, .introduction, .silent, .handshake, .up: break
        case .lingering, .frozen, .ended: return
        }
        state = .frozen
        watch?.cancel()
        watch = nil
    }

    private func ready(_ readiness: Readiness) {
        switch state {
        case .introduction(let reader, let introduced, let side): introduce(reader, introduced, side)
        case .silent: listen(readiness)
        case .handshake(let tls): handshake(tls)
        case .up:
            if readiness.contains(.write) || writeNeedsRead { flush() }
            if isUp, isReading || readNeedsWrite { receive() }
            // It does not read, but was told of a hang-up.
            if isUp, !isReading, !readiness.isDisjoint(with: [.hangUp, .failed]) { end(.closed) }
        case .lingering: drain()
        case .created, .frozen, .ended: break
        }
    }

    private func handshake(_ tls: TLSSession) {
        switch tls.handshake() {
        case .complete:
            state = .up(tls)
            setInterest()
            owner?.transportIsUp()
            // Bytes behind the handshake may be in TLS already.
            if isUp { receive() }
        case .incomplete(let interest): watch?.change(interest)
        // The session is not needed any more, and takes more memory than all the rest.
        case .failed(let failure) where tls.isServer: linger(nil, .failed(.tls(failure)))
        case .failed(let failure): end(.failed(.tls(failure)))
        }
    }

    // MARK: In

    private func receive() {
        guard case .up(let tls) = state else { return }
        // A limited number of reads, so that other connections get their turns.
        for _ in 0..<8 {
            let input = read(tls)
            if let tls, tls.keyUpdates != keyUpdates {
                let count = tls.keyUpdates - keyUpdates
                keyUpdates = tls.keyUpdates
                owner?.transportUpdatedKeys(count)
                guard isUp else { return }
            }
            switch input {
            case .bytes(let count):
                readNeedsWrite = false
                owner?.transportReceived(UnsafeRawBufferPointer(rebasing: buffers.input[..<count]))
                guard isUp else { return }
                let mayHoldMore = tls?.hasPending ?? (count == buffers.input.count)
                if mayHoldMore, isReading { continue }
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

    private func read(_ tls: TLSSession?) -> Input {
        if let tls {
            return switch tls.read(into: buffers.input) {
            case .bytes(let count): .bytes(count)
            case .incomplete(let interest): .incomplete(interest)
            case .closed: .closed
            case .failed(let failure): .failed(.tls(failure))
            }
        }
        let count = recv(fd, buffers.input.baseAddress, buffers.input.count, 0)
        if count > 0 { return .bytes(count) }
        if count == 0 { return .closed }
        if errno == EAGAIN || errno == EINTR { return .incomplete(.read) }
        return .failed(.socket(SystemFailure("recv")))
    }

    /// Reads again in a later turn, because the socket will not report bytes that TLS has buffered
    /// already.
    private func comeBack() {
        guard !again else { return }
        again = true
        loop.schedule(after: .zero) { [weak self] in
            guard let self else { return }
            again = false
            if isUp, isReading { receive() }
        }
    }

    // MARK: Out

    /// Writes the owner's output, as far as the socket takes it.
    func flush() {
        // The owner may call this from within a flush.
        guard isUp, !isFlushing else { return }
        isFlushing = true
        let finished = writeAll()
        isFlushing = false
        guard isUp else { return }
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
            guard isUp else { return false }
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
                if isUp {
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
                end(.failed(.tls(failure)))
                return nil
            }
        }
        let count = send(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        if count >= 0 {
            sent += UInt64(count)
            return count
        }
        if errno != EAGAIN && errno != EINTR { end(.failed(.socket(SystemFailure("send")))) }
        return nil
    }

    private func setInterest() {
        var interest: Interest = []
        if isReading || writeNeedsRead { interest.insert(.read) }
        if isPaused { interest.insert(.hangUp) }
        if isBlocked && !writeNeedsRead || readNeedsWrite { interest.insert(.write) }
        watch?.change(interest)
    }

    // MARK: The end

    /// Ends our side, because there is nothing more to send. The peer can read all of it before the
    /// descriptor is closed.
    private func finish() {
        guard case .up(let tls) = state else { return }
        tls?.shutdown()
        linger(tls, .finished)
    }

    private func linger(_ tls: TLSSession?, _ reason: TransportEnd) {
        Glibc.shutdown(fd, Int32(SHUT_WR))
        watch?.change(.read)
        let timer = loop.schedule(after: .seconds(1)) { [weak self] in self?.end(reason) }
        state = .lingering(tls, timer, reason)
    }

    private func drain() {
        for _ in 0..<8 {
            let count = recv(fd, buffers.input.baseAddress, buffers.input.count, 0)
            if count > 0 {
                dropped += count
                if dropped <= Self.lingerBytes { continue }
            }
            if count < 0, errno == EAGAIN || errno == EINTR { return }
            end(.finished)
            return
        }
    }

    /// Resets the connection of a peer that does not read. Otherwise the kernel would keep trying
    /// to send. Nothing is sent before.
    func reset() {
        if case .ended = state { return }
        Socket.setReset(fd)
        end(.finished, notice: false)
    }

    func end(_ reason: TransportEnd) { end(reason, notice: true) }

    /// - Parameter notice: whether TLS sends its close_notify.
    private func end(_ reason: TransportEnd, notice: Bool) {
        var reason = reason
        switch state {
        case .ended: return
        case .up(let tls): if notice { tls?.shutdown() }
        case .lingering(_, let timer, let first):
            loop.cancel(timer)
            reason = first
        case .created, .introduction, .silent, .handshake, .frozen: break
        }
        state = .ended
        watch?.cancel()
        watch = nil
        close(fd)
        leftover = []
        owner?.transportEnded(reason)
    }
}
