import Bytes
import Crypto
import Domain
import JSON
import Log
import Synchronization
import TestSupport
import World

@testable import Relay

/// An issuer whose answer the test chooses.
final class ChosenIssuer: CertificateIssuer {
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

/// A relay whose phones get their certificates from an authority outside, and a phone to be bound.
struct OutsideEnrolment {
    let rig: RelayRig
    let authority: CertificateAuthority
    let issuer: ChosenIssuer
    let relay: Relay
    let person: Person
    let phone: TestPhone

    /// Starts with an authority that is away.
    init(_ kind: StoreKind = .file) async throws {
        let rig = try await RelayRig(kind)
        let outside = try CertificateAuthority.create(commonName: "outside", days: 1000, at: rig.time.now())
        let away = CertificateFailure.unavailable("away")
        let issuer = ChosenIssuer { _ in throw away }
        relay = try RelayRig.relay(
            over: rig.store, push: nil, phones: OutsideAuthority(issuer, root: outside.certificate, time: rig.time),
            time: rig.time, randomness: SystemRandomness(), log: Log(minimum: .debug, time: rig.time, sink: rig.sink),
            isAlone: false
        ) { _ in }
        self.rig = rig
        self.issuer = issuer
        authority = outside
        let shop = try await rig.website("shop", policies: ["certificate-tags": "sign, seal"])
        person = try await Person.registered("ada", at: shop, rig)
        phone = try TestPhone(pushToken: "push")
    }

    /// Lets the authority issue what it is asked for.
    func issueAll() {
        let (time, authority) = (rig.time, authority)
        issuer.answer { order in
            let uri = order.name.uri
            return try authority.issue(
                CertificateRequest(
                    key: order.key, commonName: uri, names: [.uri(uri)],
                    usages: [order.tag == nil ? .clientAuth : .documentSigning], notBefore: time.now(),
                    notAfter: time.now() + .seconds(86_400 * 5)))
        }
    }

    func bind(
        _ request: SigningRequest?, with other: TestPhone? = nil, code otherCode: String? = nil
    ) async throws -> Bound {
        let (phone, code) = (other ?? phone, otherCode ?? person.code)
        var bind = BindRequest(
            token: person.token, pushToken: "push", activationCode: code,
            proof: try phone.proof(
                token: person.token.text, code: code, origin: RelayRig.origin, website: "shop",
                at: rig.time.now()), binding: nil, name: nil, platform: .other, environment: .production)
        bind.certificateRequest = try request.map { String(decoding: try $0.pem(), as: UTF8.self) }
        let (sent, website) = (bind, person.website)
        guard
            case .bound(let bound) = try await rig.on({ [relay] _ in try await relay.bind(sent, from: "192.0.2.1") })
        else { throw RigFailure("\(website.name): not bound") }
        return bound
    }

    /// The phone's request for its name.
    func named(_ device: DeviceID, of other: TestPhone? = nil) throws -> SigningRequest {
        try SigningRequest(CertificateName(uri: "twoefay:device:\(device.text)"), key: (other ?? phone).key)
    }

    func credential(_ device: DeviceID, of other: TestPhone? = nil) async throws -> PhoneCredential {
        let phone = other ?? phone
        return try await rig.on { [relay] _ in
            try await relay.device(device, key: phone.key.publicKey.spkiThumbprint, isCertified: false)
        }
    }

    /// Changes the name, and asks for a new certificate with this request.
    func change(
        name: String? = nil, _ request: SigningRequest?, by credential: PhoneCredential
    ) async throws -> String? {
        let pem = try request.map { String(decoding: try $0.pem(), as: UTF8.self) }
        return try await rig.on { [relay] _ in
            try await relay.change(pushToken: nil, name: name, renews: true, certificateRequest: pem, by: credential)
        }
    }

    /// Asks for a certificate with a tag, at a time by the phone's clock. Returns the refusal; nil if
    /// there is none.
    func refusal(
        _ tag: String, key: P256PrivateKey, at asked: Timestamp, by credential: PhoneCredential
    ) async throws -> Refusal? {
        let name = CertificateName(uri: "twoefay:signer:\(credential.id.text):\(tag)")
        let request = String(decoding: try SigningRequest(name, key: key).pem(), as: UTF8.self)
        let claims: JSONObject = [
            "v": 1, "aud": .string("\(RelayRig.origin)#shop"), "tag": .string(tag),
            "csr": .string(Base64URL.encode(SHA256.hash(Array(request.utf8)))), "iat": .integer(asked.seconds),
        ]
        let proof = try JWS.sign(
            header: ["typ": "twoefay-certificate+jwt", "kid": .string(credential.id.text)],
            payload: JSONWriter.write(.object(claims)), key: phone.key)
        return try await rig.on { [relay] _ in
            do throws(Refusal) {
                _ = try await relay.certify(tag: tag, request: request, proof: proof, by: credential)
                return nil
            } catch {
                return error
            }
        }
    }
}
