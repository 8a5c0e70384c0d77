import EventLoop
import TestSupport
import Testing
import World

@testable import HTTP2

/// An admission table, its clock, and the connections that it ended. A slot is reused, so `ended`
/// holds the slots whose latest connection was ended, and `history` all ends in order.
private final class Admissions {
    var table: AdmissionTable
    var now = Instant(nanoseconds: 1)
    var ended: Set<Int> = []
    var history: [Int] = []

    init(_ limits: AdmissionLimits) { table = AdmissionTable(limits) }

    /// Admits a connection and immediately closes the connections that it replaces.
    func admit(_ source: Source?) -> Int? {
        guard case .admitted(let slot, let ended) = table.admit(source, at: now) else { return nil }
        self.ended.remove(slot)
        close(ended)
        return slot
    }

    func close(_ all: [AdmissionTable.Ended]) {
        for one in all {
            ended.insert(one.slot)
            history.append(one.slot)
            table.release(one.slot)
        }
    }

    func identify(_ slot: Int, as identity: AdmissionTable.Identity) -> Bool {
        let (ended, kept) = table.identified(slot, as: identity)
        close(ended)
        return kept == nil
    }
}

private func source(_ host: String) -> Source {
    guard let address = SocketAddress(host: host, port: 1) else { preconditionFailure(host) }
    return Source(address)
}

private func source(number: Int) -> Source { source("127.\(number >> 16 & 255).\(number >> 8 & 255).\(number & 255)") }

private func key(_ number: Int) -> [UInt8] { withUnsafeBytes(of: number) { Array($0) } }

struct AdmissionTableTests {
    /// The limits of relays with 1,024 and 16,384 descriptors.
    @Test(arguments: [(896, 1_100, 1), (15_872, 20_000, 2_000)])
    func floodLeavesCapacityForWebsitesAndPhones(total: Int, attempts: Int, sources: Int) {
        let limits = AdmissionLimits(total: total)
        let admissions = Admissions(limits)
        for attempt in 0..<attempts { _ = admissions.admit(source(number: 256 + attempt % sources)) }
        #expect(admissions.table.counts.unidentified <= limits.unidentified)
        for number in 0..<220 {
            // The phones share an address with the flood.
            let isWebsite = number < 20
            let newcomer = admissions.admit(isWebsite ? source("192.0.2.\(number)") : source(number: 256))
            guard let newcomer else {
                Issue.record("newcomer \(number) was refused")
                return
            }
            for attempt in 0..<20 { _ = admissions.admit(source(number: 256 + attempt % sources)) }
            #expect(!admissions.ended.contains(newcomer))
            let isIdentified = admissions.identify(
                newcomer, as: isWebsite ? .website(key(number % 3)) : .phone(key(number)))
            #expect(isIdentified, "newcomer \(number)")
        }
        #expect(admissions.table.counts.websites == 20 && admissions.table.counts.phones == 200)
        #expect(admissions.table.counts.total <= limits.total)
    }

    /// The flood opens ten connections from the same address between two steps of each phone. One
    /// of eight starts a handshake.
    @Test func twoThousandPhonesAreIdentifiedDuringAFloodFromTheirAddress() {
        let admissions = Admissions(AdmissionLimits(total: 15_872))
        let carrier = source("198.51.100.1")
        var arrived = 0
        func flood(_ admissions: Admissions) {
            for _ in 0..<10 {
                let slot = admissions.admit(carrier)
                arrived += 1
                if arrived.isMultiple(of: 8), let slot {
                    _ = admissions.table.takeHandshake(slot, at: admissions.now)
                }
            }
        }
        var served = 0
        for phone in 0..<2_000 {
            guard let slot = admissions.admit(carrier) else { continue }
            flood(admissions)
            guard admissions.table.takeHandshake(slot, at: admissions.now) == .begin else { continue }
            flood(admissions)
            admissions.table.requested(slot, at: admissions.now)
            flood(admissions)
            guard !admissions.ended.contains(slot), admissions.identify(slot, as: .phone(key(phone))) else { continue }
            served += 1
            admissions.now = admissions.now + .milliseconds(50)
        }
        #expect(served == 2_000)
        #expect(admissions.table.counts.phones == 2_000)
        #expect(arrived == 60_000)
    }

