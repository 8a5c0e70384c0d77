import Crypto
import EventLoop
import HTTP
import HTTP1
import JSON
import TestSupport
import Testing
import World

@testable import Demo

struct PagesTests {
    @Test func formFieldsAreDecoded() {
        let form = FormText("name=Ada+L%C3%B6we&empty=&twice=1&twice=2&bad=%zz&cut=%4&lone&=x&broken=%ff".utf8)
        #expect(form["name"] == "Ada Löwe" && form["empty"] == "" && form["twice"] == "1" && form[""] == "x")
        for name in ["bad", "cut", "lone", "broken", "missing"] { #expect(form[name] == nil, "\(name)") }
        #expect(FormText(query: nil)["a"] == nil && FormText(query: "a=b%26c")["a"] == "b&c")
    }

    @Test func cookieIsReadFromTheRequest() {
        func cookie(_ values: String...) -> String? {
            Request(method: "GET", path: "/", fields: Fields(values.map { .init("cookie", $0) })).cookie("run")
        }
        #expect(cookie("run=a") == "a" && cookie("x=1; run=a=b;y") == "a=b" && cookie("x=1", "run=") == "")
        #expect(cookie("run=a; run=b") == nil && cookie("run=a", "run=a") == nil && cookie("runs=a") == nil)
        #expect(cookie() == nil && cookie("RUN=a") == nil)
    }

    private struct Inside: Pages {
        func answer(_ request: Request) async -> Response {
            Response(status: 200, body: Array((request.query ?? "none").utf8))
        }
    }

    private let secret = RunSecret(dashboardPort: 8000, randomness: SystemRandomness())

    private func gate() -> AccessGate {
        AccessGate(pages: Inside(), responder: PageResponder(files: [.baseCSS, .iconSVG, .phoneJS]), secret: secret)
    }

    private func answer(_ path: String, _ query: String?, method: String = "GET", cookie: String? = nil) async
        -> Response
    {
        let fields = Fields(cookie.map { [.init("cookie", $0)] } ?? [])
        return await gate().answer(Request(method: method, path: path, query: query, fields: fields))
    }

    @Test func secretIsRemovedFromTheAddress() async {
        let brought = secret.address(of: "", path: "/?phone=2").split(separator: "?").last.map { String($0) }
        let response = await answer("/", brought)
        #expect(response.status == 303 && response.fields["location"] == "/?phone=2")
        #expect(response.fields["set-cookie"]?.hasPrefix("twoefay_run_8000=") == true)
        let run = brought?.split(separator: "=").last ?? ""
        // The redirect never leads to another host.
        #expect(await answer("//evil.example/", "run=\(run)").fields["location"] == "/evil.example/")
        #expect(await answer("/\\evil.example", "run=\(run)").fields["location"] == "/evil.example")
        #expect(await answer("/", "run=\(run)", method: "POST").status == 403)
    }

    @Test func onlyAVisitorWithTheCookieIsAdmitted() async {
        let cookie = "\(secret.cookie)=\(secret.value)"
        #expect(await answer("/", "a=b", cookie: cookie).body == Array("a=b".utf8))
        #expect(await answer("/", nil, method: "POST", cookie: cookie).status == 200)
        for wrong in [
            "\(secret.cookie)=", "\(secret.cookie)=x", "twoefay_run_8001=\(secret.value)", "\(cookie); \(cookie)",
        ] {
            #expect(await answer("/", nil, cookie: wrong).status == 403)
        }
        #expect(await answer("/base.css", nil).status == 200)
        #expect(await answer("/phone.js", nil).status == 403)
    }

    @Test func onlyEmbeddedFilesAreServed() {
        let responder = PageResponder(files: [.phoneJS])
        #expect(
            responder.file(for: Request(method: "GET", path: "/phone.js"))?.fields["content-type"]?.hasPrefix(
                "text/javascript") == true)
        for path in ["/phone.css", "/PHONE.JS", "/phone.js/", "/../phone.js", "/"] {
            #expect(responder.file(for: Request(method: "GET", path: path)) == nil, "\(path)")
        }
        #expect(responder.file(for: Request(method: "POST", path: "/phone.js")) == nil)
    }
}
