import Bytes
import Testing
import Webhooks
import World

@Suite("The secret of a webhook") struct WebhookSecretTests {
    private struct Counting: Randomness {
        func fill(_ bytes: UnsafeMutableRawBufferPointer) {
            for at in bytes.indices { bytes[at] = UInt8(at) }
        }
    }

    @Test func secretIsRandom() {
        let secret = WebhookSecret.make(Counting())
        #expect(secret.key.reveal() == Array(0..<32))
        let text = String(decoding: secret.text.reveal(), as: UTF8.self)
        #expect(text == "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
        #expect(WebhookSecret(text)?.key.reveal() == Array(0..<32))
    }

    @Test func secretDoesNotPrint() {
        let secret = WebhookSecret.make(Counting())
        #expect("\(secret)" == "[secret]")
        #expect(String(reflecting: secret) == "[secret]")
        #expect("\(secret.text)" == "[secret]")
        var dumped = ""
        dump(WebhookSecrets(current: secret, former: .init(secret, until: Timestamp(seconds: 1))), to: &dumped)
        #expect(!dumped.contains("AAEC") && !dumped.contains(", 3, 4"))
    }

    @Test(arguments: [(0, false), (23, false), (24, true), (32, true), (64, true), (65, false)])
    func secretSizeIsBounded(bytes: Int, isOne: Bool) {
        let key = [UInt8](repeating: 0x5a, count: bytes)
        #expect((WebhookSecret(key: Secret(key)) != nil) == isOne)
        #expect((WebhookSecret("whsec_" + Base64.encode(key)) != nil) == isOne)
    }

    @Test(
        "Malformed secrets are refused",
        arguments: [
            "whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",
            " whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS-", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSé",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwA", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBg=",
        ])
    func malformedSecretIsRefused(text: String) { #expect(WebhookSecret(text) == nil) }

    // MARK: Rotation

    private let now = Timestamp(seconds: 1_800_000_000)

    private func secret(_ byte: UInt8) throws -> WebhookSecret {
        try #require(WebhookSecret(key: Secret([UInt8](repeating: byte, count: 32))))
    }

    private func keys(_ secrets: WebhookSecrets, at now: Timestamp) -> [UInt8?] {
        secrets.valid(at: now).map { $0.key.reveal().first }
    }

    @Test func twoSecretsAreValidDuringRotation() throws {
        let secrets = WebhookSecrets(current: try secret(1)).rotated(to: try secret(2), at: now)
        #expect(keys(secrets, at: now) == [2, 1])
        #expect(keys(secrets, at: now + .seconds(86_400) - .milliseconds(1)) == [2, 1])
        #expect(keys(secrets, at: now + .seconds(86_400)) == [2])
    }

    @Test func rotationKeepsAtMostTwoSecrets() throws {
        let secrets = WebhookSecrets(current: try secret(1)).rotated(to: try secret(2), at: now)
            .rotated(to: try secret(3), at: now + .seconds(1))
        #expect(keys(secrets, at: now + .seconds(2)) == [3, 2])
    }

    @Test func immediateRotationEndsTheOldSecret() throws {
        let secrets = WebhookSecrets(current: try secret(1)).rotated(to: try secret(2), at: now, overlap: .zero)
        #expect(keys(secrets, at: now) == [2])
    }

    @Test("A receiver with either of two secrets can verify a webhook", arguments: [1, 2] as [UInt8])
    func bothSecretsSign(byte: UInt8) throws {
        let secrets = WebhookSecrets(current: try secret(1)).rotated(to: try secret(2), at: now)
        let body = Array("{}".utf8)
        let head = WebhookHeaders(
            id: try #require(WebhookID("a")), body: body, at: now, secrets: secrets.valid(at: now))
        let check = WebhookCheck(secrets: [try secret(byte)])
        try check.verify(head.fields, body: body, at: now)
        #expect(throws: WebhookFault.signature) {
            try WebhookCheck(secrets: [try secret(3)]).verify(head.fields, body: body, at: now)
        }
        try WebhookCheck(secrets: [try secret(3), try secret(byte)]).verify(head.fields, body: body, at: now)
        #expect(throws: WebhookFault.signature) {
            try WebhookCheck(secrets: []).verify(head.fields, body: body, at: now)
        }
    }

    /// The website still has the former secret, and nobody the present one.
    @Test func secretThatNobodyFetchedIsReplaced() throws {
        let former = WebhookSecrets.Former(try secret(1), until: WebhookSecrets.untilFetched)
        let rolled = WebhookSecrets(current: try secret(2), former: former)
        let rotated = rolled.rotated(to: try secret(3), at: now)
        #expect(keys(rotated, at: now) == [3, 1])
        #expect(keys(rotated, at: now + WebhookSecrets.overlap) == [3])
        #expect(keys(rolled.rotated(to: try secret(3), at: now, overlap: .zero), at: now) == [3])
    }

    // MARK: The stored form

    private func kept(_ text: String, until: Timestamp? = nil) -> WebhookSecrets? {
        WebhookSecrets(text: Secret(utf8: text), previousUntil: until)
    }

    @Test func secretsRoundTrip() throws {
        let one = WebhookSecrets(current: try secret(1))
        let two = one.rotated(to: try secret(2), at: now)
        let until = now + WebhookSecrets.overlap
        #expect(WebhookSecrets(text: one.text, previousUntil: nil).map { keys($0, at: now) } == [1])
        #expect(WebhookSecrets(text: two.text, previousUntil: until).map { keys($0, at: now) } == [2, 1])
        #expect(WebhookSecrets(text: two.text, previousUntil: until).map { keys($0, at: until) } == [2])
        #expect(
            String(decoding: two.text.reveal(), as: UTF8.self)
                == "whsec_AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI= whsec_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
        )
    }

    @Test(
        "Malformed stored secrets are refused",
        arguments: [
            "", " ", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw ", " whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw whsec_MfKQ", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ])
    func malformedSecretsAreRefused(text: String) { #expect(kept(text, until: now) == nil) }

    @Test func secondSecretNeedsAnExpiry() throws {
        let two = WebhookSecrets(current: try secret(1)).rotated(to: try secret(2), at: now)
        #expect(WebhookSecrets(text: two.text, previousUntil: nil).map { keys($0, at: now) } == [2])
    }
}
