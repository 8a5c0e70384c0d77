import Domain
import EventLoop
import QR
import Relay
import Synchronization
import TestSupport
import Testing

@testable import Daemon

/// QR codes drawn on a thread outside of the event loops.
struct QRThreadTests {
    @Test func qrCodesAreDrawnForWebsitesInTurn() throws {
        let time = TestTime()
        let (worker, caller) = (simulated("qr", time), simulated("caller", time))
        let thread = QRThread(worker: worker)
        let drawn = Mutex<[String]>([])
        let (many, one) = (try website("11"), try website("22"))
        for (tenant, text) in [(many, "a"), (many, "b"), (many, "c"), (one, "d")] {
            caller.asCurrent {
                caller.spawn {
                    let svg = await tenant.run { await thread.svg(of: text) }
                    drawn.withLock { $0.append(svg == (try? QRCode(text).svg()) ? text : "another code than \(text)") }
                }
            }
        }
        while worker.turn() || caller.turn() {}
        #expect(drawn.withLock { $0 } == ["a", "d", "b", "c"])
    }

    @Test func oversizedTextHasNoQRCode() async throws {
        let thread = try QRThread()
        #expect(await thread.svg(of: String(repeating: "x", count: 4000)) == nil)
        #expect(await thread.svg(of: "x") == (try QRCode("x").svg()))
        thread.close()
    }

    private func simulated(_ name: String, _ time: TestTime) -> EventLoop {
        EventLoop.simulated(name: name, time: time) { _ in 0 }
    }

    private func website(_ digits: String) throws -> Tenant {
        .website(try #require(WebsiteID(String(repeating: digits, count: 16))))
    }
}
