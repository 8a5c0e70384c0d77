import Crypto
import Domain
import HTTP
import JSON
import TestSupport
import Testing

@testable import API

/// The phone's certificate request (PKCS #10) beside its proof, over the wire.
struct CertificateRequestTests {
    private let rig: APIRig
    private let shop: Site
    private let key: TestPhone
    private let user: (token: String, code: String)

    init() async throws {
        rig = try await APIRig()
        shop = try await rig.site("shop", ["answers": "certificate"])
        key = try TestPhone(pushToken: "push")
        user = try await shop.register("bob")
    }

    private func request(_ key: P256PrivateKey, name: String = "phone") throws -> JSONValue {
        .string(String(decoding: try SigningRequest(commonName: name, key: key).pem(), as: UTF8.self))
    }

    private func verify(_ request: JSONValue, code: String? = nil) async throws -> Response {
        let code = code ?? user.code
        let proof = try key.proof(
            token: user.token, code: code, origin: RelayRig.origin, website: "shop", at: rig.relay.time.now())
        return await rig.stranger.send(
            "POST", "/verify",
            [
                "id_token": .string(user.token), "dev_token": .string(key.pushToken),
                "activation_code": .string(code), "proof": .string(proof), "csr": request,
            ])
    }

    private func issued(_ answer: Response) throws -> Certificate {
        try Certificate(pem: Array(try #require(answer["certificate"]?.string).utf8))
    }

    /// A phone that has used its certificates up gets the next one after a week, not after months.
    @Test(arguments: StoreKind.all) func phoneBeyondTheLimitWaitsForAWeek(kind: StoreKind) async throws {
        let rig = try await APIRig(kind)
        let shop = try await rig.site("shop")
        let user = try await shop.register("ada")
        let phone = try TestPhone(pushToken: "ada")
        let bound = try await shop.verify(phone, token: user.token, code: user.code)
        let device = try #require(bound["device"]?.string.flatMap { DeviceID($0) }, "\(bound.text)")
        let site = Site(rig: rig, certificate: phone.certificate(device: device))
        func renewed() async -> Response { await site.send("POST", "/device", ["certificate": true]) }
        for _ in 2...8 { #expect(await renewed().status == 200) }
        rig.relay.time.advance(by: .seconds(60))
        for _ in 1...2 {
            let refused = await renewed()
            #expect(refused.status == 429, "\(refused.text)")
            #expect(refused.fields["retry-after"] == "604740")
        }
        for _ in 1...2 {
            rig.relay.time.advance(by: .seconds(7 * 86_400))
            #expect(await renewed().status == 200)
            #expect(await renewed().status == 429)
        }
        #expect(try rig.relay.count("SELECT count(*) FROM certificate") == 10)
    }

    @Test func requestForTheProvenKeyIsAccepted() async throws {
        let answer = try await verify(try request(key.key, name: "twoefay:device:of-somebody-else"))
        #expect(answer["login"] == "verified")
        let device = try #require(answer["device"]?.string)
        let certificate = try issued(answer)
        #expect(certificate.spkiThumbprint == key.key.publicKey.spkiThumbprint)
        // The name in the request counts for nothing.
        #expect(certificate.uris == ["twoefay:device:\(device)"])
    }

    /// The request does not show which element was wrong, and the code is not used up.
    @Test func requestForAnotherKeyIsLikeAWrongProof() async throws {
        let other = try await verify(try request(try P256PrivateKey.generate()))
        let wrong = try await verify(try request(key.key), code: "wrong")
        #expect(other.status == 401 && other.withoutID == wrong.withoutID)
        #expect(try await verify(try request(key.key)).status == 200)
    }

    @Test func malformedRequestIsAFaultWhateverElseIsWrong() async throws {
        let broken = String(try #require(try request(key.key).string).dropFirst(40))
        for code in [nil, "wrong"] {
            for text in [broken, "-----BEGIN CERTIFICATE REQUEST-----", "\u{e9}", ""] {
                let answer = try await verify(.string(text), code: code)
                #expect(answer.status == 400 && answer.faults == ["csr \(text.isEmpty ? "length" : "format")"])
            }
        }
        let long = String(repeating: "\n", count: SigningRequest.maxBytes + 1)
        #expect(try await verify(.string(long)).faults == ["csr length"])
        #expect(try await verify(7).faults == ["csr type"])
        #expect(try await verify(try request(key.key)).status == 200)
    }

    @Test func renewalTakesARequestForThePhonesKeyOnly() async throws {
        let device = try #require(try await verify(try request(key.key))["device"]?.string.flatMap { DeviceID($0) })
        let phone = Site(rig: rig, certificate: key.certificate(device: device))
        let right = try request(key.key)
        let renewed = await phone.send("POST", "/device", ["certificate": true, "csr": right])
        #expect(try issued(renewed).spkiThumbprint == key.key.publicKey.spkiThumbprint)
        for body in [
            ["certificate": true, "csr": try request(try P256PrivateKey.generate())],
            ["certificate": false, "csr": right], ["name": "Mine", "csr": right],
        ] as [JSONObject] {
            #expect(await phone.send("POST", "/device", body).faults == ["csr mismatch"])
        }
        #expect(await phone.send("POST", "/device", ["csr": right]).faults == ["dev_token missing"])
        #expect(await phone.send("POST", "/device", ["certificate": true, "csr": "x"]).faults == ["csr format"])
    }
}
