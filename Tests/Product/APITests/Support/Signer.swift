import Bytes
import Crypto
import Domain
import HTTP
import JSON
import Relay
import TestSupport
import Testing
import World

@testable import API

/// A phone of a user of the shop, with a key for documents.
struct Signer {
    static let document = SHA256.hash(Array("The contract.\n".utf8))

    let rig: APIRig
    let shop: Site
    let phone: TestPhone
    let device: String
    let site: Site
    let key: P256PrivateKey

    init(
        _ kind: StoreKind = .memory, tags: String = "sign, legacy:raw", beside other: Signer? = nil,
        user: String = "bob"
    ) async throws {
        if let other {
            (rig, shop) = (other.rig, other.shop)
        } else {
            rig = try await APIRig(kind)
            shop = try await rig.site(
                "shop",
                [
                    "certificate-tags": tags, "answers": "signed", "further-factors": "website",
                    "phone-codes": "again",
                ])
        }
        let (token, code) = try await shop.register(user)
        phone = try TestPhone(pushToken: "push-of-\(user)", agreement: try P256PrivateKey.generate())
        let bound = try await shop.verify(phone, token: token, code: code)
        device = try #require(bound["device"]?.string, "\(bound.text)")
        site = Site(rig: rig, certificate: phone.certificate(device: try #require(DeviceID(device))))
        key = try P256PrivateKey.generate()
    }

    /// Asks for a certificate as the protocol page describes it.
    func certify(
        _ tag: String = "sign", key: P256PrivateKey? = nil, after: Duration = .zero, by site: Site? = nil,
        signing: P256PrivateKey? = nil, change: (inout JSONObject) -> Void = { _ in },
        body: (inout JSONObject) -> Void = { _ in }
    ) async throws -> Response {
        let request = String(
            decoding: try SigningRequest(commonName: "any", key: key ?? self.key).pem(), as: UTF8.self)
        var claims: JSONObject = [
            "v": 1, "aud": .string("\(RelayRig.origin)#shop"), "tag": .string(tag),
            "csr": .string(Base64URL.encode(SHA256.hash(Array(request.utf8)))),
            "iat": .integer((rig.relay.time.now() + after).seconds),
        ]
        change(&claims)
        let proof = try JWS.sign(
            header: ["typ": "twoefay-certificate+jwt", "kid": .string(device)],
            payload: JSONWriter.write(.object(claims)), key: signing ?? phone.key)
        var object: JSONObject = ["tag": .string(tag), "csr": .string(request), "proof": .string(proof)]
        body(&object)
        return await (site ?? self.site).send("POST", "/device/certificate", object)
    }

    func statement(
        _ digest: [UInt8] = Signer.document, tag: String = "sign", key: P256PrivateKey? = nil,
        header: (inout JSONObject) -> Void = { _ in }, claims change: (inout JSONObject) -> Void = { _ in }
    ) throws -> String {
        var top: JSONObject = ["typ": "twoefay-document+jwt", "kid": .string(device)]
        var claims: JSONObject = [
            "v": 1, "aud": .string("\(RelayRig.origin)#shop"), "tag": .string(tag), "label": "Contract 7",
            "digest": .string(Base64URL.encode(digest)), "iat": .integer(rig.relay.time.now().seconds),
        ]
        header(&top)
        change(&claims)
        return try JWS.sign(header: top, payload: JSONWriter.write(.object(claims)), key: key ?? self.key)
    }

    func verify(
        _ statement: String? = nil, raw: [UInt8]? = nil, tag: String = "sign",
        digest: [UInt8] = Signer.document, by site: Site? = nil
    ) async -> Response {
        var body: JSONObject = [
            "device": .string(device), "tag": .string(tag), "hash": .string(Base64URL.encode(digest)),
        ]
        body.set("statement", statement.map { .string($0) })
        body.set("signature", raw.map { .string(Base64.encode($0)) })
        return await (site ?? shop).send("POST", "/verify-signature", body)
    }

    func revoked() throws -> Int64 {
        try rig.relay.count("SELECT count(*) FROM certificate WHERE revoked_at IS NOT NULL AND is_on_hold = 0")
    }
}
