/// A request over HTTP/1.1 as raw bytes, and the answer. The tests of the parser, of the server and of
/// docs/internals/http1.md share the cases.
public struct HTTP1Case: Sendable {
    public let name: String
    public let bytes: [UInt8]
    /// The statuses of the answers.
    public let answers: [Int]
    /// Whether the connection ends after them.
    public let closes: Bool

    /// The row of the page.
    public var row: String {
        "| \(name) | \(answers.map(String.init).joined(separator: ", ")) | \(closes ? "ends" : "stays open") |"
    }

    init(_ name: String, _ answers: [Int], closes: Bool = false, _ text: String) {
        self.init(name, answers, closes: closes, Array(text.utf8))
    }

    init(_ name: String, _ answers: [Int], closes: Bool = false, _ bytes: [UInt8]) {
        self.name = name
        self.answers = answers
        self.closes = closes
        self.bytes = bytes
    }

    /// A request that follows in each case. An attacker would smuggle it.
    public static let next = Array("GET /next HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8)

    private static let short = all.filter { $0.bytes.count < 1000 }

    /// Returns a case and the next request with up to four random changes: bytes that nobody wrote
    /// as a request.
    public static func mutated(_ random: inout some RandomNumberGenerator) -> [UInt8] {
        var bytes = short[Int(random.next() % UInt64(short.count))].bytes + next
        for _ in 0...Int(random.next() % 4) {
            let at = Int(random.next() % UInt64(bytes.count))
            switch random.next() % 4 {
            case 0: bytes[at] = UInt8(truncatingIfNeeded: random.next())
            case 1: bytes.remove(at: at)
            case 2: bytes.insert(bytes[Int(random.next() % UInt64(bytes.count))], at: at)
            default: bytes.insert(contentsOf: bytes[at...].prefix(8), at: at)
            }
        }
        return bytes
    }

    private static let host = "Host: localhost\r\n"

    /// A case that is answered once, and ends the connection.
    private static func refused(_ name: String, status: Int = 400, _ text: String) -> HTTP1Case {
        HTTP1Case(name, [status], closes: true, text)
    }

    /// The fields of a GET request, with `Host`.
    private static func field(_ name: String, status: Int = 400, _ lines: String) -> HTTP1Case {
        refused(name, status: status, "GET / HTTP/1.1\r\n\(host)\(lines)\r\n\r\n")
    }

    private static func line(_ name: String, status: Int = 400, _ line: String) -> HTTP1Case {
        refused(name, status: status, "\(line)\r\n\(host)\r\n")
    }

    private static func length(_ name: String, _ fields: String) -> HTTP1Case {
        refused(name, "POST / HTTP/1.1\r\n\(host)\(fields)\r\n\r\nhello")
    }

    private static func chunked(
        _ name: String, answers: [Int] = [400], closes: Bool = true, _ body: String
    ) -> HTTP1Case {
        HTTP1Case(
            name, answers, closes: closes, "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n\(body)")
    }

    private static func raw(_ name: String, _ before: String, _ byte: UInt8, _ after: String) -> HTTP1Case {
        HTTP1Case(
            name, [400], closes: true,
            Array("GET / HTTP/1.1\r\n\(host)\(before)".utf8) + [byte] + Array("\(after)\r\n\r\n".utf8))
    }

    private static func taken(_ name: String, _ fields: String = "", body: String = "") -> HTTP1Case {
        HTTP1Case(name, [200], "POST /a?b=c HTTP/1.1\r\n\(host)\(fields)\r\n\(body)")
    }

    public static let all = requests + lines + fields + hosts + lengths + codings + chunks + sizes

    private static let requests: [HTTP1Case] = [
        HTTP1Case("GET", [200], "GET / HTTP/1.1\r\n\(host)\r\n"),
        HTTP1Case("HEAD", [200], "HEAD / HTTP/1.1\r\n\(host)\r\n"),
        HTTP1Case("two requests at once", [200, 200], "GET / HTTP/1.1\r\n\(host)\r\nGET / HTTP/1.1\r\n\(host)\r\n"),
        HTTP1Case(
            "a request behind a body", [200, 200],
            "POST / HTTP/1.1\r\n\(host)Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\(host)\r\n"),
        HTTP1Case("`Connection: close`", [200], closes: true, "GET / HTTP/1.1\r\n\(host)Connection: close\r\n\r\n"),
        HTTP1Case(
            "`Connection: keep-alive, CLOSE`", [200], closes: true,
            "GET / HTTP/1.1\r\n\(host)Connection: keep-alive, CLOSE\r\n\r\n"),
        HTTP1Case("HTTP/1.0", [200], closes: true, "GET / HTTP/1.0\r\n\(host)\r\n"),
        HTTP1Case(
            "HTTP/1.0 with `Connection: keep-alive`", [200], closes: true,
            "GET / HTTP/1.0\r\n\(host)Connection: keep-alive\r\n\r\n"),
        taken("`Expect: 100-continue`", "Expect: 100-Continue\r\nContent-Length: 2\r\n", body: "ok"),
        taken("`TE: trailers`", "TE: trailers\r\n"),
        taken("blanks around a value", "A: \t b \t\r\n"),
        taken("an empty value", "A:\r\n"),
        taken("letters beyond ASCII in a value", "A: ü\r\n"),
    ]

    private static let lines: [HTTP1Case] = [
        line("an empty line before the request", "\r\nGET / HTTP/1.1"),
        line("two spaces", "GET  / HTTP/1.1"),
        line("a space behind the version", "GET / HTTP/1.1 "),
        line("a tab instead of a space", "GET\t/ HTTP/1.1"),
        line("no method", " / HTTP/1.1"),
        line("a method that is no token", "GE(T / HTTP/1.1"),
        line("HTTP/0.9", "GET /"),
        line("`http/1.1`", "GET / http/1.1"),
        line("`HTTP/1.11`", "GET / HTTP/1.11"),
        line("HTTP/1.2", status: 505, "GET / HTTP/1.2"),
        line("HTTP/2.0", status: 505, "PRI * HTTP/2.0"),
        line("a whole URL as target", "GET https://localhost/ HTTP/1.1"),
        line("CONNECT", "CONNECT localhost:443 HTTP/1.1"),
        line("CONNECT for a path", "CONNECT / HTTP/1.1"),
        line("OPTIONS for `*`", "OPTIONS * HTTP/1.1"),
        line("a fragment", "GET /#a HTTP/1.1"),
        line("letters beyond ASCII in the target", "GET /ü HTTP/1.1"),
        refused("a bare LF behind the request line", "GET / HTTP/1.1\n\(host)\r\n"),
        refused("a bare CR behind the request line", "GET / HTTP/1.1\r\(host)\r\n"),
        refused("a bare CR in the target", "GET /\ra HTTP/1.1\r\n\(host)\r\n"),
    ]

    private static let fields: [HTTP1Case] = [
        field("a bare LF behind a field", "A: b\nC: d"),
        field("a bare CR behind a field", "A: b\rC: d"),
        field("a bare LF before the end of the head", "A: b\n"),
        raw("NUL in a value", "A: b", 0, "c"),
        raw("NUL in a name", "A", 0, "b: c"),
        raw("BEL in a value", "A: b", 7, "c"),
        raw("DEL in a value", "A: b", 127, "c"),
        raw("a byte beyond ASCII in a name", "A", 0xff, ": b"),
        field("a CR twice at the end of a line", "A: b\r"),
        field("a folded field", "A: b\r\n c"),
        refused("a blank before the first field", "GET / HTTP/1.1\r\n Host: localhost\r\n\r\n"),
        field("a space before the colon", "Content-Length : 5"),
        field("a tab before the colon", "A\t: b"),
        field("no colon", "A"),
        field("no name", ": b"),
        field("a name that is no token", "A(b: c"),
        field("`Upgrade: h2c`", "Connection: Upgrade\r\nUpgrade: h2c"),
        field("`Upgrade: websocket`", "Upgrade: websocket"),
        field("another expectation", status: 417, "Expect: 200-ok"),
    ]

    private static let hosts: [HTTP1Case] = [
        refused("no `Host`", "GET / HTTP/1.1\r\n\r\n"),
        refused("no `Host`, HTTP/1.0", "GET / HTTP/1.0\r\n\r\n"),
        refused("an empty `Host`", "GET / HTTP/1.1\r\nHost:\r\n\r\n"),
        field("`Host` twice", "Host: localhost"),
        refused("a `Host` with a user", "GET / HTTP/1.1\r\nHost: a@localhost\r\n\r\n"),
        refused("a `Host` with two names", "GET / HTTP/1.1\r\nHost: localhost, other\r\n\r\n"),
        refused("another `Host`", status: 421, "GET / HTTP/1.1\r\nHost: other\r\n\r\n"),
        refused("another port in `Host`", status: 421, "GET / HTTP/1.1\r\nHost: localhost:8443\r\n\r\n"),
        HTTP1Case("a `Host` in capitals", [200], "GET / HTTP/1.1\r\nHost: LOCALHOST\r\n\r\n"),
        HTTP1Case("a `Host` with the default port", [200], "GET / HTTP/1.1\r\nHost: localhost:443\r\n\r\n"),
        refused("a leading zero in the port of `Host`", "GET / HTTP/1.1\r\nHost: localhost:0443\r\n\r\n"),
        refused("a `Host` with an empty port", "GET / HTTP/1.1\r\nHost: localhost:\r\n\r\n"),
    ]

    private static let lengths: [HTTP1Case] = [
        taken("`Content-Length`", "Content-Length: 5\r\n", body: "hello"),
        taken("`Content-Length: 0`", "Content-Length: 0\r\n"),
        length("`Content-Length` twice, and equal", "Content-Length: 5\r\nContent-Length: 5"),
        length("two values of `Content-Length`", "Content-Length: 5\r\nContent-Length: 0"),
        length("a list of lengths", "Content-Length: 5, 5"),
        length("a plus sign", "Content-Length: +5"),
        length("a minus sign", "Content-Length: -5"),
        length("a hexadecimal length", "Content-Length: 0x5"),
        length("a leading zero", "Content-Length: 05"),
        length("an empty length", "Content-Length:"),
        length("a space in the length", "Content-Length: 5 5"),
        length("a fraction", "Content-Length: 5.0"),
        length("a length in quotes", "Content-Length: \"5\""),
        length("a length in digits beyond ASCII", "Content-Length: ５"),
        length("a length of 20 digits", "Content-Length: 10000000000000000005"),
        length("`Content-Length`, then `Transfer-Encoding`", "Content-Length: 5\r\nTransfer-Encoding: chunked"),
        length("`Transfer-Encoding`, then `Content-Length`", "Transfer-Encoding: chunked\r\nContent-Length: 5"),
    ]

    private static let codings: [HTTP1Case] = [
        length("`Transfer-Encoding` twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
        length("`chunked, chunked`", "Transfer-Encoding: chunked, chunked"),
        length("`gzip, chunked`", "Transfer-Encoding: gzip, chunked"),
        length("`chunked;q=1`", "Transfer-Encoding: chunked;q=1"),
        length("`chunked` in quotes", "Transfer-Encoding: \"chunked\""),
        length("a vertical tab before `chunked`", "Transfer-Encoding: \u{b}chunked"),
        length("a space behind the name `Transfer-Encoding`", "Transfer-Encoding : chunked"),
        length("`chunked` on a folded line", "Transfer-Encoding:\r\n chunked"),
        length("`identity`", "Transfer-Encoding: identity"),
        length("`xchunked`", "Transfer-Encoding: xchunked"),
        length("an empty `Transfer-Encoding`", "Transfer-Encoding:"),
        refused(
            "`Transfer-Encoding` over HTTP/1.0",
            "POST / HTTP/1.0\r\n\(host)Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ]

    private static let chunks: [HTTP1Case] = [
        chunked("one chunk", answers: [200], closes: false, "5\r\nhello\r\n0\r\n\r\n"),
        chunked("two chunks", answers: [200], closes: false, "a\r\nhellohello\r\nA\r\nhellohello\r\n0\r\n\r\n"),
        chunked("no chunk", answers: [200], closes: false, "0\r\n\r\n"),
        chunked("leading zeros in a size", answers: [200], closes: false, "0005\r\nhello\r\n000\r\n\r\n"),
        chunked("a short extension", answers: [200], closes: false, "5;a=b\r\nhello\r\n0\r\n\r\n"),
        chunked("no size", "\r\nhello\r\n0\r\n\r\n"),
        chunked("a plus sign in a size", "+5\r\nhello\r\n0\r\n\r\n"),
        chunked("a minus sign in a size", "-5\r\nhello\r\n0\r\n\r\n"),
        chunked("`0x` in a size", "0x5\r\nhello\r\n0\r\n\r\n"),
        chunked("a blank before a size", " 5\r\nhello\r\n0\r\n\r\n"),
        chunked("a blank behind a size", "5 \r\nhello\r\n0\r\n\r\n"),
        chunked("a size of nine digits", "000000005\r\nhello\r\n0\r\n\r\n"),
        chunked("a letter in a size", "g\r\nhello\r\n0\r\n\r\n"),
        chunked("a bare LF behind a size", "5\nhello\r\n0\r\n\r\n"),
        chunked("a bare LF in an extension", "5;a\nhello\r\n0\r\n\r\n"),
        chunked("a bare CR behind a size", "5\rhello\r\n0\r\n\r\n"),
        chunked("a size of 17 digits", "10000000000000005\r\nhello\r\n0\r\n\r\n"),
        chunked("a chunk that is shorter than its size", "6\r\nhello\r\n0\r\n\r\n"),
        chunked("a chunk that is longer than its size", "4\r\nhello\r\n0\r\n\r\n"),
        chunked("a bare LF behind a chunk", "5\r\nhello\n0\r\n\r\n"),
        chunked("an extension over 64 bytes", "5;\(String(repeating: "a", count: 64))\r\nhello\r\n0\r\n\r\n"),
        chunked(
            "extensions over 256 bytes",
            String(repeating: "1;\(String(repeating: "a", count: 50))\r\nh\r\n", count: 6) + "0\r\n\r\n"),
        chunked("a bare LF behind the last chunk", "0\r\n\n"),
        chunked("a bare CR behind the last chunk", "0\r\n\r\r\n"),
        chunked("a trailer", "0\r\nA: b\r\n\r\n"),
        chunked("a smuggled request as trailer", "0\r\nGET / HTTP/1.1\r\n\(host)\r\n"),
    ]

    private static let sizes: [HTTP1Case] = [
        taken("100 fields", String(repeating: "A: b\r\n", count: 99)),
        field("101 fields", status: 431, String(repeating: "A: b\r\n", count: 99) + "A: b"),
        field("a field over 32 KiB", status: 431, "A: \(String(repeating: "b", count: 33_000))"),
        field(
            "fields over 32 KiB", status: 431,
            String(repeating: "A: \(String(repeating: "b", count: 400))\r\n", count: 90)),
        line("a target over 32 KiB", status: 431, "GET /\(String(repeating: "b", count: 33_000)) HTTP/1.1"),
    ]
}
