import API
import Domain
import EventLoop
import HTTP
import JSON
import Log
import Synchronization
import TestSupport
import Testing

@testable import Relay

/// Quotas, which limit one caller and do not affect others.
struct QuotaTests {
    private let wait = [("prefer", "wait=30")]

    private func quotas(_ change: (inout Quotas) -> Void) -> Quotas {
        var quotas = Quotas()
        change(&quotas)
        return quotas
    }

    private func limited(_ rig: APIRig, _ quota: String) -> Double {
        rig.relay.registry.number("twoefay_limits_reached_total{limit=\"\(quota)\"}") ?? 0
    }

    @Test(arguments: [StoreKind.file, .mariadb])
    func floodingWebsiteIsRefusedAndOthersAreServed(kind: StoreKind) async throws {
        let rig = try await APIRig(kind, quotas: quotas { $0.requests = 10 })
        let (flood, shop) = (try await rig.site("flood"), try await rig.site("shop"))
        // All requests are submitted before the first one is answered.
        let (flooding, other) = await rig.relay.loop.perform { [api = rig.api] in
            let flooding = (0..<30).map { api.handle(flood.request("GET", "/user/user-\($0)")) }
            return (flooding, api.handle(shop.request("GET", "/user/bob")))
        }
        let refused = flooding.compactMap { reply -> Response? in
            guard case .now(let response) = reply else { return nil }
            return response
        }
        #expect(refused.count == 20)
        for response in refused {
            #expect(response.status == 429 && response.code == "limited")
            #expect(response.fields["retry-after"] == "1")
        }
        guard case .later = other else { throw RigFailure("the other website was refused") }
        #expect(limited(rig, "requests") == 20)
        // All refusals share one log line, and no metric names a website.
        let lines = rig.relay.sink.lines.filter { $0.contains("quota.exceeded") }
        #expect(lines.count == 1 && lines[0].contains("website=flood"))
        for case .later(_, _, let work) in flooding {
            guard case .response(let response) = await rig.relay.loop.perform(work) else { continue }
            #expect(response.status == 404)
        }
        // The quota is free again.
        #expect(await flood.send("GET", "/user/bob").status == 404)
        #expect(rig.relay.relay.quotaUse.subjects == 1)
    }

    /// The work before another website's request is answered does not grow with the size of a flood.
    @Test(arguments: [StoreKind.file, .mariadb])
    func requestIsAnsweredBeforeAFloodThatCameFirst(kind: StoreKind) async throws {
        let rig = try await APIRig(kind)
        let (flood, shop) = (try await rig.site("flood"), try await rig.site("shop"))
        let answered = Mutex(0)
        // Both websites call, as usual.
        #expect(await shop.send("GET", "/user/bob").status == 404)
        let before = await withUnsafeContinuation { continuation in
            rig.relay.loop.post { [api = rig.api, loop = rig.relay.loop] in
                for number in 0..<200 {
                    guard case .later(_, _, let work) = api.handle(flood.request("GET", "/user/user-\(number)")) else {
                        continue
                    }
                    loop.spawn {
                        _ = await work()
                        answered.withLock { $0 += 1 }
                    }
                }
                guard case .later(_, _, let work) = api.handle(shop.request("GET", "/user/bob")) else { return }
                loop.spawn {
                    _ = await work()
                    continuation.resume(returning: answered.withLock { $0 })
                }
            }
        }
        // The store takes the websites in turn: the flood's requests in work, and as many again.
        #expect(before <= 2 * WebsiteConcurrencyLimit.limit)
        while answered.withLock({ $0 }) < 200 { _ = await shop.send("GET", "/user/bob") }
    }

    @Test func floodingPhoneDoesNotUseItsWebsitesQuota() async throws {
        let rig = try await APIRig(quotas: quotas { $0.callerRequests = 2 })
        let shop = try await rig.site("shop")
        let (_, phone) = try await shop.enrol("bob")
        let statuses = await rig.relay.loop.perform { [api = rig.api] in
            (0..<5).map { _ in
                switch api.handle(phone.request("POST", "/pending", [:])) {
                case .now(let response): response.status
                case .later: 200
                }
            }
        }
        #expect(statuses == [200, 200, 429, 429, 429])
        #expect(await shop.send("GET", "/user/bob").status == 200)
    }

