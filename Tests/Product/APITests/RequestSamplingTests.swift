import HTTP
import JSON
import Log
import TestSupport
import Testing
import World

@testable import API

@Suite struct RequestSamplingTests {
    private func lines(_ rig: APIRig, _ event: String) -> [String] {
        rig.relay.sink.lines.filter { ObservedSink.isOf(event, $0) }
    }

    /// Refusals of unidentified callers are either logged or counted, and a flood of one kind does not hide
    /// another.
    @Test func anonymousRefusalsAreSampledAndCounted() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = rig.relay.sink.drain()
        for _ in 0..<300 { #expect(await rig.stranger.send("GET", "/user/bob").status == 401) }
        for _ in 0..<30 { #expect(await rig.stranger.send("GET", "/nowhere").status == 404) }
        #expect(lines(rig, "request").count == 20)
        // Requests of identified callers always have their lines.
        for _ in 0..<15 { #expect(await shop.send("GET", "/user/bob").status == 404) }
        #expect(lines(rig, "request").count == 35)
        // A certificate that is not accepted is a separate class.
        let unknown = Site(rig: rig, certificate: .website("other"))
        for _ in 0..<15 { #expect(await unknown.send("GET", "/user/bob").status == 401) }
        #expect(lines(rig, "request").count == 45)

        rig.api.logSampledRequests()
        #expect(
            lines(rig, "request.sampled").map { $0.split(separator: " ").dropFirst(3).joined(separator: " ") } == [
                "status=401 kind=anonymous count=290", "status=401 kind=certificate count=5",
                "status=404 kind=anonymous count=20",
            ])
        // Each count is logged once.
        rig.api.logSampledRequests()
        #expect(lines(rig, "request.sampled").count == 3)
        rig.relay.time.advance(by: .seconds(1))
        _ = await rig.stranger.send("GET", "/user/bob")
        #expect(lines(rig, "request").count == 46)
    }

    /// A flood of faulty requests does not hide those of a website.
    @Test func faultsOfCertifiedCallersAreASeparateClass() async throws {
        let rig = try await APIRig()
        _ = rig.relay.sink.drain()
        for _ in 0..<30 { _ = rig.api.refuse(.target, Fields(), hasCertificate: false) }
        #expect(lines(rig, "request").count == 10)
        _ = rig.api.refuse(.target, Fields(), hasCertificate: true)
        #expect(lines(rig, "request").count == 11)
    }
}
