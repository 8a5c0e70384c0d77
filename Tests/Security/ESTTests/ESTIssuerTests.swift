import Bytes
import Crypto
import Curl
import Domain
import EventLoop
import HTTP
import HTTP2
import Log
import Relay
import Synchronization
import TLS
import TestSupport
import Testing
import World

@testable import EST

/// `ESTIssuer` against an EST server over TLS.
@Suite(.timeLimit(.minutes(5))) struct ESTIssuerTests {
    /// A server that answers as the test says, and notes the requests.
    private final class Server: Handler {
        private let state: Mutex<(answer: @Sendable (Request) -> Reply, requests: [Request])>

        init(_ answer: @escaping @Sendable (Request) -> Reply) { state = Mutex((answer, [])) }

        var requests: [Request] { state.withLock { $0.requests } }
        var paths: [String] { requests.map(\.path) }

        func handle(_ request: Request) -> Reply {
            let answer = state.withLock { state in
                state.requests.append(request)
                return state.answer
            }
            return answer(request)
        }
    }

    private let time = SystemTime()
    private let certificates: TestCertificates
    private let authority: CertificateAuthority
    private let key: P256PrivateKey
    private let device: DeviceID

    init() throws {
        certificates = try TestCertificates()
        authority = try CertificateAuthority.create(commonName: "outside", days: 10, at: time.now())
        key = try P256PrivateKey.generate()
        device = try #require(DeviceID(SystemRandomness().bytes(16)))
    }

    private func order(tag: String? = nil, renews: Bool = false) throws -> CertificateOrder {
        let tag = try tag.map { try #require(CertificateTag($0[...])) }
        return try .signed(of: device, key: key, tag: tag, renews: renews)
    }

    /// Asks the server for a certificate.
    private func ask(
        _ server: Server, _ order: CertificateOrder? = nil,
        time: any TimeSource = SystemTime(),
        options change: @escaping @Sendable (inout ESTIssuer.Options) -> Void = { _ in }
    ) async throws -> Result<Certificate, CertificateFailure> {
        let order = try order ?? self.order()
        let request = try #require(order.request)
        return try await with(server, time: time, change) { issuer in
            do throws(CertificateFailure) {
                return .success(try await issuer.issue(order, request))
            } catch {
                return .failure(error)
            }
        }
    }

    private func with<Value: Sendable>(
        _ handler: Server, time clock: any TimeSource = SystemTime(),
        _ change: @escaping @Sendable (inout ESTIssuer.Options) -> Void,
        _ body: @escaping @Sendable (ESTIssuer) async -> Value
    ) async throws -> Value {
        let group = try LoopGroup.start(count: 1, time: time)
        defer { group.stopAndJoin() }
        let loop = group.loops[0]
        let (tls, trusted) = (try certificates.serverContext(), try certificates.websites.certificatePEM())
        let address = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let outcome = await loop.perform { () async -> Result<Value, any Error> in
            do {
                let server = try HTTP2Server(
                    loop: loop, address: address, tls: tls, handler: handler, log: Log(sink: MemorySink()))
                try server.start()
                defer { server.stop() }
                let base = "https://localhost:\(server.port)/.well-known/est"
                guard let url = TransferURL(base + "/phones") else { throw RigFailure("no URL") }
                var options = ESTIssuer.Options(url: url, authorities: trusted)
                options.documents = TransferURL(base + "/documents")
                options.timeout = .seconds(60)
                change(&options)
                let issuer = ESTIssuer(options, time: clock)
                defer { issuer.close() }
                return .success(await body(issuer))
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }

    private func signing(_ request: Request) throws -> Certificate {
        let text = String(decoding: request.body.filter { $0 != 13 && $0 != 10 }, as: UTF8.self)
        let asked = try SigningRequest(der: try #require(Base64.decode(text)))
        return try authority.issueClient(uri: "twoefay:device:\(device.text)", key: asked.key, days: 5, at: time.now())
    }

    private func signer() -> Server {
        Server { request in
            do { return .now(CertsOnly.answer([authority.certificate, try signing(request)])) } catch {
                return .now(Response(status: 500))
            }
        }
    }

    @Test func certificateIsIssuedForTheRequestOfThePhone() async throws {
        let server = signer()
        let certificate = try await ask(server).get()
        #expect(certificate.spkiThumbprint == key.publicKey.spkiThumbprint)
        let request = try #require(server.requests.first)
        #expect(request.method == "POST" && request.path == "/.well-known/est/phones/simpleenroll")
        #expect(request.fields["content-type"] == "application/pkcs10")
        #expect(request.fields["content-transfer-encoding"] == "base64")
        #expect(try await ask(server, try order(tag: "sign")).get().spkiThumbprint == certificate.spkiThumbprint)
        #expect(server.paths.last == "/.well-known/est/documents/simpleenroll")
    }

    @Test func relayAuthenticatesItself() async throws {
        let server = signer()
        let shown = try certificates.client(names: [.uri("twoefay:website:relay")])
        let (chain, secret) = (try shown.certificatePEM(), try shown.keyPEM())
        _ = try await ask(server) {
            $0.account = ("Aladdin", Secret(utf8: "open sesame"))
            $0.certificate = WebClientOptions.ClientCertificate(chain: chain, key: secret)
        }.get()
        let request = try #require(server.requests.first)
        // RFC 7617, section 2.
        #expect(request.fields["authorization"] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        #expect(request.certificate?.uris == ["twoefay:website:relay"])
    }

    /// RFC 7030, A.1 and A.3, over TLS: our requests are those of the examples, and the examples'
    /// answers are understood. A.3 has a certificate for another key than that of our request.
    @Test func examplesOfTheRFCAreUnderstood() async throws {
        let server = Server { request in
            let (type, body) =
                request.method == "GET"
                ? ("application/pkcs7-mime", ESTExamples.authorities)
                : ("application/pkcs7-mime; smime-type=certs-only", ESTExamples.certificate)
            let fields = Fields([.init("content-type", type), .init("content-transfer-encoding", "base64")])
            return .now(Response(status: 200, fields: fields, body: Array(body.utf8)))
        }
        let all = try ESTAnswer.certificates(Array(ESTExamples.authorities.utf8))
        #expect(
            all.map { certificate in
                ["OwO", "NwO", "OwN", "NwN"].first {
                    String(decoding: certificate.subject, as: UTF8.self).hasSuffix("estExampleCA \($0)")
                }
            } == ["OwO", "NwO", "OwN", "NwN"])
        let (present, order) = (all[3], try order())
        let request = try #require(order.request)
        let (fault, answer) = try await with(server, { _ in }) { issuer in
            let fault = await issuer.fault(root: present)
            do throws(CertificateFailure) {
                return (fault, Result<Certificate, CertificateFailure>.success(try await issuer.issue(order, request)))
            } catch {
                return (fault, .failure(error))
            }
        }
        #expect(fault == nil)
        #expect(answer == .failure(.failed("the EST server sent no certificate for the key of the request")))
        // The label `phones` between them is that of 3.2.2.
        #expect(
            server.requests.map { "\($0.method) \($0.path)" } == [
                "GET /.well-known/est/phones/cacerts", "POST /.well-known/est/phones/simpleenroll",
            ])
        let sent = try #require(server.requests.last).fields
        #expect(sent["content-type"] == "application/pkcs10" && sent["content-transfer-encoding"] == "base64")
    }

    /// A server refuses a renewal also if it wants the former certificate in TLS, which it answers
    /// by 401 or 403.
    @Test(arguments: [400, 401, 403, 404, 405]) func renewalFallsBackToAnEnrolment(status: Int) async throws {
        let server = signer()
        _ = try await ask(server, try order(renews: true)).get()
        #expect(server.paths == ["/.well-known/est/phones/simplereenroll"])
        let strange = Server { request in
            guard request.path.hasSuffix("simpleenroll") else { return .now(Response(status: status)) }
            return server.handle(request)
        }
        _ = try await ask(strange, try order(renews: true)).get()
        #expect(
            strange.paths == ["/.well-known/est/phones/simplereenroll", "/.well-known/est/phones/simpleenroll"])
    }

    /// The phone's own request has a deadline, after which a certificate would be issued for nobody.
    @Test func renewalAndEnrolmentShareOneDeadline() async throws {
        let clock = TestTime()
        let server = Server { _ in
            clock.advance(by: .seconds(60))
            return .now(Response(status: 404))
        }
        let result = try await ask(server, try order(renews: true), time: clock)
        guard case .failure(.unavailable) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(server.paths == ["/.well-known/est/phones/simplereenroll"])
    }

    @Test(
        arguments: [
            (202, "120", CertificateFailure.later("the EST server has not decided yet (202)", .seconds(120))),
            (202, nil, .later("the EST server has not decided yet (202)", .seconds(3600))),
            (202, "999999999", .later("the EST server has not decided yet (202)", .seconds(86_400))),
            (503, "5", .later("the EST server answered 503", .seconds(5))),
            (503, nil, .unavailable("the EST server answered 503")),
            (400, nil, .failed("the EST server answered 400")),
            (401, nil, .failed("the EST server answered 401: check the credentials in the group est")),
            (302, nil, .failed("the EST server answered 302")),
        ] as [(Int, String?, CertificateFailure)])
    func refusalHasItsMeaning(status: Int, pause: String?, failure: CertificateFailure) async throws {
        let server = Server { _ in
            .now(Response(status: status, fields: Fields(pause.map { [.init("retry-after", $0)] } ?? [])))
        }
        #expect(try await ask(server) == .failure(failure))
    }

    @Test func wrongAnswerIsNoCertificate() async throws {
        let other = try authority.issueClient(
            uri: "twoefay:device:x", key: try P256PrivateKey.generate().publicKey, days: 5, at: time.now())
        let right = try signing(
            Request(
                method: "POST", path: "/", fields: Fields(),
                body: Array(Base64.encode(try #require(try order().request).der).utf8)))
        let type = Fields([.init("content-type", "application/pkcs7-mime")])
        let answers = [
            CertsOnly.answer([other]), CertsOnly.answer([]), CertsOnly.answer([right], type: "text/html"),
            Response(status: 200, fields: type, body: Array("garbage!".utf8)),
            Response(status: 200, fields: type, body: Array(Base64.encode(right.der).utf8)),
            Response(status: 200, fields: type, body: []),
            Response(status: 200, fields: type, body: [UInt8](repeating: 0x41, count: 1_000_000)),
        ]
        for (index, answer) in answers.enumerated() {
            let result = try await ask(Server { _ in .now(answer) })
            guard case .failure(.failed(let reason)) = result else {
                Issue.record("\(index): \(result)")
                continue
            }
            // The log must say what is wrong with them.
            if index > 2, index < 6 {
                #expect(
                    reason.hasPrefix("the EST server sent no certificates (") && reason.contains("): "), "\(reason)")
            }
        }
    }

    @Test func serverThatHangsIsUnavailable() async throws {
        let server = Server { _ in
            .later(deadline: .seconds(3600), late: { Response(status: 500) }) {
                await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
                return .response(Response(status: 500))
            }
        }
        let result = try await ask(server) { $0.timeout = .milliseconds(50) }
        guard case .failure(.unavailable) = result else {
            Issue.record("\(result)")
            return
        }
    }

    /// The credentials go to no server but that of the pinned authority.
    @Test func otherAuthorityIsNotTrusted() async throws {
        let server = signer()
        let foreign = try authority.certificatePEM()
        let result = try await ask(server) {
            $0.authorities = foreign
            $0.account = ("relay", Secret(utf8: "secret"))
        }
        guard case .failure(.failed) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(server.requests.isEmpty)
    }

    @Test func checkNamesWhatIsWrong() async throws {
        let (own, other) = (authority.certificate, certificates.phones.certificate)
        let server = Server { request in
            request.path == "/.well-known/est/phones/cacerts"
                ? .now(CertsOnly.answer([own])) : .now(Response(status: 404))
        }
        let faults = try await with(server, { _ in }) { issuer in
            [await issuer.fault(root: own), await issuer.fault(root: other)]
        }
        #expect(faults[0] == nil && faults[1]?.contains("tls.phones") == true, "\(faults)")
    }
}
