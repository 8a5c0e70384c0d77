import LinuxPhone
import Testing
import TwoefayPhone

/// The worked example of App Attest in docs/phones/attestation.md.
struct AttestationTests {
    @Test func clientDataIsThatOfThePage() throws {
        let protocolPage = try ProtocolPage("device-protocol.md")
        let page = try ProtocolPage("attestation.md").text
        let uri = try #require(protocolPage.text.split(separator: "\n").first { $0.hasPrefix("twoefay://enrol?") })
        let activation = try Activation(String(uri))
        let key = try #require(P256PublicKey(jwk: try protocolPage.members("jwk")))
        let enrolment = Enrolment(activation, id: "e", key: [], agreementKey: nil, options: EnrolmentOptions())
        let data = AppAttestation.clientData(
            enrolment, code: activation.code, key: key, OpenSSLCryptography())
        let line = try #require(page.split(separator: "\n").first { $0.hasPrefix(#"{"challenge":"#) })
        #expect(String(decoding: data, as: UTF8.self) == line)
        let form = try #require(page.split(separator: "\n").first { $0.hasPrefix(#"{"format":"#) })
        let names = try #require(JSONReader.object(Array(form.utf8))).members.map(\.name)
        #expect(AppAttestation.member(keyID: "k", object: [1]).members.map(\.name) == names)
    }
}
