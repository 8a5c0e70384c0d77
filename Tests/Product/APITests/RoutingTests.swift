import EventLoop
import HTTP
import JSON
import Log
import Storage
import Synchronization
import TestSupport
import Testing

@testable import API

struct RoutingTests {
    @Test(
        arguments: [
            ("/user/bob", "bob"), ("/user/b%C3%B6b", "böb"), ("/user/a%2Fb", "a/b"), ("/user/a+b", "a+b"),
            ("/user/%2e", "."),
        ] as [(String, String)])
    func pathParametersAreDecodedAfterSplitting(path: String, name: String) throws {
        guard case .route(let route, let places) = API.table.match("GET", path) else {
            Issue.record("no route for \(path)")
            return
        }
        #expect(route.path.text == "/user/{username}")
        #expect(places["username"].map { Array($0.utf8) } == Array(name.utf8))
    }

    @Test(arguments: API.table.routes.indices)
    func everyRouteIsFoundByItsPath(index: Int) {
        let route = API.table.routes[index]
        let path = route.path.segments.map { if case .word(let word) = $0 { "/\(word)" } else { "/x" } }.joined()
        guard case .route(let found, let places) = API.table.match(route.method, path) else {
            Issue.record("no route for \(path)")
            return
        }
        #expect(found === route)
        #expect(places.count == route.path.segments.count { if case .parameter = $0 { true } else { false } })
    }

    @Test(
        arguments: [
            "", "/", "*", "user/bob", "/user", "/user/", "/user/bob/", "//user/bob", "/user/%", "/user/%4", "/user/%GG",
            "/user/%FF", "/User/bob", "/registe", "/user/bob/activation/x", "/health/",
        ])
    func unknownPathHasItsOwnCode(path: String) async throws {
        let rig = try await APIRig()
        let response = await rig.stranger.send("GET", path)
        #expect(response.status == 404)
        #expect(response.code == "route_not_found")
        #expect(response.fields["request-id"]?.utf8.count == 32)
    }

    @Test(
        arguments: [
            ("GET", "/register", "POST"), ("POST", "/user/bob", "DELETE, GET, PATCH"), ("HEAD", "/health", "GET"),
            ("PUT", "/user/bob/activation", "POST"), ("GET", "/challenge/x", "DELETE"), ("OPTIONS", "/auth", "POST"),
            ("get", "/ready", "GET"), ("DELETE", "/recovery/state", "POST"), ("POST", "/messages/archive", "GET"),
        ] as [(String, String, String)])
    func wrongMethodGets405WithAllow(method: String, path: String, allow: String) async throws {
        let rig = try await APIRig()
        let response = await rig.stranger.send(method, path)
        #expect(response.status == 405)
        #expect(response.code == "method_not_allowed")
        #expect(response.fields["allow"] == allow)
    }

    @Test func problemDocumentsAreWellFormedAndNotCacheable() async throws {
        let rig = try await APIRig()
        let response = await rig.stranger.send("GET", "/nowhere")
        #expect(response.fields["content-type"] == "application/problem+json")
        #expect(response.fields["cache-control"] == "no-store")
        #expect(response.json.names == ["type", "title", "status", "code", "detail"])
        #expect(response["status"] == 404)
        #expect(response["type"] == "urn:twoefay:problem:route_not_found")
    }

    @Test func healthIsAnsweredWithoutALogLine() async throws {
        let rig = try await APIRig()
        let reply = rig.api.handle(Request(method: "GET", path: "/health"))
        guard case .now(let response) = reply else {
            Issue.record("health is not answered at once")
            return
        }
        #expect(response.status == 200)
        #expect(response["status"] == "alive")
        #expect(!rig.relay.sink.lines.contains { $0.contains("event=request") })
        var request = Request(method: "GET", path: "/health")
        request.query = "x"
        #expect(await rig.send(request).status == 400)
    }

    @Test func readyNamesMissingDependencies() async throws {
        let store = Dependency("store") { nil }
        let fine = try await APIRig(dependencies: [store])
        let ready = await fine.stranger.send("GET", "/ready")
        #expect(ready.status == 200)
        #expect(ready["dependencies"] == ["store": "ok"])

        let degraded = try await APIRig(dependencies: [store, Dependency("push") { "connection refused by 192.0.2.7" }])
        let missing = await degraded.stranger.send("GET", "/ready")
        #expect(missing.status == 503)
        #expect(missing.code == "unavailable")
        #expect(missing["dependencies"] == ["store": "ok", "push": "missing"])
        #expect(missing.fields["retry-after"] != nil)
        #expect(!missing.text.contains("192.0.2.7"))
    }

