import Domain
import JSON
import Pushes
import Relay
import TestSupport
import Testing
import World

@testable import Couriers

/// The pushes in docs/phones/device-protocol.md, compared byte by byte with the sent ones.
struct ProtocolPagePushTests {
    @Test(
        arguments: [
            ("push payload", PushDetail.full, APNsPayload.bytes), ("minimal push payload", .minimal, APNsPayload.bytes),
            ("web push payload", .full, \.webPayload), ("minimal web push payload", .minimal, \.webPayload),
            ("android push data", .full, { JSONWriter.write($0.message.data) }),
            ("minimal android push data", .minimal, { JSONWriter.write($0.message.data) }),
        ] as [(String, PushDetail, @Sendable (Push) -> [UInt8])])
    func protocolPageShowsACompletePush(name: String, detail: PushDetail, payload: @Sendable (Push) -> [UInt8]) throws {
        let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        let page = try TextFile.read("\(root)/docs/phones/device-protocol.md").split(separator: "\n")
        let start = try #require(page.firstIndex(of: "```json \(name)"))
        let push = Push(
            id: try #require(OutboxEntryID("0123456789abcdef0123456789abcdef")),
            challenge: try #require(ChallengeID("9a41d7c05b3e4f6a8c1d2e3f4a5b6c7d")),
            user: try #require(UserID(Sample.user)), device: try #require(DeviceID(Sample.device)),
            deviceToken: Sample.token,
            environment: .production, detail: detail, website: "The Shop", service: "members", ip: "192.0.2.7",
            place: "Berlin, DE", askedAt: Timestamp(milliseconds: 1_800_000_000_999),
            expiresAt: Timestamp(milliseconds: 1_800_000_300_999))
        #expect(String(decoding: payload(push), as: UTF8.self) == page[start + 1])
        #expect(page[start + 2] == "```")
    }
}
