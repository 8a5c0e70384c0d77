import HTTP
import HTTP2
import Pushing
import Testing

@testable import APNs

@Suite struct RequestTests {
    private func request(_ push: APNsNotification, authorization: String? = "bearer x") -> ClientRequest {
        APNsRequest.make(
            push, topic: "com.example.app", authority: "api.push.apple.com", authorization: authorization)
    }

    @Test func everyField() throws {
        let request = request(Sample.push())
        #expect(request.method == "POST")
        #expect(request.path == "/3/device/" + Sample.token)
        #expect(request.authority == "api.push.apple.com")
        #expect(
            request.fields.all == [
                .init("apns-topic", "com.example.app"), .init("apns-push-type", "alert"), .init("apns-priority", "10"),
                .init("authorization", "bearer x"), .init("apns-id", Sample.id),
                .init("apns-expiration", "1800000300"), .init("apns-collapse-id", Sample.collapseID),
            ])
        #expect(request.neverIndexed == ["apns-id", "apns-expiration", "apns-collapse-id"])
        #expect(request.body == Sample.payload)
    }

    @Test func aCertificateNeedsNoAuthorization() throws {
        #expect(request(Sample.push(), authorization: nil).fields["authorization"] == nil)
    }

    @Test(arguments: ["ab", "0123456789abcdefABCDEF", String(repeating: "f", count: 200)])
    func tokensOfAnyLength(token: String) {
        #expect(APNsRequest.isToken(token))
    }

    @Test(arguments: [
        "", "a", "xyz", "../../3/device/ab", "ab?c", "ab cd", "ab\r\n", "ａｂ", "e\u{301}",
        String(repeating: "f", count: 513),
    ])
    func whatIsNoTokenNeverBecomesPath(token: String) {
        #expect(!APNsRequest.isToken(token))
    }

    @Test func sandboxTokensGoToTheSandboxOfApple() {
        #expect(APNsEndpoint.production.serving(.sandbox) == .sandbox)
        #expect(APNsEndpoint.production.serving(.production) == .production)
        #expect(
            APNsEndpoint(host: "api.push.apple.com", port: 2197).serving(.sandbox)
                == APNsEndpoint(host: "api.sandbox.push.apple.com", port: 2197))
        #expect(APNsEndpoint.sandbox.serving(.production) == .sandbox)
        let own = APNsEndpoint(host: "push.example.com", port: 8443)
        #expect(own.serving(.sandbox) == own)
    }

    @Test func authorities() {
        #expect(APNsEndpoint(host: "push.example.com").authority == "push.example.com")
        #expect(APNsEndpoint(host: "push.example.com", port: 2197).authority == "push.example.com:2197")
        #expect(APNsEndpoint(host: "::1", port: 8443).authority == "[::1]:8443")
    }
}
