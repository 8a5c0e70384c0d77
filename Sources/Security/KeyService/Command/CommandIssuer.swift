import Crypto
import EventLoop
import Relay
import Synchronization
import World

/// Asks the command of `twoefay-keys` for certificates, as the registration authority of the phones.
///
/// Invariant: the relay starts no program. It sends the phone's request over the socket of the key
/// service, and reads what the command has written. The certificate itself is checked by
/// `OutsideAuthority`.
///
/// The calls block, so they have threads of their own, as many as commands run at once. While all
/// of them are busy, a further request is refused at once, as `twoefay-keys` does: it would wait for
/// the end of a command, and its phone does not wait so long.
///
/// Tests: `CommandServiceTests.swift`.
public final class CommandIssuer: CertificateIssuer {
    /// The time for the way to the key service and back.
    private static let margin = Duration.seconds(1)

    public let issuesTagged: Bool
    private let client: KeyServiceClient
    private let timeout: Duration
    private let time: any TimeSource
    private let workers: [WorkerThread]
    private let idle: Mutex<[WorkerThread]>

    /// - Parameter timeout: the longest time of the command.
    public init(
        _ client: KeyServiceClient, issuesTagged: Bool, timeout: Duration, time: any TimeSource
    ) throws(SystemFailure) {
        self.client = client
        self.issuesTagged = issuesTagged
        self.timeout = timeout
        self.time = time
        var workers: [WorkerThread] = []
        for _ in 0..<CommandLauncher.mostAtOnce { workers.append(try WorkerThread(name: "command")) }
        self.workers = workers
        idle = Mutex(workers)
    }

    /// Ends the threads. Must be called after the last request.
    public func close() { for worker in workers { worker.stop() } }

    public func issue(
        _ order: CertificateOrder, _ request: SigningRequest
    ) async throws(CertificateFailure) -> Certificate {
        guard let worker = idle.withLock({ $0.popLast() }) else {
            throw .later("too many phones ask for certificates at once", CommandService.busy)
        }
        let outcome = await withUnsafeContinuation { continuation in
            worker.post { [self] in
                let outcome = Result { () throws(KeyServiceFailure) in
                    try client.request(order, request, until: time.instant() + timeout + Self.margin)
                }
                idle.withLock { $0.append(worker) }
                continuation.resume(returning: outcome)
            }
        }
        do throws(KeyServiceFailure) {
            return try CommandAnswer.certificate(in: try outcome.get(), for: order.key)
        } catch {
            throw CertificateFailure(error)
        }
    }
}

extension CertificateFailure {
    init(_ failure: KeyServiceFailure) {
        switch failure {
        case .unavailable(let reason): self = .unavailable(reason)
        case .malformed(let reason), .refused(let reason): self = .failed(reason)
        case .later(let reason, let pause): self = .later(reason, pause)
        }
    }
}

/// The meaning of what the command has written.
enum CommandAnswer {
    /// Returns the certificate for a key. The command may write those of its authority, too.
    static func certificate(
        in output: [UInt8], for key: P256PublicKey
    ) throws(KeyServiceFailure) -> Certificate {
        let all: [Certificate]
        do throws(CryptoFailure) {
            all = try CertificateBag.certificates(text: output)
        } catch {
            throw .malformed("the command wrote no certificates (\(output.count) bytes): \(error)")
        }
        let found = Set(all.filter { $0.spkiThumbprint == key.spkiThumbprint })
        guard let certificate = found.first else {
            throw .malformed("the command wrote no certificate for the key of the request")
        }
        guard found.count == 1 else {
            throw .malformed("the command wrote \(found.count) certificates for the key of the request")
        }
        return certificate
    }
}