    /// A balancer asks only for the dependency without which it removes a relay.
    @Test func readyOfOneDependencyIgnoresOthers() async throws {
        let isStoreThere = Mutex(true)
        let rig = try await APIRig(dependencies: [
            Dependency("store") { isStoreThere.withLock { $0 } ? nil : "down" }, Dependency("push") { "refused" },
            Dependency("mail", isNeeded: { false }) { nil },
        ])
        #expect(await rig.stranger.send("GET", "/ready").status == 503)
        let store = await rig.stranger.send("GET", "/ready/store")
        #expect(store.status == 200 && store["dependencies"] == ["store": "ok"], "\(store.text)")
        let push = await rig.stranger.send("GET", "/ready/push")
        #expect(push.status == 503 && push["dependencies"] == ["push": "missing"], "\(push.text)")
        isStoreThere.withLock { $0 = false }
        #expect(await rig.stranger.send("GET", "/ready/store").status == 503)
        // A dependency that is not set up, and names that do not exist.
        for name in ["mail", "nothing", ""] {
            #expect(await rig.stranger.send("GET", "/ready/\(name)").status == 404, "\(name)")
        }
    }

    /// Every balancer checks every second, so only changes of the result are logged.
    @Test func readinessIsLoggedOnChangeOnly() async throws {
        let trouble = Mutex<String?>(nil)
        let rig = try await APIRig(dependencies: [Dependency("store") { trouble.withLock { $0 } }])
        func lines() -> [String] {
            rig.relay.sink.drain().map { line in
                line.split(separator: " ").dropFirst().filter { !$0.hasPrefix("request=") }.joined(separator: " ")
            }
        }
        func check() async -> [Int] {
            var statuses: [Int] = []
            for path in ["/ready", "/ready/store", "/ready"] {
                statuses.append(await rig.stranger.send("GET", path).status)
            }
            return statuses
        }
        _ = lines()
        #expect(await check() == [200, 200, 200])
        #expect(lines().isEmpty)
        trouble.withLock { $0 = "down" }
        #expect(await check() == [503, 503, 503])
        trouble.withLock { $0 = "still down" }
        #expect(await check() == [503, 503, 503])
        #expect(lines() == ["level=warning event=ready.missing name=store reason=down"])
        trouble.withLock { $0 = nil }
        #expect(await check() == [200, 200, 200])
        #expect(lines() == ["level=notice event=ready.back name=store"])
    }

    @Test func requestHasOneLogLineWithoutSecrets() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (token, phone) = try await shop.enrol("bob")
        _ = rig.relay.sink.drain()
        let registered = await shop.send(
            "POST", "/register", ["username": "eve", "email": "eve@example.com", "phone": "+4915112345678"])
        let user = await shop.send("GET", "/user/eve")
        let (challenge, number) = try await shop.login("bob")
        _ = await phone.send(
            "POST", "/success", ["challenge": .string(challenge), "number": .string(number ?? "")])
        _ = await shop.send("GET", "/no/secret/here")
        let lines = rig.relay.sink.lines
        let requests = lines.filter { $0.contains("event=request ") }
        try #require(requests.count == 5)
        #expect(requests[0].contains("request=\(registered.fields["request-id"] ?? "?")"))
        #expect(requests[0].contains("method=POST route=/register status=201 milliseconds=0 website=shop"))
        #expect(requests[1].contains("request=\(user.fields["request-id"] ?? "?")"))
        #expect(requests[1].contains("route=/user/{username} status=200"))
        #expect(requests[3].contains("device="))
        #expect(requests[4].contains("route=none status=404"))
        let activation = registered["activation"]?.object
        for secret in [
            "eve@example.com", "+4915112345678", activation?["code"]?.string ?? "?", "push-of-", "secret",
            "number=",
        ] {
            #expect(!lines.contains { $0.contains(secret) }, "\(secret)")
        }
        #expect(!requests.contains { $0.contains(token) })
    }

    @Test func unavailableStoreIsReportedWithoutDetails() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        rig.relay.store.close()
        let response = await shop.send("GET", "/user/bob")
        #expect(response.status == 503)
        #expect(response.code == "unavailable")
        #expect(response.fields["retry-after"] != nil)
        // The stream's own deadline answers with the same problem.
        guard case .later(let deadline, let late, _) = rig.api.handle(shop.request("GET", "/user/bob")) else {
            Issue.record("not answered later")
            return
        }
        #expect(deadline == .seconds(10))
        #expect(late().status == 503)
        #expect(late().withoutID == response.withoutID)
    }

    @Test func cancelledRequestIsLogged() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.enrol("bob")
        let (challenge, _) = try await shop.login("bob")
        _ = rig.relay.sink.drain()
        do {
            let outcome = await rig.start(
                shop.request("POST", "/auth", ["challenge": .string(challenge)], fields: [("prefer", "wait=9")]))
            if case .held(let hold) = outcome { hold.wait.cancel() }
        }
        await rig.relay.loop.perform {}
        let lines = rig.relay.sink.lines.filter { $0.contains("event=request ") }
        #expect(lines.count == 1)
        #expect(lines.first?.contains("route=/auth outcome=gone") == true)
    }
}
