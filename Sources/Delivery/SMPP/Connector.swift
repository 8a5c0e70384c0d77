import EventLoop
import Glibc
import TLS
import World

/// Opens a connection to a gateway. Each time it resolves the name anew and tries the addresses in
/// turn.
struct Connector {
    struct Failure: Error {
        let reason: String
    }

    let loop: EventLoop
    let options: SMPPOptions

    /// Returns a connected transport that is not yet started. Must be called on the loop.
    func wire() async -> Result<Transport, Failure> {
        let limit = loop.time.instant() + options.connectTimeout
        let addresses: [SocketAddress]
        switch await Resolver.addresses(host: options.host, port: options.port) {
        case .success(let found): addresses = found
        case .failure(let failure):
            return .failure(Failure(reason: "cannot resolve \(options.host): \(failure.reason)"))
        }
        var failure = Failure(reason: "cannot connect: timed out")
        for (index, address) in addresses.enumerated() {
            let left = limit - loop.time.instant()
            guard left > .zero else { break }
            // Each address gets an equal part of the remaining time, so that a silent one leaves
            // time for the next.
            do throws(Failure) {
                return .success(try await wire(to: address, within: left / (addresses.count - index)))
            } catch {
                failure = error
            }
        }
        return .failure(failure)
    }

    private func wire(to address: SocketAddress, within limit: Duration) async throws(Failure) -> Transport {
        let fd: Int32
        do throws(SystemFailure) { fd = try Socket.connect(address) } catch {
            throw Failure(reason: "cannot connect to \(address): \(error)")
        }
        Socket.setUserTimeout(fd, options.responseTimeout * 2)
        Socket.setKeepAlive(fd)
        if let reason = await established(fd, within: limit) {
            close(fd)
            throw Failure(reason: "cannot connect to \(address): \(reason)")
        }
        var session: TLSSession?
        if let tls = options.tls {
            do throws(TLSFailure) { session = try TLSSession(client: tls, fd: fd, host: options.host) } catch {
                close(fd)
                throw Failure(reason: "TLS: \(error)")
            }
        }
        return Transport(loop: loop, fd: fd, tls: session)
    }

    /// Waits until the socket is connected. Returns the reason of the failure, or nil.
    private func established(_ fd: Int32, within limit: Duration) async -> String? {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<String?, Never>) in
            var watch: DescriptorWatcher?
            var timer: TimerID?
            var isOver = false
            func finish(_ reason: String?) {
                guard !isOver else { return }
                isOver = true
                watch?.cancel()
                if let timer { loop.cancel(timer) }
                continuation.resume(returning: reason)
            }
            timer = loop.schedule(after: limit) { finish("timed out") }
            do throws(SystemFailure) {
                watch = try loop.watch(fd: fd, .write) { _ in
                    let code = Socket.connectionError(fd)
                    finish(code == 0 ? nil : String(cString: strerror(code)))
                }
            } catch {
                finish(error.description)
            }
        }
    }
}
