import Domain
import JSON
import Relay
import Testing

@testable import Couriers

@Suite struct PayloadTests {
    private func payload(_ push: Push) throws -> JSONObject {
        let bytes = APNsPayload.bytes(for: push)
        #expect(bytes.count <= 4096)
        return try #require(try JSONReader.read(bytes).object)
    }

    private func alert(_ payload: JSONObject) throws -> JSONObject {
        try #require(payload["aps"]?.object?["alert"]?.object)
    }

    @Test func fullPayloadNamesServicePlaceAndAddress() throws {
        let payload = try payload(Sample.push(place: "Vienna, Austria"))
        #expect(
            try alert(payload) == [
                "title": "Example Bank", "loc-key": "TWOEFAY_LOGIN_SERVICE_PLACE_IP",
                "loc-args": ["Online banking", "Vienna, Austria", "203.0.113.77"],
            ])
        #expect(payload["challenge"] == .string(Sample.challenge))
        #expect(payload.names == ["aps", "challenge"])
    }

    @Test func everyPushIsTimeSensitiveAndOpensTheChallenge() throws {
        for detail in PushDetail.allCases {
            let aps = try #require(try payload(Sample.push(detail: detail))["aps"]?.object)
            #expect(aps["category"] == "TWOEFAY_LOGIN")
            #expect(aps["interruption-level"] == "time-sensitive")
            #expect(aps["mutable-content"] == 1)
            #expect(aps["sound"] == "default")
            #expect(Set(aps.names) == ["alert", "category", "interruption-level", "mutable-content", "sound"])
        }
    }

    @Test(arguments: [
        ("Mail" as String?, "192.0.2.1" as String?, "TWOEFAY_LOGIN_SERVICE_IP", ["Mail", "192.0.2.1"]),
        ("Mail", nil, "TWOEFAY_LOGIN_SERVICE", ["Mail"]), (nil, "2001:db8::1", "TWOEFAY_LOGIN_IP", ["2001:db8::1"]),
        (nil, nil, "TWOEFAY_LOGIN", []), ("", "", "TWOEFAY_LOGIN", []),
    ])
    func payloadTextOmitsUnknownParts(
        service: String?, ip: String?, key: String, arguments: [String]
    ) throws {
        let alert = try alert(try payload(Sample.push(service: service, ip: ip)))
        #expect(alert["loc-key"] == .string(key))
        #expect(alert["loc-args"]?.array?.compactMap(\.string) == arguments)
    }

    @Test func minimalPayloadIsConstant() throws {
        let one = APNsPayload.bytes(for: Sample.push(detail: .minimal, place: "Vienna"))
        let other = APNsPayload.bytes(
            for: Sample.push(detail: .minimal, website: "Another", service: nil, ip: nil))
        #expect(one == other)
        let text = String(decoding: one, as: UTF8.self)
        for reported in ["Example", "banking", "203.0.113.77", "Vienna"] { #expect(!text.contains(reported)) }
        #expect(
            try alert(try payload(Sample.push(detail: .minimal)))
                == ["title-loc-key": "TWOEFAY_TITLE", "loc-key": "TWOEFAY_LOGIN"])
    }

    @Test func longTextsAreShortened() throws {
        let long = String(repeating: "é", count: 5000)
        let alert = try alert(try payload(Sample.push(website: long, service: long)))
        #expect(alert["title"]?.string?.count == 256)
        #expect(alert["loc-args"]?.array?[0].string?.count == 256)
        #expect(alert["loc-args"]?.array?[1] == "203.0.113.77")
    }

    @Test func oversizedPayloadFallsBackToTheFixedText() throws {
        let family = String(repeating: "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}\u{200D}\u{1F466}", count: 256)
        let alert = try alert(try payload(Sample.push(website: family, service: family)))
        #expect(alert["loc-key"] == "TWOEFAY_LOGIN")
    }
}
