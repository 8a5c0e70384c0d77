import EventLoop
import Glibc
import TLS

/// One connection's bytes: a socket, TLS or not, on its loop. It reads no further while the other side does not take what it is sent,
/// so what a peer can make us hold is bounded by one read and its answers.
package final class Transport {
    private enum State {
        case handshake
        case up
        case ended
    }

    private let loop: EventLoop
    private let fd: Int32
    private let tls: TLSSession?
    private var state = State.handshake
    private var watch: DescriptorWatcher?
    /// What the socket did not take; TLS wants to be given these very bytes again.
    private var unsent: [UInt8] = []
    private var readNeedsWrite = false
    private var writeNeedsRead = false

    /// Called once, when bytes may be written.
    package var isUp: () -> Void = {}
    package var received: ([UInt8]) -> Void = { _ in }
    /// Called once, unless `close` was. The descriptor is closed.
    package var ended: (String) -> Void = { _ in }

    /// The descriptor is the wire's from here on.
    package init(loop: EventLoop, fd: Int32, tls: TLSSession?) {
        self.loop = loop
        self.fd = fd
        self.tls = tls
    }

    deinit {
        guard state != .ended else { return }
        watch?.cancel()
        Glibc.close(fd)
    }

    package func start() {
        do throws(SystemFailure) {
            watch = try loop.watch(fd: fd, .read) { [weak self] in self?.ready($0) }
        } catch {
            end(error.description)
            return
        }
        if tls == nil { stand() } else { shakeHands() }
    }

    private func stand() {
        state = .up
        setInterest()
        isUp()
    }

    private func shakeHands() {
        guard let tls else { return }
        switch tls.handshake() {
        case .complete:
            stand()
            // What came behind the handshake is with TLS already.
            if state == .up { receive() }
        case .incomplete(let interest): watch?.change(interest)
        case .failed(let failure): end("TLS: \(failure)")
        }
    }

    private func ready(_ readiness: Readiness) {
        switch state {
        case .handshake: shakeHands()
        case .up:
            if readiness.contains(.write) || writeNeedsRead { flush() }
            if state == .up, unsent.isEmpty || readNeedsWrite { receive() }
            // Not reading, and yet told: both directions are gone.
            if state == .up, !unsent.isEmpty, !readiness.isDisjoint(with: [.hangUp, .failed]) {
                end("connection lost")
            }
        case .ended: break
        }
    }

    // MARK: In

    private func receive() {
        while state == .up, unsent.isEmpty || readNeedsWrite {
            readNeedsWrite = false
            switch read() {
            case .bytes(let bytes):
                received(bytes)
                // The socket tells again of what it holds; TLS does not.
                guard state == .up, tls?.hasPending ?? false else {
                    setInterest()
                    return
                }
            case .incomplete(let interest):
                readNeedsWrite = interest.contains(.write)
                setInterest()
                return
            case .ended(let reason):
                end(reason)
                return
            }
        }
        setInterest()
    }

    private enum Read {
        case bytes([UInt8])
        case incomplete(Interest)
        case ended(String)
    }

    private func read() -> Read {
        withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 16) { buffer in
            if let tls {
                switch tls.read(into: buffer) {
                case .bytes(let count): return .bytes(Array(buffer[..<count]))
                case .incomplete(let interest): return .incomplete(interest)
                case .closed: return .ended("closed by the other side")
                case .failed(let failure): return .ended("TLS: \(failure)")
                }
            }
            let count = recv(fd, buffer.baseAddress, buffer.count, 0)
            if count > 0 { return .bytes(Array(buffer[..<count])) }
            if count == 0 { return .ended("closed by the other side") }
            return errno == EAGAIN || errno == EINTR
                ? .incomplete(.read) : .ended(String(cString: strerror(errno)))
        }
    }

    // MARK: Out

    package func write(_ bytes: [UInt8]) {
        guard state == .up else { return }
        let wasEmpty = unsent.isEmpty
        unsent += bytes
        if wasEmpty { flush() }
    }

    private func flush() {
        writeNeedsRead = false
        var start = 0
        while state == .up, start < unsent.count {
            guard let count = unsent.withUnsafeBytes({ take(UnsafeRawBufferPointer(rebasing: $0[start...])) }) else {
                break
            }
            start += count
        }
        guard state == .up else { return }
        unsent.removeFirst(start)
        setInterest()
    }

    /// Nil if nothing more can be written now, or ever.
    private func take(_ bytes: UnsafeRawBufferPointer) -> Int? {
        if let tls {
            switch tls.write(bytes) {
            case .bytes(let count): return count
            case .incomplete(let interest): writeNeedsRead = interest.contains(.read)
            case .failed(let failure): endSoon("TLS: \(failure)")
            }
            return nil
        }
        let count = send(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        if count >= 0 { return count }
        if errno != EAGAIN && errno != EINTR { endSoon(String(cString: strerror(errno))) }
        return nil
    }

    private func setInterest() {
        var interest: Interest = []
        if unsent.isEmpty || writeNeedsRead { interest.insert(.read) }
        if !unsent.isEmpty && !writeNeedsRead || readNeedsWrite { interest.insert(.write) }
        watch?.change(interest)
    }

    // MARK: The end

    /// What the socket takes now has been written; the rest is not.
    package func close() {
        guard state != .ended else { return }
        if state == .up { tls?.shutdown() }
        state = .ended
        watch?.cancel()
        watch = nil
        Glibc.close(fd)
    }

    /// Who writes is not told within its own call.
    private func endSoon(_ reason: String) {
        loop.schedule(after: .zero) { [weak self] in self?.end(reason) }
    }

    private func end(_ reason: String) {
        guard state != .ended else { return }
        close()
        ended(reason)
    }
}
