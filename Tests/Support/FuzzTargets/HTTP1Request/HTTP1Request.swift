import HTTP
import HTTP1Wire

/// The parser of requests over HTTP/1.1. Its result does not depend on reads, nothing comes after a
/// fault, and it holds no more than its limits. `Fuzz/References` compares the meaning of accepted
/// requests with other implementations.
public enum HTTP1RequestTarget: FuzzTarget {
    /// Low limits, so that short inputs reach them.
    private static let limits = RequestParser.Limits(headBytes: 1024, fields: 12)

    public static var seeds: [[UInt8]] { HTTP1Case.all.map { $0.bytes + HTTP1Case.next } }
    public static let longest = 2048

    public static func check(_ bytes: [UInt8]) throws {
        let whole = try conversation(bytes) { bytes.count }
        guard try conversation(bytes, step: { 1 }).outcome == whole.outcome else {
            throw Violation("the result depends on reads of one byte")
        }
        // The bytes themselves choose the reads, so a case that was found repeats.
        var state = bytes.reduce(UInt64(bytes.count)) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        let parts = try conversation(bytes) {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return 1 + Int(state >> 58)
        }
        guard parts.outcome == whole.outcome else { throw Violation("the result depends on reads of 1 to 64 bytes") }
        for head in whole.outcome.heads { try check(head) }
    }

    private static func conversation(_ bytes: [UInt8], step: () -> Int) throws -> HTTP1Conversation {
        var conversation = HTTP1Conversation(limits: limits)
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = rest.prefix(step())
            conversation.receive(part)
            rest = rest.dropFirst(part.count)
        }
        guard conversation.eventsAfterFault == 0 else { throw Violation("an event after a fault") }
        // The line that goes over the limit counts with its 32 bytes, too.
        guard conversation.mostHeld <= limits.headBytes + 32 else {
            throw Violation("holds \(conversation.mostHeld) bytes")
        }
        return conversation
    }

    /// Checks what the routes rely on.
    private static func check(_ head: RequestHead) throws {
        guard head.size <= limits.headBytes, head.fields.all.count <= limits.fields else { throw Violation("limits") }
        guard head.path.hasPrefix("/"), head.method != "CONNECT" else { throw Violation("target") }
        guard (head.path + (head.query ?? "")).utf8.allSatisfy({ 0x21...0x7e ~= $0 && $0 != UInt8(ascii: "#") }) else {
            throw Violation("a character in the target")
        }
        guard !head.isChunked || head.contentLength == nil else { throw Violation("two lengths") }
        for field in head.fields.all {
            guard !field.name.isEmpty, field.name == field.name.lowercased() else { throw Violation("a field name") }
            let isClean = field.value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 9 }
            let ends = [field.value.utf8.first, field.value.utf8.last]
            guard isClean, !ends.contains(0x20), !ends.contains(9) else { throw Violation("a field value") }
        }
    }

    /// Each whole request as its method, target, host, fields and body in hexadecimal, and whether
    /// another request may follow.
    public static func meaning(_ bytes: [UInt8]) -> String? {
        guard let outcome = try? conversation(bytes, step: { bytes.count }).outcome, !outcome.bodies.isEmpty else {
            return nil
        }
        return zip(outcome.heads, outcome.bodies).map { head, body in
            let target = head.path + (head.query.map { "?\($0)" } ?? "")
            var parts = [head.method, target, head.host ?? ""].map { hexadecimal($0.utf8) }
            parts += [hexadecimal(body), head.staysOpen ? "open" : "close"]
            parts += head.fields.withRun { run in run.map { "\(hexadecimal($0)):\(hexadecimal($1))" } }
            return parts.joined(separator: ",")
        }.joined(separator: ";")
    }
}
