import Attestation
import Bytes
import Crypto
import HTTP
import JSON
import PhoneApp
import Testing

/// The files of the phone's web app, as the relay serves them.
struct PhoneAppTests {
    private static let android = AndroidApp(
        package: "com.example.app", signatureDigests: [[0x0a] + [UInt8](repeating: 0xff, count: 31)])

    private func app(_ apps: PhoneApp.NativeApps = PhoneApp.NativeApps(), relays: [String] = []) throws -> PhoneApp {
        PhoneApp(
            origin: try #require(WebAddress("https://phone.example.com:443")),
            relays: try relays.map { try #require(WebAddress($0)) }, apps: apps, version: "1.2.3")
    }

    private func get(_ path: String, _ fields: [Fields.Field] = [], method: String = "GET") -> Request {
        Request(method: method, path: path, fields: Fields(fields))
    }

    @Test func pageAndItsPartsAreServed() throws {
        let app = try app()
        let page = try #require(app.answer(get("/phone/")))
        #expect(page.status == 200 && page.fields["content-type"] == "text/html; charset=utf-8")
        // Every script, style and picture that the page names is there.
        let names = page.text.matches(of: #/(?:src|href)="([^"#:]+)"/#).map { String($0.1) }
        #expect(names.count > 2)
        for name in names { #expect(app.answer(get(name))?.status == 200, "\(name)") }
        #expect(app.answer(get("/phone"))?.status == 308)
        #expect(app.answer(get("/phone/index.html")) == page)
        for path in ["/phone/nothing", "/phone/../phone/", "/", "/pending", "/phone/app.js/"] {
            #expect(app.answer(get(path)) == nil, "\(path)")
        }
        #expect(app.answer(get("/phone/", method: "POST"))?.status == 405)
    }

    /// Everything that a file names is there: the worker keeps no version without one of them.
    @Test func namedFilesAreServed() throws {
        let app = try app()
        let files = try #require(app.answer(get("/phone/config.json"))?.json["files"]?.object)
        var (imports, paths) = (0, 0)
        for name in files.names where name.hasSuffix(".js") {
            let text = try #require(app.answer(get(name))).text
            for match in text.matches(of: #/(?:from|import) "\.\/([^"]+)"/#) {
                #expect(files["/phone/\(match.1)"] != nil, "\(name): \(match.1)")
                imports += 1
            }
            for match in text.matches(of: #/"(\/phone\/[^"]*)"/#) {
                #expect(app.answer(get(String(match.1)))?.status == 200, "\(name): \(match.1)")
                paths += 1
            }
        }
        #expect(imports > 20 && paths > 2)
    }

    /// The policy allows what the app needs and no more, and names other relays only if they are listed.
    @Test func policyIsStrict() throws {
        let alone = try #require(try app().answer(get("/phone/"))?.fields["content-security-policy"])
        #expect(alone.hasPrefix("default-src 'none'; "))
        for word in ["frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"] {
            #expect(alone.contains(word), "\(word)")
        }
        #expect(!alone.contains("unsafe") && !alone.contains("*") && !alone.contains("http"))
        #expect(try app().answer(get("/phone/"))?.fields["strict-transport-security"] != nil)
        // It would hold for the other ports of the host, too.
        let other = PhoneApp(
            origin: try #require(WebAddress("https://phone.example.com:8443")), relays: [], apps: PhoneApp.NativeApps(),
            version: "1.2.3")
        #expect(other.answer(get("/phone/"))?.fields["strict-transport-security"] == nil)
        let with = try app(relays: ["https://Other.example:8443", "https://phone.example.com"])
        let policy = try #require(with.answer(get("/phone/"))?.fields["content-security-policy"])
        #expect(policy.contains("connect-src 'self' https://other.example:8443;"))
        let config = try #require(with.answer(get("/phone/config.json"))).json
        #expect(config["relays"] == ["https://phone.example.com", "https://other.example:8443"])
        #expect(config["version"] == "1.2.3")
    }

    /// The digests are those of what is sent, and a browser that has a file gets no second copy.
    @Test func digestsAreThoseOfTheFiles() throws {
        let app = try app()
        let files = try #require(app.answer(get("/phone/config.json"))?.json["files"]?.object)
        #expect(files.names.contains("/phone/index.html") && files.names.count > 20)
        for file in files.members {
            let answer = try #require(app.answer(get(file.name)), "\(file.name)")
            #expect(file.value.string == Base64URL.encode(SHA256.hash(answer.body)))
            let tag = try #require(answer.fields["etag"])
            let again = try #require(app.answer(get(file.name, [.init("if-none-match", "\"other\", \(tag)")])))
            #expect(again.status == 304 && again.body.isEmpty && again.fields["etag"] == tag)
            #expect(
                answer.fields["cache-control"] == "no-cache" && answer.fields["x-content-type-options"] == "nosniff")
            #expect(answer.fields["content-type"]?.isEmpty == false && !answer.body.isEmpty, "\(file.name)")
        }
    }

    /// The forms that Apple and Google document.
    @Test func nativeAppsTakeLinksOver() throws {
        #expect(try app().answer(get("/.well-known/assetlinks.json")) == nil)
        let app = try app(PhoneApp.NativeApps(apple: ["ABCDE12345.com.example.app"], android: [Self.android]))
        let apple = try #require(app.answer(get("/.well-known/apple-app-site-association")))
        #expect(apple.fields["content-type"] == "application/json")
        #expect(
            apple.text
                == #"{"applinks":{"details":[{"appIDs":["ABCDE12345.com.example.app"],"components":[{"/":"/phone/*"}]}]}}"#
        )
        let google = try #require(app.answer(get("/.well-known/assetlinks.json")))
        let target = try JSONReader.read(google.body).array?.first?.object?["target"]?.object
        #expect(target?["package_name"] == "com.example.app" && target?["namespace"] == "android_app")
        let digest = try #require(target?["sha256_cert_fingerprints"]?.array?.first?.string)
        #expect(digest == "0A" + String(repeating: ":FF", count: 31))
    }
}