    @Test func mostCrowdedSourceLosesItsOldestConnection() {
        var limits = AdmissionLimits(total: 64)
        limits.perSource = 12
        let admissions = Admissions(limits)
        let crowd = (0..<12).compactMap { _ in admissions.admit(source("192.0.2.1")) }
        let few = (0..<4).compactMap { admissions.admit(source("192.0.2.\(2 + $0)")) }
        #expect(admissions.table.counts.unidentified == limits.unidentified)
        // The largest source loses its oldest connections until it has as many as the others.
        for number in 0..<11 { _ = admissions.admit(source("198.51.100.\(number)")) }
        #expect(admissions.history == Array(crowd.prefix(11)))
        #expect(few.allSatisfy { !admissions.history.contains($0) })
        #expect(admissions.table.count(of: source("192.0.2.1")) == 1)
    }

    @Test func firstRequestRenewsTheConnectionsAge() {
        var limits = AdmissionLimits(total: 64)
        limits.perSource = 3
        let admissions = Admissions(limits)
        let slots = (0..<3).compactMap { _ in admissions.admit(source("192.0.2.1")) }
        admissions.table.requested(slots[0], at: admissions.now)
        admissions.table.requested(slots[0], at: admissions.now)
        _ = admissions.admit(source("192.0.2.1"))
        #expect(admissions.ended == [slots[1]])
        // A second request does not renew the age.
        _ = admissions.admit(source("192.0.2.1"))
        admissions.table.requested(slots[0], at: admissions.now)
        _ = admissions.admit(source("192.0.2.1"))
        #expect(admissions.ended.contains(slots[0]))
    }

    @Test func networkOfIPv6IsOneSource() {
        #expect(source("2001:db8:1:2::1") == source("2001:db8:1:2:ffff::9"))
        #expect(source("2001:db8:1:2::1") != source("2001:db8:1:3::1"))
        #expect(source("192.0.2.1") != source("192.0.2.2"))
        #expect(source("::ffff:192.0.2.1") == source("192.0.2.1"))
    }

    @Test func handshakesOfASourceAreLimited() {
        var limits = AdmissionLimits(total: 400)
        limits.handshakesPerSecond = 3
        let admissions = Admissions(limits)
        func begun(_ host: String) -> Int {
            (0..<40).filter { _ in
                guard let slot = admissions.admit(source(host)) else { return false }
                defer { admissions.table.release(slot) }
                return admissions.table.takeHandshake(slot, at: admissions.now) == .begin
            }.count
        }
        #expect(begun("192.0.2.1") == 30)
        // New connections do not refill the budget, and other sources have their own.
        #expect(begun("192.0.2.1") == 0)
        #expect(begun("192.0.2.2") == 30)
        admissions.now = admissions.now + .seconds(2)
        #expect(begun("192.0.2.1") == 6)
    }

    /// The returned time is exact, and calls before it do not delay the refill.
    @Test(arguments: [1, 3, 7, 200, 100_000]) func emptyBudgetReturnsTheTimeOfTheNextHandshake(rate: Int) {
        var limits = AdmissionLimits(total: 400)
        limits.handshakesPerSecond = rate
        let admissions = Admissions(limits)
        guard let slot = admissions.admit(source("192.0.2.1")) else {
            Issue.record("refused")
            return
        }
        let start = admissions.now
        var taken = 0
        while taken < limits.handshakesAtOnce + 10 * rate {
            switch admissions.table.takeHandshake(slot, at: admissions.now) {
            case .begin: taken += 1
            case .putOff(let moment):
                let early = admissions.now + (moment - admissions.now) * 0.75
                #expect(admissions.table.takeHandshake(slot, at: early) == .putOff(until: moment))
                admissions.now = moment
            case .drop: Issue.record("dropped")
            }
        }
        let passed = (admissions.now - start).wholeMilliseconds
        #expect((9_000...10_000).contains(passed))
    }

