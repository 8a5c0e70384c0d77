import Crypto
import Domain
import EventLoop
import HTTP
import JSON
import PhoneApp
import TestSupport
import Testing

@testable import API

/// The listener for browsers: which routes it has, and which pages may call them.
struct BrowserSiteTests {
    private static let listed = "https://app.example.org"

    private func site(_ rig: APIRig) throws -> BrowserSite {
        let address = try #require(WebAddress(APIRig.browserOrigin))
        return BrowserSite(
            rig.api, origins: [try #require(WebAddress("https://APP.example.org:443"))],
            app: PhoneApp(origin: address, relays: [], apps: PhoneApp.NativeApps(), version: "1.2.3"))
    }

    private func ask(_ method: String, _ path: String, of page: String?, wanting wanted: String) -> Request {
        var fields = Fields()
        if let page { fields.add("origin", page) }
        fields.add("access-control-request-method", wanted)
        fields.add("access-control-request-headers", "content-type,dpop")
        return Request(method: method, path: path, fields: fields)
    }

    @Test func listedPagesMayCallRoutesOfPhones() async throws {
        let rig = try await APIRig()
        let site = try site(rig)
        for (method, path) in [
            ("POST", "/verify"), ("POST", "/pending"), ("POST", "/success"), ("POST", "/failure"), ("POST", "/device"),
            ("DELETE", "/device"), ("POST", "/device/goodbye"), ("GET", "/messages"), ("GET", "/time"),
            ("GET", "/push"),
            ("POST", "/revoke"), ("DELETE", "/recovery/5be1"), ("GET", "/device/pin"),
        ] {
            let answer = await rig.answer(ask("OPTIONS", path, of: Self.listed, wanting: method), by: site)
            #expect(answer.status == 204, "\(method) \(path)")
            #expect(answer.fields.values("access-control-allow-origin") == [Self.listed], "\(path)")
            #expect(answer.fields["access-control-allow-methods"] == method)
            let fields = answer.fields["access-control-allow-headers"]?.split(separator: ", ").map(String.init) ?? []
            #expect(Set(fields).isSuperset(of: ["content-type", "dpop", "nonce", "prefer"]))
            #expect(answer.fields["access-control-allow-credentials"] == nil)
            #expect(answer.fields["vary"] == "origin")
        }
    }

    /// Another page, another spelling of a listed one, and routes that no phone uses.
    @Test(arguments: [
        ("https://evil.example", "POST", "/pending"), ("http://app.example.org", "POST", "/pending"),
        ("https://app.example.org.evil.example", "POST", "/pending"),
        ("https://app.example.org:8443", "POST", "/pending"),
        ("null", "POST", "/pending"), (listed, "POST", "/login"), (listed, "POST", "/register"),
        (listed, "GET", "/user/ada"), (listed, "PUT", "/pending"), (listed, "POST", "/nothing"),
    ]) func othersGetNoPermission(page: String, method: String, path: String) async throws {
        let rig = try await APIRig()
        let answer = await rig.answer(ask("OPTIONS", path, of: page, wanting: method), by: try site(rig))
        #expect(answer.fields.all.allSatisfy { !$0.name.hasPrefix("access-control-") }, "\(answer.fields.all)")
        #expect(answer.status == 204 && answer.fields["vary"] == "origin")
    }

    @Test func twoOriginsAreNone() async throws {
        let rig = try await APIRig()
        var request = ask("OPTIONS", "/pending", of: Self.listed, wanting: "POST")
        request.fields.add("origin", "https://evil.example")
        let answer = await rig.answer(request, by: try site(rig))
        #expect(answer.fields["access-control-allow-origin"] == nil)
    }

    /// A website's certificate opens nothing here: no route that only websites use exists, and those
    /// that share a path with one of a phone are a wrong method.
    @Test func routesOfWebsitesDoNotExist() async throws {
        let rig = try await APIRig()
        _ = try await rig.site("shop")
        let site = try site(rig)
        var (refused, served) = (0, 0)
        for route in API.table.routes {
            let path = route.path.text.replacing("{", with: "").replacing("}", with: "")
            var request = Request(method: route.method, path: path, certificate: .website("shop"))
            request.fields.add("content-type", "application/json")
            request.body = Array("{}".utf8)
            let answer = await rig.answer(request, by: site)
            let isForWebsites = route.forms.allSatisfy { if case .website = $0.action { true } else { false } }
            if isForWebsites {
                let codes = ["route_not_found", "method_not_allowed"]
                #expect(codes.contains(answer.code ?? ""), "\(route.name): \(answer.text)")
                refused += 1
            } else if route.isForPhones {
                #expect(answer.code != "route_not_found", "\(route.name): \(answer.text)")
                served += 1
            }
        }
        #expect(refused > 20 && served > 10)
    }

    /// The proof names the origin that the browser used. It may be that of either listener, and no other.
    @Test func aHeldRequestIsAnsweredForItsPage() async throws {
        let rig = try await APIRig()
        let site = try site(rig)
        let phone = try await rig.bound("bob", at: "shop")
        let shop = Site(rig: rig, certificate: .website("shop"))
        func pending(_ origin: String, _ page: String?) throws -> Request {
            let proof = try phone.possession(
                "POST", origin + "/pending", nonce: rig.nonce, at: rig.relay.time.now())
            let fields = [("dpop", proof), ("prefer", "wait=60")] + (page.map { [("origin", $0)] } ?? [])
            return rig.stranger.request("POST", "/pending", [:], fields: fields)
        }
        let wrong = await rig.answer(try pending("https://evil.example", Self.listed), by: site)
        #expect(wrong.status == 401 && wrong.fields["access-control-allow-origin"] == Self.listed)
        let exposed = try #require(wrong.fields["access-control-expose-headers"])
        for field in ["dpop-nonce", "retry-after", "request-id", "x-messagecount"] {
            #expect(exposed.split(separator: ", ").contains(Substring(field)), "\(field)")
        }

        for (page, allowed) in [(Self.listed, Self.listed), ("https://evil.example", nil), (nil, nil)] {
            guard case .held(let hold) = await rig.start(try pending(APIRig.browserOrigin, page), by: site) else {
                throw RigFailure("not held")
            }
            let (challenge, _) = try await shop.login("bob")
            let answer = await rig.end(hold)
            #expect(answer.status == 200 && answer.text.contains(challenge), "\(answer.text)")
            #expect(answer.fields["access-control-allow-origin"] == allowed)
            #expect(answer.fields["access-control-allow-credentials"] == nil && answer.fields["vary"] == "origin")
            #expect(await shop.send("DELETE", "/challenge/\(challenge)").status < 300)
        }
    }

    /// The answer at the deadline, too.
    @Test func lateAnswersAreForTheirPage() async throws {
        let rig = try await APIRig()
        let fields = Fields([Fields.Field("origin", Self.listed)])
        let request = Request(method: "GET", path: "/push", fields: fields)
        guard case .later(_, let late, let work) = try site(rig).handle(request) else { throw RigFailure("at once") }
        _ = await rig.relay.loop.perform { await work() }
        #expect(late().fields["access-control-allow-origin"] == Self.listed)
    }

    /// Beside the routes, the app's files, for pages of this origin alone.
    @Test func appIsServedBesideTheRoutes() async throws {
        let rig = try await APIRig()
        let site = try site(rig)
        let request = Request(
            method: "GET", path: "/phone/", fields: Fields([Fields.Field("origin", Self.listed)]))
        let page = await rig.answer(request, by: site)
        #expect(page.status == 200 && page.fields["access-control-allow-origin"] == nil)
        let without = BrowserSite(rig.api, origins: [], app: nil)
        #expect(await rig.answer(request, by: without).code == "route_not_found")
    }

    @Test func faultsOfTheConnectionAreReadable() async throws {
        let rig = try await APIRig()
        let site = try site(rig)
        let listed = site.refuse(.bodySize, Fields([Fields.Field("origin", Self.listed)]), hasCertificate: false)
        #expect(listed.status == 413 && listed.fields["access-control-allow-origin"] == Self.listed)
        let other = site.refuse(.bodySize, Fields(), hasCertificate: false)
        #expect(other.status == 413 && other.fields["access-control-allow-origin"] == nil)
    }
}

extension APIRig {
    fileprivate func start(_ request: Request, by site: BrowserSite) async -> Outcome {
        await relay.loop.perform {
            switch site.handle(request) {
            case .now(let response): .response(response)
            case .later(_, _, let work): await work()
            }
        }
    }

    fileprivate func answer(_ request: Request, by site: BrowserSite) async -> Response {
        switch await start(request, by: site) {
        case .response(let response): response
        case .held(let hold): await end(hold)
        }
    }
}
