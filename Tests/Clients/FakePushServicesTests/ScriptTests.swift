import EventLoop
import Testing
import World

@testable import FakePushServices

@Suite struct ScriptTests {
    private func reason(_ answer: ScriptedAnswer?) -> RefusalReason? {
        if case .refuse(let reason, _, _) = answer { reason } else { nil }
    }

    @Test func answersAreUsedUpInTurn() {
        var script = Script()
        script.set("ab", [.refuse(.shutdown), .refuse(.badTopic)], repeatsLast: false)
        #expect(reason(script.take(for: "abc")) == .shutdown)
        #expect(reason(script.take(for: "cd")) == nil)
        #expect(reason(script.take(for: "abd")) == .badTopic)
        #expect(reason(script.take(for: "abc")) == nil)
    }

    @Test func lastAnswerRepeats() {
        var script = Script()
        script.set("ab", [.accept, .refuse(.badTopic)], repeatsLast: true)
        #expect((0..<4).map { _ in reason(script.take(for: "ab")) } == [nil, .badTopic, .badTopic, .badTopic])
        script.set("ab", [], repeatsLast: false)
        #expect(reason(script.take(for: "ab")) == nil)
    }

    @Test func longestTokenPrefixApplies() {
        var script = Script()
        script.set("", [.refuse(.shutdown)], repeatsLast: true)
        script.set("a", [.refuse(.badTopic)], repeatsLast: true)
        script.set("abc", [.refuse(.unregistered)], repeatsLast: true)
        #expect(reason(script.take(for: "abcd")) == .unregistered)
        #expect(reason(script.take(for: "abd")) == .badTopic)
        #expect(reason(script.take(for: "d")) == .shutdown)
    }
}

@Suite struct MailboxTests {
    @Test func mailboxKeepsOrderAndTimesOut() async throws {
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        let box = Mailbox<Int>(loop: group.loops[0])
        await #expect(throws: MailboxTimeout(within: .milliseconds(10))) {
            try await box.next(within: .milliseconds(10))
        }
        box.put(1)
        box.put(2)
        #expect(try await box.next(within: .seconds(120)) == 1)
        #expect(try await box.next(within: .seconds(120)) == 2)
        async let third = box.next(within: .seconds(120))
        box.put(3)
        #expect(try await third == 3, "whoever gave up takes nothing away")
    }
}
