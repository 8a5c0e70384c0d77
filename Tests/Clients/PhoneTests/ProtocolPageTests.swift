import Bytes
import Crypto
import JSON
import TestSupport
import Testing
import World

@testable import Phone

/// The worked examples of docs/phones/device-protocol.md. Another program made them with the key of
/// RFC 6979.
struct ProtocolPageTests {
    let page: String
    private let examples: [String: String]
    let key: P256PrivateKey

    init() throws {
        let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        page = try TextFile.read("\(root)/docs/phones/device-protocol.md")
        var examples: [String: String] = [:]
        var name: String?
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            let text = line.drop { $0 == " " }
            if text.hasPrefix("```") {
                // The first word is the language.
                let words = text.dropFirst(3).split(separator: " ").dropFirst()
                name = name == nil && !words.isEmpty ? words.joined(separator: " ") : nil
            } else if let name {
                try #require(examples[name] == nil, "\(name) has one line")
                examples[name] = String(text)
            }
        }
        self.examples = examples
        // The private key of RFC 6979, A.2.5.
        let scalar = Hex.decode("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721")
        key = try P256PrivateKey(scalar: Secret(try #require(scalar)))
    }

    func example(_ name: String) throws -> String { try #require(examples[name], "\(name)") }

    /// Returns the members of the example with this name.
    func members(_ name: String) throws -> JSONObject {
        try #require(try JSONReader.read(Array(try example(name).utf8)).object)
    }

    /// Verifies the JWS of the example with this name. Returns its signing input.
    func signed(_ name: String, _ algorithm: JWS.Algorithm = .es256, _ secret: Secret? = nil) throws -> String {
        let jws = try example("\(name) jws")
        let object = try JWS.parse(jws, algorithm: algorithm)
        #expect(secret.map { object.verify($0) } ?? object.verify(key.publicKey), "\(name)")
        let parts = jws.split(separator: ".")
        #expect(Base64URL.decode(parts[0]) == Array(try example("\(name) header").utf8), "\(name)")
        #expect(Base64URL.decode(parts[1]) == Array(try example("\(name) claims").utf8), "\(name)")
        return String(jws.prefix(parts[0].count + 1 + parts[1].count))
    }

    func unsigned(_ jws: String) -> String { jws.split(separator: ".").dropLast().joined(separator: ".") }

    func enrolment() throws -> (enrolment: Enrolment, code: String, k: Secret) {
        let uri = try #require(page.split(separator: "\n").first { $0.hasPrefix(ActivationURI.start) })
        let activation = try ActivationURI(String(uri))
        let claims = try #require(try JSONReader.read(Array(try example("enrol claims").utf8)).object)
        let begun = try Enrolment(
            activation, pushToken: claims["dev_token"]?.string, at: Timestamp(milliseconds: 0))
        var object = try begun.json()
        object["key"] = .string(String(decoding: try key.pem().reveal(), as: UTF8.self))
        // The examples of the proof and the binding are those of a phone without codes.
        object["agreement_key"] = nil
        return (try Enrolment(object), activation.code, try #require(activation.websiteKey))
    }

    private func issuedAt(_ name: String) throws -> Timestamp {
        let claims = try JSONReader.read(Array(try example("\(name) claims").utf8)).object
        return Timestamp(seconds: try #require(claims?["iat"]?.integer))
    }

    @Test func protocolPageKeyAndThumbprintAreCorrect() throws {
        #expect(try example("jwk") == JSONWriter.text(.object(key.publicKey.jwk)))
        #expect(try example("thumbprint") == key.publicKey.thumbprint)
    }

    @Test func protocolPageProofAndBindingAreCorrect() throws {
        let (enrolment, code, k) = try enrolment()
        let proof = try SignedStatement.enrolment(enrolment, code: code, at: try issuedAt("enrol"))
        #expect(try unsigned(proof) == signed("enrol"))
        _ = try signed("binding", .hs256, k)
        #expect(try SignedStatement.binding(enrolment, websiteKey: k) == example("binding jws"))
    }

    @Test func protocolPageDecisionIsCorrect() throws {
        let claims = try #require(try JSONReader.read(Array(try example("decision claims").utf8)).object)
        let context = Array(try example("context").utf8)
        #expect(try Base64URL.decode(example("context base64url")) == context)
        let entry: JSONObject = [
            "challenge": claims["challenge"] ?? .null, "nonce": claims["nonce"] ?? .null,
            "context": .string(try example("context base64url")), "expires_at": "2026-11-21T10:09:30.120Z",
        ]
        let question = try ChallengePrompt(.object(entry), website: "shop", now: try issuedAt("decision"))
        let header = try #require(try JSONReader.read(Array(try example("decision header").utf8)).object)
        let statement = try SignedStatement.decision(
            .approve(number: "47"), about: question, by: try enrolment().enrolment,
            device: try #require(header["kid"]?.string), uv: .biometric, at: try issuedAt("decision"))
        #expect(try unsigned(statement) == signed("decision"))
        #expect(question.context.lines.contains { $0.label == "to" && $0.value == "Zoë Müller" })
    }

    @Test func protocolPageStatusIsCorrect() throws {
        var status = PhoneStatus()
        (status.os, status.osVersion, status.patchLevel) = ("Android", "16", 202_610)
        (status.appVersion, status.model, status.battery) = ("3.2.1", "Pixel 10", 81)
        (status.hasScreenLock, status.isRooted) = (true, false)
        let statement = try SignedStatement.status(
            status, of: try enrolment().enrolment, device: try #require(try members("status header")["kid"]?.string),
            at: try issuedAt("status"))
        #expect(try unsigned(statement) == signed("status"))
    }

    @Test func protocolPageSecretRequestIsCorrect() throws {
        // The private key of Bob in RFC 7518, appendix C.
        let scalar = try #require(Base64URL.decode("VEmDZpDXXK8p8N0Cndsxs924q6nS1RXFASRl6BfUqdw"))
        let agreement = try P256PrivateKey(scalar: Secret(scalar))
        let statement = try SignedStatement.secretRequest(
            of: try enrolment().enrolment, agreement: agreement.publicKey,
            device: try #require(try members("secret header")["kid"]?.string), at: try issuedAt("secret"))
        #expect(try unsigned(statement) == signed("secret"))
    }

    @Test func protocolPageDocumentsAreCorrect() throws {
        let device = try #require(try members("certificate header")["kid"]?.string)
        let proof = try SignedStatement.certificate(
            "request", tag: "sign", of: try enrolment().enrolment, device: device, at: try issuedAt("certificate"))
        #expect(try unsigned(proof) == signed("certificate"))

        // The private key of Bob in RFC 7518, appendix C.
        let scalar = try #require(Base64URL.decode("VEmDZpDXXK8p8N0Cndsxs924q6nS1RXFASRl6BfUqdw"))
        let key = try P256PrivateKey(scalar: Secret(scalar))
        let certificate = try CertificateAuthority.create(
            commonName: "phones", days: 1, at: Timestamp(milliseconds: 0)
        ).issueSigner(uri: "twoefay:signer:d:sign", key: key.publicKey, days: 1, at: Timestamp(milliseconds: 0))
        let signature = try enrolment().enrolment.sign(
            SHA256.hash(Array("The contract.\n".utf8)), label: "Contract 7",
            with: DocumentKey(tag: "sign", isRaw: false, key: key, certificate: certificate), device: device,
            at: try issuedAt("document"))
        guard case .statement(let statement) = signature else { return #expect(Bool(false), "no statement") }
        #expect(try unsigned(statement) == unsigned(example("document jws")))
        #expect(try JWS.parse(example("document jws")).verify(key.publicKey))
        for (part, name) in zip(try example("document jws").split(separator: "."), ["header", "claims"]) {
            #expect(Base64URL.decode(part) == Array(try example("document \(name)").utf8), "\(name)")
        }
    }

    @Test func protocolPageTimeIsCorrect() throws {
        _ = try signed("time")
        let header = try members("time header")
        let claims = try members("time claims")
        #expect(header["typ"] == "twoefay-time+jwt")
        #expect(header["x5t#S256"]?.string.flatMap { Base64URL.decode($0) }?.count == 32)
        #expect(claims.names == ["v", "aud", "nonce", "time"])
        #expect(claims["time"]?.string.flatMap { Timestamp(rfc3339: $0) } != nil)
    }

    @Test func protocolPageNoticeIsCorrect() throws {
        _ = try signed("message")
        #expect(try members("message header")["typ"] == "twoefay-message+jwt")
        let claims = try members("message claims")
        #expect(
            claims.names == ["v", "aud", "id_token", "message", "from", "title", "text", "created_at"])
        #expect(try claims["aud"]?.string == enrolment().enrolment.audience)
        #expect(try claims["id_token"]?.string == enrolment().enrolment.token)
    }

    @Test func protocolPageDPoPAndPushTokenAreCorrect() throws {
        let claims = try #require(try JSONReader.read(Array(try example("dpop claims").utf8)).object)
        let proof = try DPoP.proof(
            "POST", "https://login.example.com:8080/pending", nonce: claims["nonce"]?.string,
            id: try #require(claims["jti"]?.string), at: try issuedAt("dpop"), key: key)
        #expect(try unsigned(proof) == signed("dpop"))
        let header = try #require(try JSONReader.read(Array(try example("token header").utf8)).object)
        let token = try #require(
            try JSONReader.read(Array(try example("token claims").utf8)).object?["dev_token"]?.string)
        let statement = try SignedStatement.pushToken(
            token, of: try enrolment().enrolment, device: try #require(header["kid"]?.string),
            at: try issuedAt("token"))
        #expect(try unsigned(statement) == signed("token"))
    }
}
