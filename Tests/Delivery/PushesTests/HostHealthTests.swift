import Testing
import World

@testable import Pushes

@Suite struct HostHealthTests {
    private static let trial = Duration.seconds(4)

    private func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

    private func requestOpening(
        _ book: inout HostHealth, _ addresses: [String] = ["a", "b"], own: [String] = [], at now: Int64 = 0
    ) -> HostHealth.ConnectDecision {
        book.requestOpening(addresses, own: own, at: at(now), trial: Self.trial)
    }

    private func failed(
        _ book: inout HostHealth, _ address: String, wasOpen: Bool = false, began: Int64? = nil, at now: Int64
    ) -> Duration {
        book.failed(
            address, "refused", wasOpen: wasOpen, began: at(began ?? now), at: at(now), HighestChance())
    }

    @Test func newConnectionUsesTheLeastUsedAddress() {
        var book = HostHealth()
        #expect(requestOpening(&book) == .go("a"))
        #expect(requestOpening(&book) == .go("b"))
        #expect(requestOpening(&book) == .go("a"))
        book.ended("a", wasOpen: false)
        book.ended("a", wasOpen: false)
        #expect(requestOpening(&book) == .go("a"))
        #expect(requestOpening(&book, ["c", "a", "b"]) == .go("c"), "the name has another address now")
    }

