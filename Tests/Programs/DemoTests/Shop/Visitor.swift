import Synchronization
import TestSupport

/// A browser without scripts: curl, with a jar for cookies. What a form sends has the token of the page that was seen last.
final class Visitor: Sendable {
    struct Page: Sendable, CustomStringConvertible {
        let answer: CurlCaller.Answer

        var status: Int { answer.status }
        var text: String { answer.text }
        var location: String? { answer.field("location") }
        var description: String { "\(answer)" }

        /// What stands between two texts; nil where they do not.
        func between(_ start: String, _ end: String) -> String? {
            text.firstRange(of: start).flatMap { start in
                let rest = text[start.upperBound...]
                return rest.firstRange(of: end).map { String(rest[..<$0.lowerBound]) }
            }
        }

        var title: String? { between("<h1>", "</h1>") }
        var token: String? { between(#"name="token" value=""#, "\"") }
        var number: String? { between(#"id="number">"#, "<") }
        /// What a page shows for phones to read, with what HTML escapes undone.
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

    /// As a form sends it.
    func post(_ path: String, _ fields: [String: String] = [:], _ more: String...) async throws -> Page {
        var all = ["--data-urlencode", "token=\(token.withLock { $0 })"]
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { all += ["--data-urlencode", "\(name)=\(value)"] }
        return try await curl(path, all + more)
    }

    /// To the page that an answer names, and on.
    func follow(_ page: Page) async throws -> Page {
        var page = page
        while page.status == 303, let path = page.location { page = try await get(path) }
        return page
    }

    /// As a form sends it, to the page that comes of it.
    func go(_ path: String, _ fields: [String: String] = [:]) async throws -> Page {
        try await follow(try await post(path, fields))
    }

    // MARK: What everybody does

    static let password = "correct horse"

    /// Signs up: the page that shows what a phone is to read.
    func signUp(_ name: String, phone: String = "") async throws -> Page {
        _ = try await get("/signup")
        return try await go(
            "/signup",
            ["name": name, "password": Self.password, "email": "\(Self.box(name))@example.com", "phone": phone])
    }

    private static func box(_ name: String) -> String {
        name.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }.lowercased()
    }

    /// Name and password: the page that waits for the second half.
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
