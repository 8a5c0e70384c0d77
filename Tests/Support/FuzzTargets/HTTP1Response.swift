import HTTP
import HTTP1Wire

/// The head of a response over HTTP/1.1. No value of a field begins another line: the head has one
/// line for each field, whatever bytes a value has. The first byte chooses the status; each further
/// line is a name and a value, divided by a colon.
public enum HTTP1ResponseTarget: FuzzTarget {
    public static let seeds = [
        "2content-type:application/json\nx-two: \r\nset-cookie: a\n", "3content-length:5\n", "\u{1}", "5a:b\0c\u{7f}\n",
        "4retry-after:10\ndate:never\nconnection:keep-alive\ntransfer-encoding:chunked\n",
    ].map { Array($0.utf8) }
    public static let longest = 1024

    public static func check(_ bytes: [UInt8]) throws {
        let statuses = [101, 200, 201, 202, 204, 304, 400, 404, 413, 418, 431, 500, 503, 505, 599]
        let status = statuses[Int(bytes.first ?? 0) % statuses.count]
        let closes = bytes.count % 2 == 0
        var fields = Fields()
        var values: [[UInt8]] = []
        for line in bytes.dropFirst().split(separator: UInt8(ascii: "\n")) {
            let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
            // Names are constants of the program; values can be foreign.
            let name = "x-" + String(decoding: parts[0].filter { 0x61...0x7a ~= $0 }, as: UTF8.self)
            // The division by lines leaves no line end in a value, so `|` stands for one.
            let value = (parts.count > 1 ? parts[1] : []).map { $0 == UInt8(ascii: "|") ? 10 : $0 }
            fields.add(name, String(decoding: value, as: UTF8.self))
            values.append(Array("\(name): ".utf8) + Array(String(decoding: value, as: UTF8.self).utf8))
        }
        let response = Response(status: status, fields: fields)
        let head = ResponseHead.bytes(response, length: bytes.count, date: Array("now".utf8), closes: closes)
        try check(head, response, values, length: bytes.count, closes: closes)
    }

    private static func check(
        _ head: [UInt8], _ response: Response, _ values: [[UInt8]], length: Int, closes: Bool
    ) throws {
        var expected = values
        if response.mayHaveContent { expected.append(Array("content-length: \(length)".utf8)) }
        expected.append(Array("date: now".utf8))
        if closes { expected.append(Array("connection: close".utf8)) }
        expected += [[], []]
        let lines = head.split(separator: 10, omittingEmptySubsequences: false)
        guard lines.count == expected.count + 1, lines.last?.isEmpty == true else { throw Violation("the lines") }
        guard lines[0].starts(with: "HTTP/1.1 \(response.status) ".utf8) else { throw Violation("the status line") }
        for line in lines.dropLast() {
            guard line.last == 13, line.dropLast().allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == 9 }) else {
                throw Violation("a control character")
            }
        }
        for (line, wanted) in zip(lines.dropFirst(), expected.dropLast()) {
            let isSame = line.dropLast().elementsEqual(wanted) { $0 == $1 || $0 == 0x20 && ($1 < 0x20 || $1 == 0x7f) }
            guard isSame else { throw Violation("a field differs") }
        }
    }
}
