import TestSupport
import Testing
import World

@testable import Storage

/// The order in which several hosts are tried.
struct MariaDBHostsTests {
    private let time = TestTime()
    private let hosts: MariaDBHosts

    init() {
        hosts = MariaDBHosts(
            ["a", "b", "c"].map { StorageURL.Server.Host(name: $0, port: 3306) }, time: time)
    }

    @Test func firstHostOfTheURLIsTriedFirst() {
        #expect(hosts.current == 0)
        #expect(hosts.order == [0, 1, 2])
    }

    @Test func failedHostIsTriedLast() {
        hosts.passOver(0)
        #expect(hosts.current == 1)
        #expect(hosts.order == [1, 2, 0])
    }

    @Test func lateFailureOfALeftHostMovesNobody() {
        hosts.passOver(0)
        hosts.chose(2)
        hosts.passOver(0)
        #expect(hosts.current == 2)
        #expect(hosts.order == [2, 1, 0])
    }

    @Test func failedHostIsRetriedAfterItsPause() {
        hosts.passOver(0)
        time.advance(by: .seconds(4))
        #expect(hosts.order == [1, 2, 0])
        time.advance(by: .seconds(1))
        hosts.passOver(1)
        #expect(hosts.order == [2, 0, 1])
    }

    @Test func repeatedFailureLengthensThePause() {
        var rests: [Int] = []
        for _ in 0..<6 {
            hosts.chose(0)
            hosts.passOver(0)
            hosts.chose(2)
            var seconds = 0
            while hosts.order == [2, 1, 0] {
                time.advance(by: .seconds(1))
                seconds += 1
            }
            rests.append(seconds)
        }
        #expect(rests == [5, 10, 20, 40, 60, 60])
        // Old failures no longer count.
        time.advance(by: .seconds(301))
        hosts.passOver(0)
        time.advance(by: .seconds(5))
        #expect(hosts.order == [2, 0, 1])
    }

    @Test func allFailedHostsAreStillTried() {
        hosts.passOver(0)
        time.advance(by: .seconds(1))
        hosts.passOver(1)
        time.advance(by: .seconds(1))
        hosts.passOver(2)
        #expect(hosts.order == [0, 1, 2])
        #expect(hosts.current == 0)
    }

    @Test func singleHostIsAlwaysUsed() {
        let alone = MariaDBHosts([StorageURL.Server.Host(name: "a", port: 3306)], time: time)
        alone.passOver(0)
        #expect(alone.order == [0] && alone.current == 0)
    }
}
