import Crypto
import Domain
import TestSupport
import Testing
import World

@testable import Relay

/// An authority outside of the installation that errs or lies.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct OutsideAuthorityTests {
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
            ChosenIssuer { try fixture.certificate($0) }, root: fixture.authority.certificate, time: fixture.time)
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
                ChosenIssuer { _ in certificate }, root: fixture.authority.certificate, time: fixture.time)
            await #expect(throws: CertificateFailure.self) { try await outside.certificate(order, at: now) }
        }
    }

    /// The authority gets only requests whose subject is the phone.
    @Test func requestWithAnotherNameIsNotPassedOn() async throws {
        let fixture = try Fixture()
        let issuer = ChosenIssuer(tagged: false) { try fixture.certificate($0) }
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
