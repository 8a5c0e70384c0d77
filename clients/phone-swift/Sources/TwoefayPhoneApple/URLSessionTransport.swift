// Not compiled on Linux: SecTrust is Apple's.
import Foundation
import Security
import TwoefayPhone

/// Requests over URLSession, with the verification of the relay by its pin.
///
/// App Transport Security accepts only the system's authorities, and evaluates before the delegate.
/// The app's Info.plist must therefore allow arbitrary loads: see the README. This transport
/// refuses every server whose chain has no pinned authority.
public actor URLSessionTransport: Transport {
    private var sessions: [ServerTrust: (session: URLSession, check: PinCheck)] = [:]

    public init() {}

    public func send(
        _ request: RelayRequest, to server: ServerTrust, isFresh: Bool
    ) async throws(TransportFailure) -> RelayReply {
        // A change of pins or of the clock ends the connections of before.
        for (other, entry) in sessions where other.origin == server.origin && (isFresh || other != server) {
            entry.session.finishTasksAndInvalidate()
            sessions[other] = nil
        }
        let (session, check) = sessions[server] ?? open(server)
        sessions[server] = (session, check)
        guard let url = URL(string: server.origin.text + request.path) else { throw .notSent("the path is no URL") }
        var message = URLRequest(url: url, timeoutInterval: TimeInterval(request.timeout))
        message.httpMethod = request.method
        message.httpBody = request.body.map { Data($0.bytes) }
        for (name, value) in request.fields { message.setValue(value, forHTTPHeaderField: name) }
        do {
            let (body, response) = try await session.data(for: message)
            guard let response = response as? HTTPURLResponse, let certificate = check.certificate else {
                throw TransportFailure.noAnswer("the answer is not one of HTTPS")
            }
            var fields: [String: String] = [:]
            for (name, value) in response.allHeaderFields { fields["\(name)".lowercased()] = "\(value)" }
            return RelayReply(
                status: response.statusCode, fields: fields, body: Array(body), certificate: certificate)
        } catch let failure as TransportFailure {
            throw failure
        } catch {
            if let reason = check.takeRefusal() { throw .untrusted(reason) }
            let unsent: [URLError.Code] = [
                .cannotFindHost, .cannotConnectToHost, .dnsLookupFailed, .notConnectedToInternet,
                .secureConnectionFailed,
            ]
            if let error = error as? URLError, unsent.contains(error.code) { throw .notSent("\(error)") }
            throw .noAnswer("\(error)")
        }
    }

    private func open(_ server: ServerTrust) -> (session: URLSession, check: PinCheck) {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.urlCredentialStorage = nil
        configuration.tlsMinimumSupportedProtocolVersion = .TLSv12
        let check = PinCheck(server)
        return (URLSession(configuration: configuration, delegate: check, delegateQueue: nil), check)
    }
}

/// The delegate that verifies the relay's certificate. Its state is behind a lock, because
/// URLSession calls it on its own queue.
private final class PinCheck: NSObject, URLSessionTaskDelegate, @unchecked Sendable {
    private let server: ServerTrust
    private let lock = NSLock()
    private var verified: [UInt8]?
    private var refusal: String?

    init(_ server: ServerTrust) { self.server = server }

    /// The relay's certificate in the latest handshake.
    var certificate: [UInt8]? { lock.withLock { verified } }

    func takeRefusal() -> String? {
        lock.withLock {
            defer { refusal = nil }
            return refusal
        }
    }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let space = challenge.protectionSpace
        guard space.authenticationMethod == NSURLAuthenticationMethodServerTrust, let trust = space.serverTrust else {
            return completionHandler(.performDefaultHandling, nil)
        }
        if let reason = refuse(trust) {
            lock.withLock { refusal = reason }
            return completionHandler(.cancelAuthenticationChallenge, nil)
        }
        completionHandler(.useCredential, URLCredential(trust: trust))
    }

    /// Returns the reason why the server is not the relay; nil if it is.
    private func refuse(_ trust: SecTrust) -> String? {
        let certificates = SecTrustCopyCertificateChain(trust) as? [SecCertificate] ?? []
        let chain = certificates.map { Array(SecCertificateCopyData($0) as Data) }
        guard let own = chain.first,
            let anchor = PinRule.anchor(in: chain, pins: server.pins, CryptoKitCryptography()),
            let root = SecCertificateCreateWithData(nil, Data(anchor.der) as CFData)
        else { return "no authority of the chain is pinned" }
        let time: Date
        switch server.dates {
        case .checked(let offset): time = Date().addingTimeInterval(TimeInterval(offset) / 1000)
        case .unchecked:
            // The system cannot leave out the dates: take a time at which all of these certificates
            // are valid, if there is one.
            let begins = [Certificate(der: own), anchor].compactMap { $0?.notBefore.milliseconds }
            time = Date(timeIntervalSince1970: TimeInterval(begins.max() ?? 0) / 1000 + 1)
        }
        SecTrustSetPolicies(trust, SecPolicyCreateSSL(true, server.origin.host as CFString))
        SecTrustSetAnchorCertificates(trust, [root] as CFArray)
        SecTrustSetAnchorCertificatesOnly(trust, true)
        SecTrustSetNetworkFetchAllowed(trust, false)
        SecTrustSetVerifyDate(trust, time as CFDate)
        var error: CFError?
        guard SecTrustEvaluateWithError(trust, &error) else { return error.map { "\($0)" } ?? "not trusted" }
        lock.withLock { verified = own }
        return nil
    }

    /// Follows no redirect: the relay has none.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) { completionHandler(nil) }
}
