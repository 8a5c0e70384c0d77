import Crypto
import Domain
import EventLoop
import Relay
import World

/// Gets certificates from the key service, one after another, on a separate thread.
///
/// The deadline of a request begins when it is queued. If the service hangs, each phone waits for
/// at most one deadline, however many phones wait.
public final class RemoteCertificates: PhoneCertificates {
    private let client: KeyServiceClient
    private let worker: WorkerThread
    private let time: any TimeSource

    public init(_ client: KeyServiceClient, time: any TimeSource) throws(SystemFailure) {
        self.client = client
        self.time = time
        worker = try WorkerThread(name: "keys")
    }

    /// Ends the thread. Must be called after the last request.
    public func close() { worker.stop() }

    /// Gets a certificate. The service takes the time from its own clock, not from `now`.
    public func certificate(
        _ order: CertificateOrder, at now: Timestamp
    ) async throws(CertificateFailure) -> String {
        try await ask { client, deadline throws(KeyServiceFailure) in
            try client.issue(for: order.key, tag: order.tag, of: order.device, until: deadline)
        }
    }

    /// Gets the revocation list. The service takes the time from its own clock, not from `now`.
    public func revocationList(
        _ revoked: [RevokedCertificate], at now: Timestamp
    ) async throws(CertificateFailure) -> [UInt8] {
        try await ask { client, deadline throws(KeyServiceFailure) in
            try client.revocationList(revoked, until: deadline)
        }
    }

    /// Gets a certificate of a website, in the same way.
    func certificate(
        for key: P256PublicKey, ofWebsite name: String
    ) async throws(CertificateFailure) -> Certificate {
        try await ask { client, deadline throws(KeyServiceFailure) in
            try client.issue(for: key, ofWebsite: name, until: deadline)
        }
    }

    /// Runs a request on the thread.
    private func ask<Answer: Sendable>(
        _ request: @escaping @Sendable (KeyServiceClient, Instant) throws(KeyServiceFailure) -> Answer
    ) async throws(CertificateFailure) -> Answer {
        let deadline = time.instant() + KeyServiceClient.timeout
        let outcome = await withUnsafeContinuation { continuation in
            worker.post { [client] in
                continuation.resume(
                    returning: Result { () throws(KeyServiceFailure) in try request(client, deadline) })
            }
        }
        do throws(KeyServiceFailure) {
            return try outcome.get()
        } catch {
            throw CertificateFailure(error)
        }
    }
}

/// Gets the certificates of websites from the key service.
public struct RemoteWebsiteCertificates: WebsiteCertificates {
    private let service: RemoteCertificates
    /// The authority that shall sign.
    private let authority: Certificate

    public init(_ service: RemoteCertificates, authority: Certificate) {
        self.service = service
        self.authority = authority
    }

    public var keyThumbprint: [UInt8] { authority.spkiThumbprint }

    public func websiteCertificate(
        for website: String, key: P256PublicKey, at now: Timestamp
    ) async throws(CertificateFailure) -> Certificate {
        let issued = try await service.certificate(for: key, ofWebsite: website)
        guard (try? CertificatePath.verify([issued], roots: [authority], at: nil)) != nil else {
            throw .failed("twoefay-keys signs with the key of another authority than this relay: send it SIGHUP")
        }
        return issued
    }
}
