import EventLoop
import Glibc
import TLS

/// The byte stream of one connection: a socket with optional TLS, on its loop. It stops reading
/// while the peer does not take the bytes sent to it. A peer can therefore make the relay buffer no
/// more than one read and its answers.
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
    /// Bytes that the socket did not take. TLS requires the same bytes in the next attempt.
    private var unsent: [UInt8] = []
    private var readNeedsWrite = false
    private var writeNeedsRead = false

    /// Called once, when the connection is ready for writing.
    package var isUp: () -> Void = {}
    package var received: ([UInt8]) -> Void = { _ in }
    /// Called once with the reason when the connection ends; not called after `close`. The
    /// descriptor is then closed.
    package var ended: (String) -> Void = { _ in }

    /// Takes ownership of the descriptor.
    package init(loop: EventLoop, fd: Int32, tls: TLSSession?) {
        self.loop = loop
        self.fd = fd
        self.tls = tls
    }

    deinit {
        guard state != .ended else { return }
        loop.close(fd, of: watch)
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
            // TLS may already hold data that followed the handshake.
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
            // A hang-up reported while not reading means that both directions are closed.
            if state == .up, !unsent.isEmpty, !readiness.isDisjoint(with: [.hangUp, .failed]) {
                end("connection lost")
            }
        case .ended: break
        }
    }

    // MARK: Reading

    private func receive() {
        while state == .up, unsent.isEmpty || readNeedsWrite {
            readNeedsWrite = false
            switch read() {
            case .bytes(let bytes):
                received(bytes)
                // The socket reports remaining data again; TLS does not.
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
                case .closed: return .ended("closed by the gateway")
                case .failed(let failure): return .ended("TLS: \(failure)")
                }
            }
            let count = recv(fd, buffer.baseAddress, buffer.count, 0)
            if count > 0 { return .bytes(Array(buffer[..<count])) }
            if count == 0 { return .ended("closed by the gateway") }
            return errno == EAGAIN || errno == EINTR
                ? .incomplete(.read) : .ended(String(cString: strerror(errno)))
        }
    }

    // MARK: Writing

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

    /// Writes bytes. Returns the count; nil if nothing more can be written now, or ever.
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

    // MARK: Closing

    /// Closes the connection. Bytes that the socket has not taken are discarded.
    package func close() {
        guard state != .ended else { return }
        if state == .up { tls?.shutdown() }
        state = .ended
        watch?.cancel()
        watch = nil
        Glibc.close(fd)
    }

    /// Ends the connection on a later turn, so that `ended` is not called within `write`.
    private func endSoon(_ reason: String) {
        loop.schedule(after: .zero) { [weak self] in self?.end(reason) }
    }

    private func end(_ reason: String) {
        guard state != .ended else { return }
        close()
        ended(reason)
    }
}
