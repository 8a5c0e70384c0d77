import Bytes
import Crypto
import HTTP
import JSON
import TestSupport
import Testing

@testable import API

struct DocsPageTests {
    @Test func pageIsServedToAnyone() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        for caller in [rig.stranger, shop] {
            let response = await caller.send("GET", "/docs")
            #expect(response.status == 200)
            #expect(response.fields["content-type"] == "text/html; charset=utf-8")
            #expect(response.fields["x-content-type-options"] == "nosniff")
            #expect(response.text.hasPrefix("<!doctype html>"))
        }
        #expect(await rig.stranger.send("HEAD", "/docs").status == 405)
    }

    @Test func pageNamesEveryRouteParameterAnswerAndProblem() async throws {
        let page = try await page()
        for route in API.table.routes {
            let entry = try #require(self.entry(route.name, page), "\(route.name)")
            #expect(entry.contains("<code>\(route.method) \(route.path.text)</code>"))
            for parameter in route.forms.flatMap(\.parameters) {
                #expect(entry.contains("<td><code>\(parameter.name)"), "\(route.name) takes \(parameter.name)")
            }
            for answer in route.forms.flatMap(\.answers) {
                #expect(entry.contains("<dt><code>\(answer.status)</code>"), "\(route.name) \(answer.status)")
            }
            for code in route.problems.flatMap(\.codes) {
                #expect(entry.contains("<code>\(code.rawValue)</code>"), "\(route.name) \(code.rawValue)")
            }
        }
    }

    /// The page names its own style by the digest of its bytes, and nothing else is permitted.
    @Test func pageHasNoScriptAndNoExternalResource() async throws {
        let rig = try await APIRig()
        let response = await rig.stranger.send("GET", "/docs")
        let page = response.text
        for word in [
            "<script", "javascript:", "http://www.w3.org\"", " src=", "@import", "url(", " onclick", "style=\"",
        ] {
            #expect(!page.contains(word), "\(word)")
        }
        let links = page.split(separator: "href=\"").dropFirst().map { $0.prefix { $0 != "\"" } }
        #expect(links.allSatisfy { $0.hasPrefix("#") || $0 == "/openapi.json" })
        let style = try #require(page.split(separator: "<style>").last?.split(separator: "</style>").first)
        let digest = Base64.encode(SHA256.hash(Array(style.utf8)))
        let policy = response.fields["content-security-policy"] ?? ""
        #expect(policy.hasPrefix("default-src 'none'; style-src 'sha256-\(digest)'; "))
    }

    @Test func everyLinkHasATarget() async throws {
        let page = try await page()
        let targets = Set(page.split(separator: " id=\"").dropFirst().map { $0.prefix { $0 != "\"" } })
        let links = page.split(separator: "href=\"#").dropFirst().map { $0.prefix { $0 != "\"" } }
        #expect(links.count > API.table.routes.count)
        for link in links { #expect(targets.contains(link), "\(link)") }
    }

    /// Anyone may fetch both, so the page must not cost more than the document.
    @Test func pageIsNoLargerThanTheDocument() async throws {
        let rig = try await APIRig()
        let (page, document) = (Documentation.page, rig.api.documentation.document)
        #expect(page.count <= document.count)
        #expect(document.count <= 256 << 10)
    }

    @Test func textsAreEscaped() {
        let document: JSONObject = [
            "info": ["description": "a<b> & `c<d>` \"e\" 'f'"], "tags": [["name": "<g>", "description": "<h>"]],
        ]
        let page = DocsPage(of: document).html
        #expect(page.contains("a&lt;b&gt; &amp; <code>c&lt;d&gt;</code> &quot;e&quot; &#39;f&#39;"))
        #expect(page.contains("<h2>&lt;h&gt;</h2>"))
    }

    private func page() async throws -> String {
        let rig = try await APIRig()
        return await rig.stranger.send("GET", "/docs").text
    }

    private func entry(_ name: String, _ page: String) -> Substring? {
        page.firstRange(of: "<article id=\"\(name)\">").map { start in
            page[start.upperBound...].prefix(
                upTo: page[start.upperBound...].firstRange(of: "</article>")?.lowerBound ?? page.endIndex)
        }
    }
}
