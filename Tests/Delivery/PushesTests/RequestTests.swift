import DeliveryOutcomes
import HTTP
import HTTP2
import Testing
import World

@testable import Pushes

@Suite struct RequestTests {
    private func common(authorization: String?) -> [Fields.Field] {
        APNsRequest.form(topic: "com.example.app", authority: "api.push.apple.com", authorization: authorization)
            .fields
    }

    @Test func sharedHeaderFieldsAreFormedOnce() {
        #expect(
            common(authorization: "bearer x") == [
                .init(":method", "POST"), .init(":scheme", "https"), .init(":authority", "api.push.apple.com"),
                .init("apns-topic", "com.example.app"), .init("apns-push-type", "alert"), .init("apns-priority", "10"),
                .init("authorization", "bearer x"),
            ])
    }

    @Test func eachPushHasItsOwnHeaderFields() {
        let request = APNsRequest.own(Sample.push())
        #expect(
            request.fields == [
                .init(":path", "/3/device/" + Sample.token), .init("apns-id", Sample.id),
                .init("apns-expiration", "1800000300"), .init("apns-collapse-id", Sample.collapseID),
            ])
        #expect(request.body == Sample.payload)
    }

    @Test func certificateCredentialSendsNoAuthorization() {
        #expect(!common(authorization: nil).contains { $0.name == "authorization" })
    }

    @Test func invalidNotificationIsNotSent() {
        func fault(
            id: String = Sample.id, payload: [UInt8] = Sample.payload, collapseID: String? = Sample.collapseID
        ) -> String? {
            APNsNotification(
                id: id, deviceToken: Sample.token, payload: payload, collapseID: collapseID,
                expiresAt: Timestamp(seconds: 1_800_000_300)
            ).fault
        }
        #expect(fault() == nil)
        #expect(fault(payload: [UInt8](repeating: 0x20, count: 4096)) == nil)
        #expect(fault(payload: [UInt8](repeating: 0x20, count: 4097))?.contains("4096") == true)
        #expect(fault(payload: [])?.contains("empty") == true)
        #expect(fault(collapseID: nil) == nil)
        #expect(fault(collapseID: String(repeating: "é", count: 32)) == nil)
        #expect(fault(collapseID: String(repeating: "é", count: 32) + "x")?.contains("64 bytes") == true)
        #expect(fault(collapseID: "")?.contains("collapse") == true)
        for id in ["", Sample.id.uppercased(), String(Sample.id.dropLast()), Sample.id + "0"] {
            #expect(fault(id: id)?.contains("UUID") == true, "\(id)")
        }
    }

    @Test func earlierOfExpiryAndDeadlineApplies() {
        func end(_ expiresAt: Int64, _ deliverBy: Int64?) -> Int64 {
            APNsNotification(
                id: Sample.id, deviceToken: Sample.token, payload: Sample.payload,
                expiresAt: Timestamp(seconds: expiresAt), deliverBy: deliverBy.map { Timestamp(seconds: $0) }
            ).end.seconds
        }
        #expect(end(30, nil) == 30)
        #expect(end(30, 10) == 10)
        #expect(end(30, 40) == 30)
    }

    @Test(arguments: ["ab", "0123456789abcdefABCDEF", String(repeating: "f", count: 200)])
    func deviceTokenLengthsAreAccepted(token: String) {
        #expect(APNsRequest.isToken(token))
    }

    @Test(arguments: [
        "", "a", "xyz", "../../3/device/ab", "ab?c", "ab cd", "ab\r\n", "ａｂ", "e\u{301}",
        String(repeating: "f", count: 513),
    ])
    func malformedTokenNeverReachesThePath(token: String) {
        #expect(!APNsRequest.isToken(token))
    }

    @Test func sandboxTokensUseTheSandboxHost() {
        #expect(PushEndpoint.production.serving(.sandbox) == .sandbox)
        #expect(PushEndpoint.production.serving(.production) == .production)
        #expect(
            PushEndpoint(host: "api.push.apple.com", port: 2197).serving(.sandbox)
                == PushEndpoint(host: "api.sandbox.push.apple.com", port: 2197))
        #expect(PushEndpoint.sandbox.serving(.production) == .sandbox)
        let own = PushEndpoint(host: "push.example.com", port: 8443)
        #expect(own.serving(.sandbox) == own)
    }

    @Test func authorityOmitsTheDefaultPort() {
        #expect(PushEndpoint(host: "push.example.com").authority == "push.example.com")
        #expect(PushEndpoint(host: "push.example.com", port: 2197).authority == "push.example.com:2197")
        #expect(PushEndpoint(host: "::1", port: 8443).authority == "[::1]:8443")
    }
}
