import Testing

@testable import API

/// The routes that a website's sidecar passes on.
struct WebsiteRoutesTests {
    @Test func routesOfWebsitesAreFound() {
        for (method, path) in [
            ("POST", "/login"), ("POST", "/auth"), ("GET", "/user/ada"), ("GET", "/user/a%2Fb"), ("PATCH", "/user/ada"),
            ("DELETE", "/challenge/0f"), ("GET", "/health"), ("GET", "/openapi.json"), ("POST", "/website/certificate"),
        ] {
            #expect(WebsiteRoutes.match(method, path) == .route, "\(method) \(path)")
        }
        #expect(WebsiteRoutes.match("GET", "/login") == .wrongMethod(allow: "POST"))
        #expect(WebsiteRoutes.match("POST", "/pending") == .nothing)
        #expect(WebsiteRoutes.match("POST", "/user/ada") == .wrongMethod(allow: "DELETE, GET, PATCH"))
    }

    @Test func routesOfPhonesAreNot() {
        for (method, path) in [
            ("POST", "/pending"), ("POST", "/device"), ("POST", "/device/goodbye"), ("POST", "/revoke"),
            ("POST", "/device/totp"), ("GET", "/messages"), ("GET", "/recovery"), ("GET", ""), ("GET", "login"),
            ("POST", "/login/"), ("POST", "//login"), ("GET", "/user/"), ("GET", "/user/%zz"),
        ] {
            #expect(WebsiteRoutes.match(method, path) != .route, "\(method) \(path)")
        }
    }

    /// Each route is for websites, or for phones alone, or it changes something without a certificate.
    @Test func everyOtherRouteIsForPhones() {
        let all = Set(WebsiteRoutes.all)
        for route in API.table.routes where !all.contains("\(route.method) \(route.path.text)") {
            let isForWebsites = route.forms.contains { if case .website = $0.action { true } else { false } }
            #expect(!isForWebsites && (route.isForPhones || route.method == "POST"), "\(route.path.text)")
        }
        #expect(all.count > 30)
    }
}