    @Test(arguments: [StoreKind.file, .mariadb])
    func heldRequestsPerWebsiteAreLimitedAndFreedAtTheirEnd(kind: StoreKind) async throws {
        let rig = try await APIRig(kind, quotas: quotas { $0.held = 3 })
        let (flood, shop) = (try await rig.site("flood", ["number": "0"]), try await rig.site("shop"))
        let (_, phone) = try await flood.enrol("eve")
        _ = try await shop.enrol("bob")
        let (challenge, _) = try await flood.login("eve")
        let (other, _) = try await shop.login("bob")
        let about: JSONObject = ["challenge": .string(challenge)]
        var holds: [Hold] = []
        for _ in 0..<3 {
            guard case .held(let hold) = await rig.start(flood.request("POST", "/auth", about, fields: wait)) else {
                throw RigFailure("not held")
            }
            holds.append(hold)
        }
        let refused = await flood.send("POST", "/auth", about, fields: wait)
        #expect(refused.status == 429 && refused.fields["retry-after"] == "1")
        #expect(rig.relay.relay.heldRequests.count == 3)
        #expect(limited(rig, "held") == 1)
        // Without `Prefer` the request is answered, and another website's request is held as usual.
        #expect(await flood.send("POST", "/auth", about)["login"] == "wait")
        let shops = await rig.start(
            shop.request("POST", "/auth", ["challenge": .string(other)], fields: wait))
        guard case .held = shops else { throw RigFailure("the other website is not held") }
        // All three slots are used. When a client goes away, the next request is held.
        holds.removeLast().wait.cancel()
        guard case .held(let next) = await rig.start(flood.request("POST", "/auth", about, fields: wait)) else {
            throw RigFailure("the place is not free")
        }
        #expect(await phone.send("POST", "/success", about).status == 200)
        for hold in holds + [next] { #expect(await rig.end(hold)["login"] == "success") }
        holds = []
        #expect(rig.relay.relay.heldRequests.count == 1)
    }

    @Test(arguments: [StoreKind.file, .mariadb])
    func usersPerWebsiteAreLimited(kind: StoreKind) async throws {
        let rig = try await APIRig(kind, quotas: quotas { $0.users = 3 })
        let (flood, shop) = (try await rig.site("flood"), try await rig.site("shop"))
        func register(_ site: Site, _ name: String) async -> Response {
            await site.send("POST", "/register", ["username": .string(name)])
        }
        for number in 0..<3 { #expect(await register(flood, "user-\(number)").status == 201) }
        let refused = await register(flood, "user-3")
        #expect(refused.status == 429 && refused.code == "limited")
        #expect(refused.fields["retry-after"] == "60")
        #expect(await register(shop, "bob").status == 201)
        #expect(limited(rig, "users") == 1)
        // A deleted user frees a place after the next count of the users.
        #expect(await flood.send("DELETE", "/user/user-0").status == 204)
        #expect(await register(flood, "user-3").status == 429)
        rig.relay.time.advance(by: .seconds(60))
        #expect(await register(flood, "user-3").status == 201)
        #expect(await register(flood, "user-4").status == 429)
    }

    @Test func newUsersPerMinuteAreLimited() async throws {
        let rig = try await APIRig(quotas: quotas { $0.newUsers = 6 })
        let (flood, shop) = (try await rig.site("flood"), try await rig.site("shop"))
        var statuses: [Int] = []
        for number in 0..<8 {
            statuses.append(
                await flood.send("POST", "/register", ["username": .string("user-\(number)")]).status)
        }
        #expect(statuses == [201, 201, 201, 201, 201, 201, 429, 429])
        #expect(await shop.send("POST", "/register", ["username": "bob"]).status == 201)
        // The budget grows by one every ten seconds.
        rig.relay.time.advance(by: .seconds(10))
        #expect(await flood.send("POST", "/register", ["username": "late"]).status == 201)
        let refused = await flood.send("POST", "/register", ["username": "later"])
        #expect(refused.status == 429 && refused.fields["retry-after"] == "10")
    }
}
