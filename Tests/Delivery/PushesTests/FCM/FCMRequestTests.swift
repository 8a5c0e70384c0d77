import HTTP
import HTTP2
import JSON
import Testing
import World

@testable import Pushes

@Suite struct FCMRequestTests {
    private static let token = "c1dEfGhIjKlMnOpQrStUvW:APA91b" + String(repeating: "x_-9", count: 30)
    private static let now = Timestamp(milliseconds: 1_800_000_000_500)

    private func request(
        token: String = token, data: JSONObject = ["challenge": "c1"], deliverBy: Timestamp? = nil
    ) -> FCMRequest {
        FCMRequest(
            message: FCMMessage(
                id: "p1", token: token, data: data, expiresAt: Self.now + .milliseconds(59_999), deliverBy: deliverBy),
            path: "/v1/projects/p/messages:send")
    }

    @Test func messageIsDataOfHighPriorityWithTheRestOfItsLife() throws {
        let formed = request().request(at: Self.now)
        #expect(formed.fields == [.init(":path", "/v1/projects/p/messages:send")])
        let expected: JSONObject = [
            "message": [
                "token": .string(Self.token), "data": ["challenge": "c1"],
                "android": ["priority": "HIGH", "ttl": "59s"],
            ]
        ]
        #expect(try JSONReader.read(formed.body).object == expected)
        let late = try #require(try JSONReader.read(request().request(at: Self.now + .seconds(90)).body).object)
        #expect(late["message"]?.object?["android"]?.object?["ttl"] == "0s")
    }

    @Test func accessTokenIsInTheSharedFields() {
        let fields = FCMDialect().form(authority: "fcm.googleapis.com", authorization: "Bearer t").fields
        #expect(
            fields == [
                .init(":method", "POST"), .init(":scheme", "https"), .init(":authority", "fcm.googleapis.com"),
                .init("content-type", "application/json"), .init("authorization", "Bearer t"),
            ])
    }

    @Test func invalidMessageIsNotSent() {
        #expect(request().fault == nil)
        #expect(request(token: "abc").fault?.contains("registration token") == true)
        #expect(request(data: ["a": 1]).fault?.contains("not a text") == true)
        let long = String(repeating: "x", count: 4095)
        #expect(request(data: ["a": .string(long)]).fault == nil)
        #expect(request(data: ["ab": .string(long)]).fault?.contains("4096") == true)
    }

    @Test func earlierOfExpiryAndDeadlineApplies() {
        #expect(request().end == Self.now + .milliseconds(59_999))
        #expect(request(deliverBy: Self.now + .seconds(9)).end == Self.now + .seconds(9))
    }

    @Test(arguments: [
        (token, true), (String(repeating: "a1", count: 32), false), ("short:token", false), ("", false),
        ("eyJlbmRwb2ludCI6Imh0dHBzOi8vdXAuZXhhbXBsZS5jb20vIn0", false), (token + " ", false), (token + "/x", false),
        (String(repeating: "a:", count: 512), true), (String(repeating: "a:", count: 513), false),
    ]) func tokensOfOtherServicesAreNotTaken(text: String, isToken: Bool) {
        #expect(FCMSender.isToken(text) == isToken)
    }
}