    @Test func connectionsOfAPoolUseDifferentAddresses() {
        var book = HostHealth()
        for _ in 0..<3 { #expect(requestOpening(&book, ["b"]) == .go("b")) }
        #expect(requestOpening(&book, own: ["a"]) == .go("b"), "though many go there")
        #expect(requestOpening(&book, ["a"], own: ["a"]) == .go("a"), "there is no other")
    }

    @Test func failingAddressBacksOffExponentially() {
        var book = HostHealth()
        #expect(requestOpening(&book) == .go("a"))
        #expect(failed(&book, "a", at: 0) == .milliseconds(1500))
        #expect(requestOpening(&book, at: 1) == .go("b"))
        #expect(requestOpening(&book, at: 1) == .go("b"))
        #expect(requestOpening(&book, ["a"], at: 1499) == .wait(until: at(1500)))
        #expect(requestOpening(&book, ["a"], at: 1500) == .go("a"))
        #expect(failed(&book, "a", at: 1600) == .seconds(3))
        #expect(requestOpening(&book, ["a"], at: 4599) == .wait(until: at(4600)))
    }

    @Test func onlyOneProbeTriesAFailedAddress() {
        var book = HostHealth()
        #expect(requestOpening(&book, ["a"]) == .go("a"))
        _ = failed(&book, "a", at: 0)
        #expect(requestOpening(&book, ["a"], at: 2000) == .go("a"))
        for _ in 0..<20 {
            #expect(requestOpening(&book, ["a"], at: 2001) == .wait(until: at(6000)), "until the trial is over")
        }
        #expect(!book.isReachable(at: at(2001)))
        book.opened("a")
        #expect(book.isReachable(at: at(2001)))
        #expect(requestOpening(&book, ["a"], at: 2002) == .go("a"))
    }

    @Test func failureCountEndsOnlyWithAServedPush() {
        var book = HostHealth()
        _ = requestOpening(&book, ["a"])
        _ = failed(&book, "a", at: 0)
        _ = requestOpening(&book, ["a"], at: 2000)
        book.opened("a")
        #expect(failed(&book, "a", wasOpen: true, at: 2100) == .seconds(3), "it opened, and served nothing")
        _ = requestOpening(&book, ["a"], at: 6000)
        book.opened("a")
        book.served("a")
        book.ended("a", wasOpen: true)
        _ = requestOpening(&book, ["a"], at: 7000)
        #expect(failed(&book, "a", at: 7000) == .milliseconds(1500))
    }

    @Test func firstLossOfAStableConnectionIsReplacedAtOnce() {
        var book = HostHealth()
        _ = requestOpening(&book, ["a"])
        book.opened("a")
        #expect(failed(&book, "a", wasOpen: true, at: 0) == .zero)
        #expect(requestOpening(&book, ["a"]) == .go("a"))
        #expect(failed(&book, "a", at: 1) == .seconds(3))
    }

    @Test func simultaneousLossesCountAsOneFailure() {
        var book = HostHealth()
        for slot in 0..<16 as Range<Int64> { #expect(requestOpening(&book, ["a"], at: slot * 200) == .go("a")) }
        #expect(failed(&book, "a", began: 0, at: 4000) == .milliseconds(1500))
        for slot in 1..<7 as Range<Int64> {
            #expect(failed(&book, "a", began: slot * 200, at: 4000 + slot * 200) == .milliseconds(1500 - slot * 200))
        }
        #expect(requestOpening(&book, ["a"], at: 5500) == .go("a"), "one tries")
        // Late failures neither end the pause early nor make it longer.
        for slot in 7..<16 as Range<Int64> {
            #expect(failed(&book, "a", began: slot * 200, at: 5600) == .milliseconds(3900))
        }
        #expect(requestOpening(&book, ["a"], at: 5600) == .wait(until: at(9500)))
        #expect(failed(&book, "a", began: 5500, at: 9500) == .seconds(3), "this one began after it")
    }

    @Test func hostIsUnhealthyWithoutOpenConnections() {
        var book = HostHealth()
        #expect(book.fault == nil)
        _ = requestOpening(&book)
        _ = requestOpening(&book)
        _ = failed(&book, "a", at: 0)
        #expect(book.fault == "refused")
        book.opened("b")
        #expect(book.fault == nil)
        _ = requestOpening(&book, ["a"], at: 2000)
        _ = failed(&book, "a", at: 2000)
        #expect(book.fault == nil, "one stands")
        book.ended("b", wasOpen: true)
        #expect(book.fault == "refused")
        book.unresolved("cannot resolve", began: at(3000), at: at(3000))
        #expect(book.fault == "cannot resolve")
    }

    @Test func hostIsDownAfterThreeFailuresInARow() {
        var book = HostHealth()
        for second in [0, 5] as [Int64] {
            _ = requestOpening(&book, at: second * 1000)
            _ = failed(&book, "a", began: second * 1000, at: second * 1000 + 100)
            #expect(!book.isDown)
        }
        // An attempt that ran beside the last one meets the same fault.
        _ = failed(&book, "b", began: 5050, at: 5200)
        #expect(!book.isDown)
        book.unresolved("cannot resolve", began: at(9000), at: at(9100))
        #expect(book.isDown)
        _ = requestOpening(&book, ["c"], at: 20_000)
        book.opened("c")
        #expect(!book.isDown)
        // The end of a connection alone is no failed attempt.
        _ = failed(&book, "c", wasOpen: true, began: 20_000, at: 21_000)
        #expect(!book.isDown && book.fault != nil)
        for second in [30, 40, 50] as [Int64] {
            #expect(!book.isDown)
            _ = requestOpening(&book, ["c"], at: second * 1000)
            _ = failed(&book, "c", began: second * 1000, at: second * 1000 + 100)
        }
        #expect(book.isDown)
    }

    @Test func memoryOfAddressesIsBounded() {
        var book = HostHealth()
        for number in 0..<1000 {
            let address = "address-\(number)"
            #expect(requestOpening(&book, [address], at: Int64(number) * 100_000) == .go(address))
            _ = failed(&book, address, at: Int64(number) * 100_000)
        }
        #expect(book.remembered <= 66)
    }

    @Test func connectionAttemptsAreStaggered() {
        var book = HostHealth()
        let randomness = HighestChance()
        func stagger(_ urgent: Bool = false, at now: Int64 = 0) -> Duration {
            book.stagger(.milliseconds(200), urgent: urgent, at: at(now), randomness)
        }
        #expect(stagger() == .zero)
        #expect(stagger() == .milliseconds(300))
        #expect(stagger() == .milliseconds(600))
        #expect(stagger(true) == .zero, "a push waits")
        #expect(stagger() == .milliseconds(1200), "and the others give way to it")
        #expect(stagger(at: 10_000) == .zero)
    }

    @Test func staggerIsRandomised() {
        var book = HostHealth()
        var gaps: Set<Int64> = []
        var before = Duration.zero
        for _ in 0..<100 {
            let pause = book.stagger(.milliseconds(200), urgent: false, at: at(0), SystemRandomness())
            gaps.insert((pause - before).wholeMilliseconds)
            before = pause
        }
        gaps.remove(0)
        #expect(gaps.allSatisfy { (100...300).contains($0) })
        #expect(gaps.count > 20)
    }
}
