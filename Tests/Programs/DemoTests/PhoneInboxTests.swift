import EventLoop
import JSON
import Testing
import World

@testable import Demo

struct PhoneInboxTests {
    private func texts(of count: Int, offline: Bool) throws -> [String] {
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        let loop = group.loops[0]
        let inbox = PhoneInbox(loop: loop, feed: ActivityFeed(loop: loop), randomness: SystemRandomness())
        inbox.setOnline(!offline)
        for number in 1...count { inbox.deliver("sms", from: "shop", to: "ada", text: "\(number)", by: .textGateway) }
        if offline {
            #expect(inbox.messages(for: 1, after: 0).messages.isEmpty)
            inbox.setOnline(true)
        }
        return inbox.messages(for: 1, after: 0).messages.compactMap { $0.object?["text"]?.string }
    }

    @Test(arguments: [false, true]) func messagesArriveInOrder(offline: Bool) throws {
        #expect(try texts(of: 3, offline: offline) == ["1", "2", "3"])
    }

    /// The inbox stays bounded, however many messages arrive.
    @Test(arguments: [false, true]) func oldestMessageIsDroppedWhenFull(offline: Bool) throws {
        let most = PhoneInbox.most
        #expect(try texts(of: most + 5, offline: offline) == (6...most + 5).map { "\($0)" })
    }
}
