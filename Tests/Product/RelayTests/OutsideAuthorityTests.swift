import Crypto
import Domain
import Log
import Synchronization
import TestSupport
import Testing
import World

@testable import Relay

/// An authority outside of the installation that errs or lies.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct OutsideAuthorityTests {
    /// An issuer whose answer the test chooses.
    private final class Issuer: CertificateIssuer {
        typealias Answer = @Sendable (CertificateOrder) throws -> Certificate

        let issuesTagged: Bool
        private let state: Mutex<(answer: Answer, orders: [CertificateOrder])>

        init(tagged: Bool = true, _ answer: @escaping Answer) {
            issuesTagged = tagged
            state = Mutex((answer, []))
        }

        var orders: [CertificateOrder] { state.withLock { $0.orders } }

        func answer(_ answer: @escaping Answer) { state.withLock { $0.answer = answer } }

        func issue(
            _ order: CertificateOrder, _ request: SigningRequest
        ) async throws(CertificateFailure) -> Certificate {
            let answer = state.withLock { state in
                state.orders.append(order)
                return state.answer
            }
            do {
                return try answer(order)
            } catch let failure as CertificateFailure {
                throw failure
            } catch {
                throw .failed("\(error)")
            }
        }
    }

    private struct Fixture {
        let time = TestTime()
        let authority: CertificateAuthority
        let other: CertificateAuthority
        let key: P256PrivateKey
        let device: DeviceID

        init() throws {
            authority = try CertificateAuthority.create(commonName: "outside", days: 1000, at: time.now())
            other = try CertificateAuthority.create(commonName: "outside", days: 1000, at: time.now())
            key = try P256PrivateKey.generate()
            device = try #require(DeviceID(SystemRandomness().bytes(16)))
        }

        func order(tag: String? = nil, key: P256PrivateKey? = nil, renews: Bool = false) throws -> CertificateOrder {
            let key = key ?? self.key
            let bare = CertificateOrder(
                of: device, tag: try tag.map { try #require(CertificateTag($0[...])) }, key: key.publicKey)
            return CertificateOrder(
                of: device, tag: bare.tag, key: key.publicKey, request: try SigningRequest(bare.name, key: key),
                isRenewal: renews)
        }

        /// Makes a certificate for an order, with a change.
        func certificate(
            _ order: CertificateOrder, by authority: CertificateAuthority? = nil,
            _ change: (inout CertificateRequest) -> Void = { _ in }
        ) throws -> Certificate {
            let uri = order.name.uri
            var request = CertificateRequest(
                key: order.key, commonName: uri, names: [.uri(uri)],
                usages: [order.tag == nil ? .clientAuth : .documentSigning], notBefore: time.now(),
                notAfter: time.now() + .seconds(86_400 * 90))
            change(&request)
            return try (authority ?? self.authority).issue(request)
        }
    }

    @Test(arguments: [nil, "sign", "legacy:raw"]) func rightCertificateIsUsed(tag: String?) async throws {
        let fixture = try Fixture()
        let order = try fixture.order(tag: tag)
        let outside = OutsideAuthority(
            Issuer { try fixture.certificate($0) }, root: fixture.authority.certificate, time: fixture.time)
        let issued = try Certificate(pem: Array(try await outside.certificate(order, at: fixture.time.now()).utf8))
        #expect(issued.uris == [order.name.uri] && issued.spkiThumbprint == fixture.key.publicKey.spkiThumbprint)
    }

    @Test(arguments: [nil, "sign"]) func lyingAuthorityIsRefused(tag: String?) async throws {
        let fixture = try Fixture()
        let stranger = try P256PrivateKey.generate().publicKey
        let order = try fixture.order(tag: tag)
        func lie(
            by authority: CertificateAuthority? = nil, _ change: (inout CertificateRequest) -> Void = { _ in }
        ) throws -> Certificate { try fixture.certificate(order, by: authority, change) }
        let foreign = "twoefay:device:ffffffffffffffffffffffffffffffff"
        let now = fixture.time.now()
        let lies: [(CertificateFault, Certificate)] = [
            (.key, try lie { $0.key = stranger }), (.path, try lie(by: fixture.other)),
            (.name, try lie { $0.names = [.uri(foreign)] }), (.name, try lie { $0.commonName = foreign }),
            (.name, try lie { $0.names.append(.uri(foreign)) }),
            (.name, try lie { $0.names.append(.dns("login.example.com")) }), (.name, try lie { $0.names = [] }),
            (.purpose, try lie { $0.usages = [tag == nil ? .documentSigning : .clientAuth] }),
            (.purpose, try lie { $0.usages = [.serverAuth] }), (.purpose, try lie { $0.usages = [] }),
            (.purpose, try lie { $0.usages.append(.serverAuth) }), (.purpose, try lie { $0.isAuthority = true }),
            (.validity, try lie { $0.notAfter = now + .seconds(86_400 * 91) }),
            (.validity, try lie { $0.notAfter = now + .seconds(3600) }),
            (.validity, try lie { $0.notBefore = now + .seconds(301) }),
        ]
        for (fault, certificate) in lies {
            #expect(throws: fault) {
                try OutsideAuthority.check(
                    certificate, for: order, root: fixture.authority.certificate, at: fixture.time.now())
            }
            let outside = OutsideAuthority(
                Issuer { _ in certificate }, root: fixture.authority.certificate, time: fixture.time)
            await #expect(throws: CertificateFailure.self) { try await outside.certificate(order, at: now) }
        }
    }

    /// The phone is bound while the authority is away or lies, and gets its certificate later.
    @Test(arguments: StoreKind.all) func enrolmentIsNotLost(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let outside = try CertificateAuthority.create(commonName: "outside", days: 1000, at: rig.time.now())
        let away = CertificateFailure.unavailable("away")
        let issuer = Issuer { _ in throw away }
        let relay = try RelayRig.relay(
            over: rig.store, push: nil, phones: OutsideAuthority(issuer, root: outside.certificate, time: rig.time),
            time: rig.time, randomness: SystemRandomness(), log: Log(minimum: .debug, time: rig.time, sink: rig.sink),
            isAlone: false
        ) { _ in }
        let person = try await Person.registered("ada", at: try await rig.website("shop"), rig)
        let phone = try TestPhone(pushToken: "push")
        func bind(_ request: SigningRequest?) async throws -> Bound {
            var bind = BindRequest(
                token: person.token, pushToken: "push", activationCode: person.code,
                proof: try phone.proof(
                    token: person.token.text, code: person.code, origin: RelayRig.origin, website: "shop",
                    at: rig.time.now()), binding: nil, name: nil, platform: .other, environment: .production)
            bind.certificateRequest = try request.map { String(decoding: try $0.pem(), as: UTF8.self) }
            let (sent, website) = (bind, person.website)
            guard
                case .bound(let bound) = try await rig.on({ [relay] _ in try await relay.bind(sent, from: "192.0.2.1") }
                )
            else { throw RigFailure("\(website.name): not bound") }
            return bound
        }
        // The phone does not know its id yet, so the authority is not asked.
        let first = try await bind(try SigningRequest(commonName: "phone", key: phone.key))
        #expect(first.certificate == nil && issuer.orders.isEmpty)
        let named = try SigningRequest(CertificateName(uri: "twoefay:device:\(first.device.text)"), key: phone.key)
        let again = try await bind(named)
        #expect(again.certificate == nil && again.revocationCode == first.revocationCode && issuer.orders.count == 1)
        // The phone is bound, and asks by itself.
        let credential = try await rig.on { [relay] _ in
            try await relay.device(first.device, key: phone.key.publicKey.spkiThumbprint, isCertified: false)
        }
        func renew(_ request: SigningRequest? = named) async throws -> String? {
            let pem = try request.map { String(decoding: try $0.pem(), as: UTF8.self) }
            return try await rig.on { [relay] _ in
                try await relay.change(
                    pushToken: nil, name: nil, renews: true, certificateRequest: pem, by: credential)
            }
        }
        await #expect(throws: Refusal.unavailable) { try await renew() }
        issuer.answer { _ in throw CertificateFailure.later("not yet", .seconds(120)) }
        await #expect(throws: Refusal.pending(retryAfter: .seconds(120))) { try await renew() }
        let lie = try outside.issueClient(
            uri: "twoefay:device:ff", key: phone.key.publicKey, days: 5, at: rig.time.now())
        issuer.answer { _ in lie }
        await #expect(throws: Refusal.broken) { try await renew() }
        #expect(try await renew(nil) == nil)
        #expect(try rig.count("SELECT count(*) FROM certificate") == 0)
        let time = rig.time
        issuer.answer { try outside.issueClient(uri: $0.name.uri, key: $0.key, days: 5, at: time.now()) }
        let issued = try Certificate(pem: Array(try #require(try await renew()).utf8))
        #expect(issued.uris == ["twoefay:device:\(first.device.text)"])
        #expect(try rig.count("SELECT count(*) FROM certificate") == 1)
        #expect(issuer.orders.map(\.isRenewal).allSatisfy { !$0 })
        _ = try await renew()
        #expect(issuer.orders.last?.isRenewal == true)
        await #expect(throws: Refusal.notFound) { try await rig.on { [relay] _ in try await relay.revocationList() } }
    }

    /// The authority gets only requests whose subject is the phone.
    @Test func requestWithAnotherNameIsNotPassedOn() async throws {
        let fixture = try Fixture()
        let issuer = Issuer(tagged: false) { try fixture.certificate($0) }
        let outside = OutsideAuthority(issuer, root: fixture.authority.certificate, time: fixture.time)
        let stranger = try P256PrivateKey.generate()
        for request in [
            nil, try SigningRequest(commonName: "phone", key: fixture.key),
            try SigningRequest(CertificateName(uri: "twoefay:device:ff"), key: fixture.key),
            try fixture.order(key: stranger).request,
        ] {
            let order = CertificateOrder(of: fixture.device, key: fixture.key.publicKey, request: request)
            await #expect(throws: CertificateFailure.self) {
                try await outside.certificate(order, at: fixture.time.now())
            }
        }
        await #expect(throws: CertificateFailure.absent) {
            try await outside.certificate(try fixture.order(tag: "sign"), at: fixture.time.now())
        }
        #expect(issuer.orders.isEmpty)
    }
}
