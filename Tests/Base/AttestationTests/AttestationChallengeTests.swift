import Attestation
import Bytes
import Crypto
import JSON
import TestSupport
import Testing

@Suite struct AttestationChallengeTests {
    /// The key of RFC 6979, A.2.5, and the activation of the page on the device protocol.
    private func subject(
        audience: String = "https://login.example.com:8080#shop", user: String = "6f0c1e9b5d3a47c2a1f08e7d6b5c4a39",
        code: String = "q3Lr8PZk0uXbT1sVw9Ya", key: P256PublicKey? = nil
    ) throws -> AttestationSubject {
        let published = try P256PublicKey(
            jwk: [
                "crv": "P-256", "kty": "EC", "x": "YP7UuiVanTHJYet0xjVtaMBJuJI7Yfps5mliLmDyn7Y",
                "y": "eQP-EAi4vJmkGunpVii8ZPLxsgwtfp9Rd6PClNRGIpk",
            ])
        return AttestationSubject(audience: audience, user: user, activationCode: code, key: key ?? published)
    }

    @Test("The page docs/phones/attestation.md has the challenges of its program")
    func challengesAreThoseOfThePage() throws {
        let (subject, page) = (try subject(), try TextFile.read("\(Vectors.project)/docs/phones/attestation.md"))
        let apple = Base64URL.encode(AttestationChallenge.apple(subject))
        #expect(apple == "jwpM3nP3ZU7obyVc2f6fonvLmYaDFPUKe8KKmUFekzs")
        #expect(page.contains("ios     \(apple)\n"))
        let android = Base64URL.encode(AttestationChallenge.android(subject))
        #expect(android == "gRGeSeEPmuH2uSfbEJKyx0W1ZvjNMbdU2_2tAlX42I4")
        #expect(page.contains("android \(android)\n"))
        let clientData = String(decoding: AttestationChallenge.clientData(subject), as: UTF8.self)
        #expect(clientData == #"{"challenge":"\#(apple)","jkt":"DOvxvJiAdIqVWIkFt5hDtCunXLF0BV4-JGv4f-ALSm0"}"#)
        #expect(page.contains(clientData))
    }

    @Test("The page docs/phones/attestation.md names every fault")
    func everyFaultIsOnThePage() throws {
        let page = try TextFile.read("\(Vectors.project)/docs/phones/attestation.md")
        for fault in AttestationFault.allCases { #expect(page.contains("`\(fault.rawValue)`"), "\(fault)") }
    }

    @Test func everyFieldChangesTheChallenge() throws {
        let other = try P256PrivateKey.generate().publicKey
        let subjects = [
            try subject(), try subject(audience: "https://login.example.com:8080#sho"), try subject(user: "6"),
            try subject(code: "q"), try subject(key: other),
            // The same characters in other fields.
            try subject(
                audience: "https://login.example.com:8080#shop6", user: "f0c1e9b5d3a47c2a1f08e7d6b5c4a39"),
        ]
        #expect(Set(subjects.map { AttestationChallenge.apple($0) }).count == 6)
        // On Android, the leaf certificate names the key.
        #expect(Set(subjects.map { AttestationChallenge.android($0) }).count == 5)
        #expect(
            Set(subjects.flatMap { [AttestationChallenge.apple($0), AttestationChallenge.android($0)] }).count == 11)
    }
}
