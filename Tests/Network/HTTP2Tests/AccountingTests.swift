import Testing
import World

@testable import HTTP2

private func at(_ seconds: Double) -> Instant { Instant(nanoseconds: Int64(seconds * 1e9)) }

struct AbuseBudgetTests {
    @Test func abuseBudgetIsUsedUpAndRefills() {
        var budget = AbuseBudget(capacity: 100, perSecond: 10, now: at(0))
        var withinBudget = (0..<10).map { _ in budget.charge(AbuseBudget.reset, now: at(0)) }
        #expect(!withinBudget.contains(false))
        let over = budget.charge(1, now: at(0))
        #expect(!over)
        // A charge over the budget becomes a debt.
        withinBudget = (0..<9).map { _ in budget.charge(1, now: at(1)) }
        #expect(!withinBudget.contains(false))
        let again = budget.charge(1, now: at(1))
        #expect(!again)
    }

    @Test func earnedBudgetIsCappedAtTheCapacity() {
        var budget = AbuseBudget(capacity: 10, perSecond: 0, now: at(0))
        for _ in 0..<100 { budget.earn() }
        let all = budget.charge(10, now: at(0))
        let more = budget.charge(1, now: at(0))
        #expect(all && !more)
    }
}

struct FrameScannerTests {
    /// Heads of frames of many lengths.
    private let heads: [FrameScanner.Head] = (0..<40).map {
        let (type, length) = (UInt8($0 % 11), $0 * $0 % 37)
        // The prefix of padded DATA is the length of the padding. The prefix of PRIORITY is the
        // dependency.
        let flags = type == 0 ? FrameScanner.Head.padded : UInt8($0 % 3)
        let prefix: UInt32 = type == 0 && length > 0 ? 0xbb : type == 2 && length > 3 ? 0xbbbb_bbbb : 0
        return .init(type: type, flags: flags, length: length, stream: 1, prefix: prefix)
    }

    private var bytes: [UInt8] {
        var bytes = [UInt8](repeating: 0xaa, count: FrameScanner.preface)
        for head in heads {
            bytes += [0, UInt8(head.length >> 8), UInt8(head.length & 0xff), head.type, head.flags, 0, 0, 0, 1]
            bytes += [UInt8](repeating: 0xbb, count: head.length)
        }
        return bytes
    }

    @Test(arguments: [1, 2, 3, 7, 8, 9, 10, 64, 100_000]) func fragmentedReadsGiveTheSameFrames(size: Int) {
        var scanner = FrameScanner(skipping: FrameScanner.preface)
        var seen: [FrameScanner.Head] = []
        let bytes = bytes
        for start in stride(from: 0, to: bytes.count, by: size) {
            Array(bytes[start..<min(start + size, bytes.count)]).withUnsafeBytes { part in
                var at = 0
                while let head = scanner.next(part, &at) { seen.append(head) }
            }
        }
        #expect(seen == heads)
    }

    @Test func onlyFramesWithoutARequestAreCharged() {
        func cost(_ type: UInt8, flags: UInt8 = 0, length: Int = 8) -> Int {
            FrameScanner.Head(type: type, flags: flags, length: length).cost
        }
        #expect(cost(1) == 0)
        #expect(cost(0, length: 1000) == 0)
        #expect(cost(0, flags: 1, length: 0) == 0)
        #expect(cost(0, length: 0) > 0)
        // DATA that consists of padding has no content, so it costs.
        let padded = FrameScanner.Head(type: 0, flags: FrameScanner.Head.padded, length: 256, prefix: 255)
        #expect(padded.cost > 0)
        #expect(cost(1, flags: FrameScanner.Head.padded) > 0)
        for type: UInt8 in [2, 3, 4, 6, 8, 9, 200] { #expect(cost(type) > 0, "\(type)") }
        #expect(cost(3) > cost(6))
    }
}

struct ConnectionClockTests {
    private let limits = ServerLimits()

    private func connected() -> ConnectionClock {
        var clock = ConnectionClock(limits: limits, now: at(0))
        clock.handshakeEnded(at(0))
        clock.settingsAcknowledged()
        return clock
    }

