import Bytes
import Testing
import Webhooks
import World

@Suite("The vectors that Standard Webhooks publishes") struct StandardWebhooksVectorTests {
    @Test(arguments: [Published.secret, "whsec_" + Published.secret]) func publishedSignatureIsReproduced(
        secret: String
    ) throws {
        let head = WebhookHeaders(
            id: try #require(WebhookID(Published.id)), body: Published.body, at: Published.now,
            secrets: [try #require(WebhookSecret(secret))])
        #expect(head.fields.map(\.name) == ["webhook-id", "webhook-timestamp", "webhook-signature"])
        #expect(head.fields.map(\.value) == [Published.id, "1614265330", Published.signature])
    }

    @Test(arguments: [Published.secret, "whsec_" + Published.secret]) func publishedSignatureVerifies(secret: String) {
        #expect(Published.fault(of: Published.fields(), secrets: [secret]) == nil)
    }

    @Test("Each field is required", arguments: WebhookHeaders.Field.allCases) func missingFieldIsRefused(
        field: WebhookHeaders.Field
    ) {
        let fields = Published.fields().filter { $0.name != field.rawValue }
        #expect(Published.fault(of: fields) == .missing(field))
    }

    @Test func invalidTimestampIsRefused() {
        #expect(Published.fault(of: Published.fields(timestamp: "hello")) == .malformed(.timestamp))
    }

    @Test(arguments: [Published.wrong, Published.other]) func invalidSignatureIsRefused(text: String) {
        #expect(Published.fault(of: Published.fields(signature: text)) == .signature)
    }

    @Test func partialSignatureIsRefused() {
        #expect(Published.fault(of: Published.fields(signature: "v1,")) == .signature)
    }

    @Test func oneOfSeveralSignaturesIsEnough() {
        let version2 = "v2" + Published.other.dropFirst(2)
        let list = [Published.other, version2, Published.signature, Published.other]
        #expect(Published.fault(of: Published.fields(signature: list.joined(separator: " "))) == nil)
    }

    @Test(
        "The tolerance of timestamps, in milliseconds",
        arguments: [
            (-300_000, nil), (-300_001, WebhookFault.tooNew), (300_000, nil), (300_001, .tooOld), (0, nil),
        ] as [(Int64, WebhookFault?)])
    func timestampToleranceIsFiveMinutes(milliseconds: Int64, fault: WebhookFault?) {
        let now = Published.now + .milliseconds(milliseconds)
        #expect(Published.fault(of: Published.fields(), at: now) == fault)
        #expect(Published.fault(of: Published.fields(), at: now, tolerance: .seconds(301)) == nil)
    }

    /// Secrets as in the library's tests: one is shorter than the standard allows, and one has unused bits that no
    /// encoder sets.
    @Test func unpaddedSecretIsAccepted() throws {
        let secret = try #require(WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBg"))
        #expect(secret.key.count == 25)
        #expect(WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBg==")?.key.reveal() == secret.key.reveal())
        #expect(WebhookSecret("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS") == nil)
        #expect(WebhookSecret("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBr") == nil)
    }

    @Test(arguments: ["", "whsec_"]) func emptySecretIsRefused(text: String) { #expect(WebhookSecret(text) == nil) }
}