    @Test func onlyUnidentifiedConnectionsNeedBudget() {
        var limits = AdmissionLimits(total: 64)
        limits.handshakesPerSecond = 1
        limits.perSource = 1
        let admissions = Admissions(limits)
        guard let phone = admissions.admit(source("192.0.2.1")) else { return }
        for _ in 0..<limits.handshakesAtOnce { _ = admissions.table.takeHandshake(phone, at: admissions.now) }
        #expect(
            admissions.table.takeHandshake(phone, at: admissions.now) == .putOff(until: admissions.now + .seconds(1)))
        #expect(admissions.identify(phone, as: .phone(key(1))))
        #expect(admissions.table.takeHandshake(phone, at: admissions.now) == .begin)
        // The table has ended this connection for a newer one, and its loop has not closed it yet.
        guard case .admitted(let old, _) = admissions.table.admit(source("192.0.2.1"), at: admissions.now) else {
            return
        }
        _ = admissions.table.admit(source("192.0.2.1"), at: admissions.now + .seconds(9))
        #expect(admissions.table.takeHandshake(old, at: admissions.now + .seconds(9)) == .drop)
    }

    @Test func connectionsEndInTimeUnlessIdentified() {
        let admissions = Admissions(AdmissionLimits(total: 64))
        let slots = (0..<4).compactMap { admissions.admit(source("192.0.2.\($0)")) }
        admissions.table.requested(slots[1], at: admissions.now)
        #expect(admissions.identify(slots[2], as: .phone(key(1))))
        #expect(admissions.identify(slots[3], as: .website(key(1))))
        func overdue(after duration: Duration) -> [AdmissionTable.Ended] {
            admissions.table.overdue(at: Instant(nanoseconds: 1) + duration)
        }
        #expect(overdue(after: .seconds(29)) == [])
        #expect(overdue(after: .seconds(30)) == [.init(slot: slots[0], reason: .request)])
        // A connection is reported once and counted until it is closed.
        #expect(overdue(after: .seconds(30)) == [] && admissions.table.counts.unidentified == 2)
        #expect(overdue(after: .seconds(120)) == [.init(slot: slots[1], reason: .lifetime)])
        #expect(overdue(after: .seconds(100_000)) == [])
    }

    @Test func phoneKeepsItsNewestConnections() {
        var limits = AdmissionLimits(total: 64)
        limits.perPhone = 2
        let admissions = Admissions(limits)
        var slots: [Int] = []
        for _ in 0..<4 {
            guard let slot = admissions.admit(source("192.0.2.1")) else { continue }
            slots.append(slot)
            #expect(admissions.identify(slot, as: .phone(key(1))))
        }
        #expect(slots.count == 4 && admissions.table.counts.phones == 2)
    }

    @Test func callerBeyondItsShareStaysUnidentified() {
        let limits = AdmissionLimits(total: 64)
        let admissions = Admissions(limits)
        for number in 0..<limits.phones {
            guard let slot = admissions.admit(source(number: 256 + number)) else { continue }
            #expect(admissions.identify(slot, as: .phone(key(number))))
        }
        let late = admissions.admit(source("192.0.2.1"))
        #expect(late.map { admissions.identify($0, as: .phone(key(-1))) } == false)
        #expect(admissions.table.counts.unidentified == 1)
        // The slots of websites stay free. One website may use half of them.
        for number in 0..<limits.websites {
            guard let slot = admissions.admit(source("198.51.100.1")) else { continue }
            let isIdentified = admissions.identify(slot, as: .website(key(1)))
            #expect(isIdentified == (number < limits.perWebsite))
        }
        let other = admissions.admit(source("198.51.100.2"))
        #expect(other.map { admissions.identify($0, as: .website(key(2))) } == true)
    }

    @Test func proxiedConnectionsHaveTheirOwnShareUntilTheProxyHeader() {
        let limits = AdmissionLimits(total: 64)
        let admissions = Admissions(limits)
        let slots = (0..<(limits.introductions + 3)).compactMap { _ in admissions.admit(nil) }
        #expect(admissions.table.counts.introducing == limits.introductions && admissions.history.count == 3)
        guard let last = slots.last else { return }
        let decision = admissions.table.proxyHeaderRead(last, as: source("192.0.2.1"), at: admissions.now)
        #expect(decision == .admitted(slot: last, ended: []))
        #expect(admissions.table.counts.introducing == limits.introductions - 1)
        #expect(admissions.table.count(of: source("192.0.2.1")) == 1)
    }

    /// Connections that were ended but not yet closed still count.
    @Test func newConnectionsAreRefusedWhileTooManyAreClosing() {
        let limits = AdmissionLimits(total: 64)
        var table = AdmissionTable(limits)
        let now = Instant(nanoseconds: 1)
        var outcomes: [AdmissionTable.Decision] = []
        for _ in 0..<100 { outcomes.append(table.admit(source("192.0.2.1"), at: now)) }
        #expect(table.counts.closing == limits.closing && table.counts.total <= limits.total)
        #expect(outcomes.last == .refused(.closing))
    }

    @Test(arguments: 0..<8) func sharesHoldUnderRandomLoad(seed: UInt64) {
        let randomness = SeededRandomness(seed: seed)
        var limits = AdmissionLimits(total: 96)
        limits.perPhone = 3
        var table = AdmissionTable(limits)
        var open: [Int] = []
        var closing: [Int] = []
        var now = Instant(nanoseconds: 1)
        func take(_ ended: [AdmissionTable.Ended]) {
            for one in ended {
                open.removeAll { $0 == one.slot }
                closing.append(one.slot)
            }
        }
        func pick(_ count: Int) -> Int { Int(randomness.next() % UInt64(count)) }
        for _ in 0..<4_000 {
            switch pick(9) {
            case 0...3:
                let from: Source? = pick(6) == 0 ? nil : source(number: 256 + pick(pick(2) == 0 ? 3 : 400))
                if case .admitted(let slot, let ended) = table.admit(from, at: now) {
                    take(ended)
                    open.append(slot)
                }
            case 4 where !open.isEmpty:
                let slot = open[pick(open.count)]
                if case .admitted(_, let ended) = table.proxyHeaderRead(
                    slot, as: source(number: 256 + pick(9)), at: now)
                {
                    take(ended)
                }
            case 5 where !open.isEmpty: table.requested(open[pick(open.count)], at: now)
            case 6 where !open.isEmpty:
                let slot = open[pick(open.count)]
                take(table.identified(slot, as: pick(3) == 0 ? .website(key(pick(3))) : .phone(key(pick(40)))).ended)
            case 7 where !open.isEmpty: table.release(open.remove(at: pick(open.count)))
            default:
                now = now + .milliseconds(Int64(pick(500)))
                _ = table.overdue(at: now)
                for slot in closing { table.release(slot) }
                closing = []
            }
            let counts = table.counts
            #expect(counts.unidentified <= limits.unidentified && counts.introducing <= limits.introductions)
            #expect(counts.phones <= limits.phones && counts.websites <= limits.websites)
            #expect(counts.closing <= limits.closing && counts.total == open.count + closing.count)
        }
        for slot in open + closing { table.release(slot) }
        #expect(table.counts == AdmissionTable.Counts())
    }
}

struct MemoryReturnTests {
    @Test func memoryIsReturnedOnceAfterALargeFall() {
        var memory = MemoryTrimmer()
        memory.grown(to: 1_000)
        var returned: [Int] = []
        for count in stride(from: 999, through: 0, by: -1) where memory.shrunk(to: count) { returned.append(count) }
        #expect(returned == [500, 244])
        for count in 1...100 { memory.grown(to: count) }
        let isReturned = memory.shrunk(to: 0)
        #expect(!isReturned)
    }
}
