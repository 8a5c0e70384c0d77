import Bytes
import Crypto
import Curl
import EventLoop
import HTTP
import Relay
import World

/// Asks an EST server (RFC 7030) for certificates, as the registration authority of the phones: the
/// relay authenticates itself, and passes on the request that the phone has signed.
///
/// Invariant: the relay trusts only the authority in the settings for the server's certificate, so
/// neither its credentials nor a phone's request reach another server. Answers and times are
/// bounded. The certificate itself is checked by `OutsideAuthority`.
///
/// Tests: `ESTTests/ESTIssuerTests.swift`, against a server over TLS.
public final class ESTIssuer: CertificateIssuer {
    public struct Options: Sendable {
        /// The URL below which the operations are, such as
        /// `https://est.example.com/.well-known/est/phones`.
        public var url: TransferURL
        /// The same for certificates that sign documents; nil if the server issues none.
        public var documents: TransferURL?
        /// The authorities of the server's certificate, in PEM. No others are trusted.
        public var authorities: [UInt8]
        public var account: (username: String, password: Secret)?
        public var certificate: WebClientOptions.ClientCertificate?
        /// The time for one certificate, also if a renewal becomes an enrolment. A phone waits for it.
        public var timeout = Duration.seconds(4)

        public init(url: TransferURL, authorities: [UInt8]) {
            self.url = url
            self.authorities = authorities
        }
    }

    private let options: Options
    private let clients: WebClients
    private let time: any TimeSource

    public init(_ options: Options, time: any TimeSource = SystemTime()) {
        self.options = options
        self.time = time
        var client = WebClientOptions()
        // The operator sets the URL, so addresses are not restricted.
        client.addresses = .none
        client.onlyTrust = options.authorities
        client.clientCertificate = options.certificate
        client.connectTimeout = options.timeout
        client.transfers = 64
        client.transfersPerServer = 64
        client.transfersUnreached = 64
        // libcurl would repeat a request on a reused connection, and so get two certificates.
        client.keepsConnections = false
        clients = WebClients(client)
    }

    public var issuesTagged: Bool { options.documents != nil }

    /// Renews by simplereenroll. A server that did not issue the former certificate refuses that, for
    /// example after a change of the authority, and so does one that wants to see the former
    /// certificate in TLS (RFC 7030, 3.3.2). The request is then an enrolment.
    public func issue(
        _ order: CertificateOrder, _ request: SigningRequest
    ) async throws(CertificateFailure) -> Certificate {
        guard let base = order.tag == nil ? options.url : options.documents else { throw .absent }
        let end = time.instant() + options.timeout
        if order.isRenewal {
            let answer = try await send(request, to: "simplereenroll", below: base, until: end)
            if ![400, 401, 403, 404, 405].contains(answer.status) {
                return try ESTAnswer.certificate(in: answer, for: order.key)
            }
        }
        return try ESTAnswer.certificate(
            in: try await send(request, to: "simpleenroll", below: base, until: end), for: order.key)
    }

    private func send(
        _ request: SigningRequest, to operation: String, below base: TransferURL, until end: Instant
    ) async throws(CertificateFailure) -> Response {
        guard let url = base.appending(operation) else { throw .failed("est.url is not usable") }
        let left = end - time.instant()
        guard left > .zero else { throw .unavailable("the EST server refused a renewal too late to enrol") }
        let fields = fields([
            .init("content-type", "application/pkcs10"), .init("content-transfer-encoding", "base64"),
            .init("accept", "application/pkcs7-mime"),
        ])
        return try await exchange(
            Transfer(
                method: "POST", url: url, fields: fields, body: Self.lines(request.der), deadline: left,
                answerBytes: 2 * CertificateBag.maxBytes))
    }

    private func fields(_ all: [Fields.Field]) -> Fields {
        var fields = Fields(all)
        if let (username, password) = options.account {
            fields.add("authorization", "Basic " + Base64.encode(Array("\(username):".utf8) + password.reveal()))
        }
        return fields
    }

    private func exchange(_ transfer: Transfer) async throws(CertificateFailure) -> Response {
        let client: WebClient
        do {
            client = try clients.current()
        } catch {
            throw .unavailable("\(error)")
        }
        switch await client.send(transfer) {
        case .success(let answer): return answer
        case .failure(let failure):
            let reason = "the EST server: \(failure.reason)"
            switch failure.cause {
            case .malformed, .insecure, .refusedAddress, .untrusted, .tooLarge: throw .failed(reason)
            case .busy, .unknownHost, .unreachable, .deadline, .cancelled, .broken: throw .unavailable(reason)
            }
        }
    }

    /// The request in base64, in lines of 76 characters as MIME wants them.
    static func lines(_ der: [UInt8]) -> [UInt8] {
        let text = Array(Base64.encode(der).utf8)
        return stride(from: 0, to: text.count, by: 76).flatMap { start in
            Array(text[start..<min(start + 76, text.count)]) + [13, 10]
        }
    }

    public func close() { clients.close() }
}

extension ESTIssuer {
    /// The reason why the server cannot be used, as far as that shows without asking for a
    /// certificate: the server must be reachable, be trusted, and name the authority of the phones in
    /// `cacerts`. Returns nil if none is known.
    public func fault(root: Certificate) async -> String? {
        guard let url = options.url.appending("cacerts") else { return "the URL is not usable" }
        let all: [Certificate]
        do throws(CertificateFailure) {
            let answer = try await exchange(
                Transfer(
                    method: "GET", url: url, fields: fields([]), deadline: options.timeout,
                    answerBytes: 2 * CertificateBag.maxBytes))
            guard answer.status == 200 else { return "cacerts answered \(answer.status)" }
            all = try ESTAnswer.certificates(answer.body)
        } catch {
            switch error {
            case .unavailable(let reason), .failed(let reason), .later(let reason, _): return reason
            case .absent: return "the URL is not usable"
            }
        }
        guard all.contains(where: { $0.spkiThumbprint == root.spkiThumbprint }) else {
            return "cacerts does not name the authority in tls.phones"
        }
        return nil
    }
}