    @Test func handshakeTimesOut() {
        var clock = ConnectionClock(limits: limits, now: at(0))
        var verdict = clock.verdict(at(9.9), sent: 0, oldestRequest: nil, isIdle: true)
        #expect(verdict == .fine(askAgain: at(10)))
        verdict = clock.verdict(at(10), sent: 0, oldestRequest: nil, isIdle: true)
        #expect(verdict == .overdue(.handshake))
    }

    /// The wait has the same bound as the handshake and does not reduce the client's time.
    @Test func queuedHandshakeTimeIsNotChargedToTheClient() {
        var clock = ConnectionClock(limits: limits, now: at(0))
        var verdict = clock.verdict(at(10), sent: 0, oldestRequest: nil, isIdle: true)
        #expect(verdict == .overdue(.handshake))
        clock.handshakeWaited(.seconds(8))
        verdict = clock.verdict(at(10), sent: 0, oldestRequest: nil, isIdle: true)
        #expect(verdict == .fine(askAgain: at(18)))
        verdict = clock.verdict(at(18), sent: 0, oldestRequest: nil, isIdle: true)
        #expect(verdict == .overdue(.handshake))
    }

    @Test func unacknowledgedSettingsTimeOut() {
        var clock = ConnectionClock(limits: limits, now: at(0))
        clock.handshakeEnded(at(2))
        var verdict = clock.verdict(at(2), sent: 0, oldestRequest: nil, isIdle: true)
        #expect(verdict == .fine(askAgain: at(12)))
        verdict = clock.verdict(at(12), sent: 0, oldestRequest: nil, isIdle: true)
        #expect(verdict == .overdue(.settings))
    }

    @Test func incompleteRequestTimesOut() {
        var clock = connected()
        var verdict = clock.verdict(at(30), sent: 0, oldestRequest: at(1), isIdle: false)
        #expect(verdict == .fine(askAgain: at(61)))
        verdict = clock.verdict(at(61), sent: 0, oldestRequest: at(1), isIdle: false)
        #expect(verdict == .overdue(.request))
    }

    @Test func slowReaderTimesOut() {
        var clock = connected()
        let isNew = clock.pending(sent: 5000, now: at(1))
        #expect(isNew)
        var verdict = clock.verdict(at(31), sent: 5030, oldestRequest: nil, isIdle: false)
        #expect(verdict == .overdue(.write))
        // A client that reads enough gets the same time again.
        verdict = clock.verdict(at(31), sent: 9000, oldestRequest: nil, isIdle: false)
        #expect(verdict == .fine(askAgain: at(61)))
        let stillNew = clock.pending(sent: 9500, now: at(40))
        #expect(!stillNew)
        _ = clock.pending(sent: nil, now: at(50))
        verdict = clock.verdict(at(61), sent: 9500, oldestRequest: nil, isIdle: false)
        #expect(verdict == .fine(askAgain: at(241)))
    }

    @Test func idleTimeoutCountsFromTheLastFrame() {
        var clock = connected()
        clock.active(at(100))
        var verdict = clock.verdict(at(150), sent: 0, oldestRequest: nil, isIdle: true)
        #expect(verdict == .fine(askAgain: at(280)))
        verdict = clock.verdict(at(280), sent: 0, oldestRequest: nil, isIdle: false)
        #expect(verdict == .fine(askAgain: at(460)), "a held request is not idle")
        verdict = clock.verdict(at(280), sent: 0, oldestRequest: nil, isIdle: true)
        #expect(verdict == .overdue(.idle))
    }
}

struct HTTPDateTests {
    @Test func dateHasTheIMFFixdateForm() {
        #expect(Timestamp(seconds: 784_111_777).httpDate == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(Timestamp(seconds: 0).httpDate == "Thu, 01 Jan 1970 00:00:00 GMT")
        #expect(Timestamp(seconds: 1_709_210_096).httpDate == "Thu, 29 Feb 2024 12:34:56 GMT")
    }
}
