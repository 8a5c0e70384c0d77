import HTTP
import JSON
import Metrics
import TestSupport
import Testing

@testable import API

/// The requests by route and status class.
struct RequestMetricsTests {
    private func count(_ rig: APIRig, _ method: String, _ route: String, _ status: String) -> Double? {
        rig.relay.registry.number(
            "twoefay_requests_total{method=\"\(method)\",route=\"\(route)\",status=\"\(status)\"}")
    }

    private func timed(_ rig: APIRig, _ method: String, _ route: String) -> Double? {
        rig.relay.registry.number("twoefay_request_seconds_count{method=\"\(method)\",route=\"\(route)\"}")
    }

    @Test func requestsAreCountedByRouteAndStatusClass() async throws {
        let rig = try await APIRig(dependencies: [Dependency("store") { nil }])
        let shop = try await rig.site("shop")
        #expect(count(rig, "GET", "/user/{username}", "4xx") == 0)
        #expect(await shop.send("GET", "/user/bob").status == 404)
        #expect(await shop.send("GET", "/user/eve").status == 404)
        #expect(await rig.stranger.send("GET", "/user/bob").status == 401)
        #expect(count(rig, "GET", "/user/{username}", "4xx") == 3)
        #expect(timed(rig, "GET", "/user/{username}") == 3)
        #expect(await rig.stranger.send("GET", "/ready").status == 200)
        #expect(count(rig, "GET", "/ready", "2xx") == 1)
    }

    @Test func requestsWithoutARouteShareOneSeries() async throws {
        let rig = try await APIRig()
        let before = rig.relay.registry.exposition().count
        for path in ["/a", "/b/c", "/user/x/y/z"] { #expect(await rig.stranger.send("GET", path).status == 404) }
        #expect(await rig.stranger.send("HEAD", "/health").status == 405)
        #expect(count(rig, "other", "none", "4xx") == 4)
        // These requests add digits to the page, but no line.
        #expect(rig.relay.registry.exposition().count < before + 64)
    }

    @Test func missingDependencyCountsAsAFailureOfTheServer() async throws {
        let rig = try await APIRig(dependencies: [Dependency("store") { "down" }])
        #expect(await rig.stranger.send("GET", "/ready").status == 503)
        #expect(count(rig, "GET", "/ready", "5xx") == 1)
    }

    @Test func heldRequestIsCountedAndNotTimed() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.enrol("bob")
        let (challenge, _) = try await shop.login("bob")
        let about: JSONObject = ["challenge": .string(challenge)]
        let request = shop.request("POST", "/auth", about, fields: [("prefer", "wait=30")])
        guard case .held(let hold) = await rig.start(request) else { throw RigFailure("not held") }
        #expect(count(rig, "POST", "/auth", "2xx") == 0)
        #expect(await rig.giveUp(hold)["login"] == "wait")
        #expect(count(rig, "POST", "/auth", "2xx") == 1)
        #expect(timed(rig, "POST", "/auth") == 0)
        #expect(await shop.send("POST", "/auth", about)["login"] == "wait")
        #expect(timed(rig, "POST", "/auth") == 1)
    }
}
