import HTTP
import JSON
import Testing

@testable import FakePushServices

@Suite struct AppleCheckTests {
    private static let check = AppleCheck(topic: "com.example.app")

    private static func request(
        method: String = "POST", path: String = "/3/device/abcdef01", query: String? = nil,
        without missing: String? = nil, with extra: [Fields.Field] = [],
        body: String = #"{"aps":{"alert":{"title":"t"}},"challenge":"c"}"#
    ) -> Request {
        var fields: [Fields.Field] = [
            .init("apns-topic", "com.example.app"), .init("apns-push-type", "alert"),
            .init("apns-id", "01234567-89ab-cdef-0123-456789abcdef"), .init("apns-priority", "10"),
            .init("apns-expiration", "1800000000"), .init("apns-collapse-id", "c"),
        ]
        let replaced = Set(extra.map(\.name)).union([missing].compactMap(\.self))
        fields.removeAll { replaced.contains($0.name) }
        return Request(
            method: method, path: path, query: query, fields: Fields(fields + extra), body: Array(body.utf8))
    }

    private static func finding(_ request: Request) -> RefusalReason? {
        switch check.look(at: request, providerToken: nil) {
        case .right: nil
        case .wrong(let reason): reason
        }
    }

    @Test func validRequestIsParsed() throws {
        guard case .right(let push) = Self.check.look(at: Self.request(), providerToken: "token") else {
            Issue.record("refused")
            return
        }
        #expect(push.deviceToken == "abcdef01")
        #expect(push.id == "01234567-89ab-cdef-0123-456789abcdef")
        #expect(push.topic == "com.example.app")
        #expect(push.pushType == "alert")
        #expect(push.collapseID == "c")
        #expect(push.expiration == 1_800_000_000)
        #expect(push.priority == 10)
        #expect(push.providerToken == "token")
        #expect(push.challenge == "c")
        #expect(push.alert == ["title": "t"])
    }

    @Test func optionalHeadersMayBeOmitted() {
        for name in ["apns-priority", "apns-expiration", "apns-collapse-id"] {
            #expect(Self.finding(Self.request(without: name)) == nil)
        }
    }

    @Test(arguments: [
        (request(method: "GET"), RefusalReason.methodNotAllowed), (request(path: "/4/device/ab"), .badPath),
        (request(path: "/"), .badPath), (request(query: "a=b"), .badPath),
        (request(path: "/3/device/"), .missingDeviceToken), (request(path: "/3/device"), .missingDeviceToken),
        (request(path: "/3/device/xyz"), .badDeviceToken), (request(path: "/3/device/abc"), .badDeviceToken),
        (request(path: "/3/device/ab/cd"), .badDeviceToken), (request(without: "apns-topic"), .missingTopic),
        (request(with: [.init("apns-topic", "com.example.other")]), .deviceTokenNotForTopic),
        (request(with: [.init("apns-priority", "10"), .init("apns-priority", "10")]), .duplicateHeaders),
        (request(without: "apns-push-type"), .invalidPushType),
        (request(with: [.init("apns-push-type", "shout")]), .invalidPushType),
        (request(with: [.init("apns-priority", "7")]), .badPriority),
        (request(with: [.init("apns-expiration", "soon")]), .badExpirationDate),
        (request(with: [.init("apns-expiration", "-1")]), .badExpirationDate),
        (request(with: [.init("apns-id", "0123456789abcdef0123456789abcdef")]), .badMessageID),
        (request(with: [.init("apns-id", "01234567-89AB-CDEF-0123-456789ABCDEF")]), .badMessageID),
        (request(with: [.init("apns-collapse-id", String(repeating: "c", count: 65))]), .badCollapseID),
        (request(body: ""), .payloadEmpty), (request(body: "{"), .payloadEmpty), (request(body: "{}"), .payloadEmpty),
        (request(body: #"{"aps":{"x":""# + String(repeating: "x", count: 4096) + #""}}"#), .payloadTooLarge),
    ])
    func invalidRequestGetsItsReason(request: Request, reason: RefusalReason) {
        #expect(Self.finding(request) == reason)
    }

    @Test func payloadLimitIsInclusive() {
        let around = #"{"aps":{"x":""}}"#.utf8.count
        func body(_ count: Int) -> String {
            #"{"aps":{"x":""# + String(repeating: "x", count: count - around) + #""}}"#
        }
        #expect(Self.finding(Self.request(body: body(4096))) == nil)
        #expect(Self.finding(Self.request(body: body(4097))) == .payloadTooLarge)
    }
}
