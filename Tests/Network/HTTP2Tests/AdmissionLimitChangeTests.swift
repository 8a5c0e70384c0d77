import EventLoop
import Testing
import World

@testable import HTTP2

/// Limits that change while connections are open: a reload of the settings.
struct AdmissionLimitChangeTests {
    private static let start = Instant(nanoseconds: 1)

    private func source(_ number: Int) throws -> Source {
        Source(try #require(SocketAddress(host: "127.0.0.\(number)", port: 1)))
    }

    private func admit(_ table: inout AdmissionTable, _ source: Source, at now: Instant = start) -> Int? {
        guard case .admitted(let slot, let ended) = table.admit(source, at: now) else { return nil }
        for one in ended { table.release(one.slot) }
        return slot
    }

    @Test func higherLimitOfASourceHoldsAtOnce() throws {
        var table = AdmissionTable(AdmissionLimits(total: 64, perSource: 2))
        for _ in 0..<5 { _ = admit(&table, try source(1)) }
        #expect(table.count(of: try source(1)) == 2)
        table.replace(AdmissionLimits(total: 400, perSource: 80), at: Self.start)
        for _ in 0..<78 { _ = admit(&table, try source(1)) }
        #expect(table.count(of: try source(1)) == 80 && table.counts.unidentified == 80)
        _ = admit(&table, try source(1))
        #expect(table.count(of: try source(1)) == 80)
    }

    /// A lower limit ends nothing by itself; each new connection then replaces one.
    @Test func lowerLimitKeepsOpenConnections() throws {
        var table = AdmissionTable(AdmissionLimits(total: 400))
        for number in 1...40 { _ = admit(&table, try source(number)) }
        let phone = try #require(admit(&table, try source(50)))
        #expect(table.identified(phone, as: .phone([1])).kept == nil)
        let lower = AdmissionLimits(total: 64, perSource: 1)
        table.replace(lower, at: Self.start)
        #expect(table.counts.unidentified == 40 && table.counts.phones == 1)
        #expect(admit(&table, try source(60)) != nil)
        #expect(table.counts.unidentified == 40)
        // The share of websites is the new one.
        for number in 0...lower.perWebsite {
            let slot = try #require(admit(&table, try source(61)))
            #expect((table.identified(slot, as: .website([2])).kept == nil) == (number < lower.perWebsite))
        }
    }

    @Test func shorterTimeHoldsForOpenConnectionsAndALongerOneForNewOnes() throws {
        var limits = AdmissionLimits(total: 400)
        limits.firstRequest = .seconds(30)
        limits.unidentifiedLife = .seconds(120)
        var table = AdmissionTable(limits)
        let (silent, asking) = (try #require(admit(&table, try source(1))), try #require(admit(&table, try source(2))))
        table.requested(asking, at: Self.start)
        limits.firstRequest = .seconds(5)
        limits.unidentifiedLife = .seconds(10)
        table.replace(limits, at: Self.start)
        #expect(table.overdue(at: Self.start + .seconds(4)) == [])
        #expect(table.overdue(at: Self.start + .seconds(5)).map(\.slot) == [silent])
        #expect(table.overdue(at: Self.start + .seconds(10)).map(\.slot) == [asking])
        table.release(silent)
        table.release(asking)

        let before = try #require(admit(&table, try source(3)))
        limits.firstRequest = .seconds(60)
        table.replace(limits, at: Self.start)
        let after = try #require(admit(&table, try source(4)))
        #expect(table.overdue(at: Self.start + .seconds(59)).map(\.slot) == [before])
        #expect(table.overdue(at: Self.start + .seconds(60)).map(\.slot) == [after])
    }

    @Test func handshakesFollowTheNewRate() throws {
        var limits = AdmissionLimits(total: 64)
        limits.handshakesPerSecond = 1
        var table = AdmissionTable(limits)
        let slot = try #require(admit(&table, try source(1)))
        /// Takes all handshakes that the source may begin at once.
        func taken(at now: Instant) -> Int {
            var count = 0
            while count < 10_000, case .begin = table.takeHandshake(slot, at: now) { count += 1 }
            return count
        }
        #expect(taken(at: Self.start) == limits.handshakesAtOnce)
        limits.handshakesPerSecond = 50
        table.replace(limits, at: Self.start)
        // Everything that was taken before is paid for by then.
        #expect(taken(at: Self.start + .seconds(60)) == limits.handshakesAtOnce)
    }

    @Test func balancersAreReplaced() throws {
        let (first, second) = (try #require(AddressRange("10.0.0.5")), try #require(AddressRange("fd00::/64")))
        let proxies = Proxies([first])
        let (one, other) = (
            try #require(SocketAddress(host: "10.0.0.5", port: 1)),
            try #require(SocketAddress(host: "fd00::1", port: 1))
        )
        #expect(proxies.contain(one) && !proxies.contain(other))
        proxies.replace([second])
        #expect(!proxies.contain(one) && proxies.contain(other))
    }
}
