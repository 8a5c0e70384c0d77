import Synchronization
import TestSupport

/// A browser without scripts: curl with a cookie jar. Each form contains the token of the latest
/// page.
final class Visitor: Sendable {
    struct Page: Sendable, CustomStringConvertible {
        let answer: CurlCaller.Answer

        var status: Int { answer.status }
        var text: String { answer.text }
        var location: String? { answer.field("location") }
        var description: String { "\(answer)" }

        /// Returns the text between two texts; nil if they are missing.
        func between(_ start: String, _ end: String) -> String? {
            text.firstRange(of: start).flatMap { start in
                let rest = text[start.upperBound...]
                return rest.firstRange(of: end).map { String(rest[..<$0.lowerBound]) }
            }
        }

        var title: String? { between("<h1>", "</h1>") }
        var token: String? { between(#"name="token" value=""#, "\"") }
        var number: String? { between(#"id="number">"#, "<") }
        /// The activation URI that the page shows for a phone, without HTML escapes.
        var activation: String? { between(#"id="uri">"#, "<")?.replacing("&amp;", with: "&") }
    }

    private let origin: String
    private let arguments: [String]
    private let directory: TemporaryDirectory
    private let token = Mutex("")

    init(_ shop: RunningShop, _ arguments: [String]) throws {
        origin = "http://localhost:\(shop.port)"
        directory = try TemporaryDirectory()
        self.arguments = arguments
    }

    var jar: String { directory("jar") }

    /// The value of the session's cookie.
    var session: String? {
        (try? TextFile.read(jar))?.split(separator: "\n").first { $0.contains("shop_0") }?
            .split(separator: "\t").last.map { String($0) }
    }

    func get(_ path: String, _ more: String...) async throws -> Page { try await curl(path, more) }

    /// Sends a form.
    func post(_ path: String, _ fields: [String: String] = [:], _ more: String...) async throws -> Page {
        var all = ["--data-urlencode", "token=\(token.withLock { $0 })"]
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { all += ["--data-urlencode", "\(name)=\(value)"] }
        return try await curl(path, all + more)
    }

    /// Follows redirects, and returns the last page.
    func follow(_ page: Page) async throws -> Page {
        var page = page
        while page.status == 303, let path = page.location { page = try await get(path) }
        return page
    }

    /// Sends a form and follows redirects; returns the last page.
    func go(_ path: String, _ fields: [String: String] = [:]) async throws -> Page {
        try await follow(try await post(path, fields))
    }

    // MARK: Common steps

    static let password = "correct horse"

    /// Signs up, and returns the page with the activation for a phone.
    func signUp(_ name: String, phone: String = "") async throws -> Page {
        _ = try await get("/signup")
        return try await go(
            "/signup",
            ["name": name, "password": Self.password, "email": "\(Self.box(name))@example.com", "phone": phone])
    }

    private static func box(_ name: String) -> String {
        name.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }.lowercased()
    }

    /// Logs in with name and password, and returns the page that waits for the second factor.
    func logIn(_ name: String, password: String = Visitor.password) async throws -> Page {
        _ = try await get("/login")
        return try await go("/login", ["name": name, "password": password])
    }

    private func curl(_ path: String, _ more: [String]) async throws -> Page {
        let child = try Child(
            "curl",
            [
                "--silent", "--show-error", "--include", "--http1.1", "--ipv4", "--max-time", "60", "--cookie", jar,
                "--cookie-jar", jar,
            ] + arguments + more + ["\(origin)\(path)"])
        let page = Page(answer: try await CurlCaller.read(child))
        if let token = page.token { self.token.withLock { $0 = token } }
        return page
    }
}
