import Domain
import Synchronization
import TestSupport
import Testing

@testable import Relay

/// The cost of waiting, cancelling and waking. Each ticket is woken once.
struct HeldRequestsTests {
    private static let crowd = 90_000
    private let challenge: ChallengeID = Self.id(1)
    private let user: UserID = Self.id(2)

    /// Posted work, which runs when the test lets it.
    private final class Later: Sendable {
        private let work = Mutex<[@Sendable () -> Void]>([])
        func add(_ work: @escaping @Sendable () -> Void) { self.work.withLock { $0.append(work) } }

        func runOne() -> Bool {
            let next = work.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            next?()
            return next != nil
        }
    }

    private static func id<Thing>(_ number: Int) -> Identifier<Thing> {
        guard let id = Identifier<Thing>((0..<16).map { UInt8(truncatingIfNeeded: number >> ($0 % 4 * 8)) }) else {
            preconditionFailure("an id has 16 bytes")
        }
        return id
    }

    private func phone(_ number: Int) -> DeviceID { Self.id(number) }

    @Test(arguments: ["oldest first", "newest first", "mixed"]) func cancellingAHoldIsConstantTime(order: String) {
        let waits = HeldRequests()
        var tickets = (0..<Self.crowd).map { _ in waits.ticket(for: .challenge(challenge)) }
        switch order {
        case "newest first": tickets.reverse()
        case "mixed":
            var random = SeededRandomness(seed: 6)
            tickets.shuffle(using: &random)
        default: break
        }
        for ticket in tickets { ticket.cancel() }
        #expect(waits.isEmpty)
        #expect(waits.steps <= 2 * Self.crowd)
    }

    @Test func cancellingCostsOneStepPerEvent() {
        let waits = HeldRequests()
        let tickets = (0..<10_000).map { number in
            waits.ticket(for: [.user(user), .challenge(challenge)], newestOf: .phone(phone(number)))
        }
        for ticket in tickets.reversed() { ticket.cancel() }
        #expect(waits.isEmpty)
        #expect(waits.steps <= 6 * 10_000)
    }

    @Test func manyHoldsAreFiredInSlicesOnceEach() {
        let later = Later()
        let waits = HeldRequests(later: { later.add($0) })
        let woken = Mutex(0)
        let tickets = (0..<Self.crowd).map { _ in waits.ticket(for: .challenge(challenge)) }
        for ticket in tickets { ticket.arm { woken.withLock { $0 += 1 } } }
        waits.fire(.challenge(challenge))
        var slices = [woken.withLock { $0 }]
        while later.runOne() { slices.append(woken.withLock { $0 } - slices.reduce(0, +)) }
        #expect(slices.allSatisfy { $0 <= HeldRequests.slice })
        #expect(woken.withLock { $0 } == Self.crowd)
        #expect(waits.isEmpty)
        #expect(tickets.allSatisfy { $0.hasHappened })
        #expect(waits.steps <= 4 * Self.crowd)
    }

    @Test func holdsAddedOrRemovedBetweenSlicesAreNotFired() {
        let later = Later()
        let waits = HeldRequests(later: { later.add($0) })
        let woken = Mutex<Set<Int>>([])
        let tickets = (0..<1000).map { number in
            let ticket = waits.ticket(for: .challenge(challenge))
            ticket.arm { woken.withLock { _ = $0.insert(number) } }
            return ticket
        }
        waits.fire(.challenge(challenge))
        let late = waits.ticket(for: .challenge(challenge))
        late.arm { woken.withLock { _ = $0.insert(-1) } }
        for ticket in tickets.suffix(10) { ticket.cancel() }
        while later.runOne() {}
        #expect(woken.withLock { $0 } == Set(0..<990))
        #expect(waits.count == 1)
        #expect(!late.hasHappened)
        waits.fire(.challenge(challenge))
        #expect(late.hasHappened && waits.isEmpty)
    }

    @Test func holdsMayCancelWhileTheirListFires() {
        let later = Later()
        let waits = HeldRequests(later: { later.add($0) })
        let tickets = (0..<1000).map { _ in waits.ticket(for: .challenge(challenge)) }
        waits.fire(.challenge(challenge))
        for ticket in tickets { ticket.cancel() }
        #expect(waits.isEmpty)
        while later.runOne() {}
        let next = waits.ticket(for: .challenge(challenge))
        waits.fire(.challenge(challenge))
        #expect(next.hasHappened && waits.isEmpty)
    }

    @Test func firstEventRemovesTheHoldFromAllLists() {
        let waits = HeldRequests()
        let both = waits.ticket(for: [.user(user), .challenge(challenge)], newestOf: .phone(phone(1)))
        let one = waits.ticket(for: [.user(user)], newestOf: .phone(phone(2)))
        waits.fire(.user(user), besides: .challenge(challenge))
        #expect(one.hasHappened && !both.hasHappened)
        #expect(waits.count == 1)
        #expect(waits.ticket(again: [.user(user)], newestOf: .phone(phone(1))) == nil)
        let newer = waits.ticket(for: [.user(user)], newestOf: .phone(phone(1)))
        #expect(!both.hasHappened && waits.count == 1)
        waits.fire(.challenge(challenge))
        #expect(!newer.hasHappened)
        waits.fire(.phone(phone(1)))
        #expect(newer.hasHappened && waits.isEmpty)
    }
}
