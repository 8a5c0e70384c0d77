import FuzzTargets
import HTTP
import TestSupport
import Testing

@testable import HTTP1Wire

struct RequestParserTests {
    private func check(_ server: HTTP1Conversation, _ one: HTTP1Case, _ note: String) {
        // The next request is answered only if the connection stays open.
        #expect(server.outcome.answers == one.answers + (one.closes ? [] : [200]), "\(one.name), \(note)")
        #expect(server.outcome.isClosed, "\(one.name), \(note)")
    }

    @Test func everyCaseHasItsAnswer() {
        #expect(HTTP1Case.all.count >= 60)
        for one in HTTP1Case.all {
            var server = HTTP1Conversation()
            server.receive(one.bytes + HTTP1Case.next)
            check(server, one, "at once")
        }
    }

    @Test func answersDoNotDependOnReads() {
        for one in HTTP1Case.all {
            let bytes = one.bytes + HTTP1Case.next
            var slow = HTTP1Conversation()
            for byte in bytes { slow.receive(CollectionOfOne(byte)) }
            check(slow, one, "byte by byte")
            // In a long field, one place is like another.
            for split in 1..<bytes.count where split < 700 || split % 997 == 0 {
                var server = HTTP1Conversation()
                server.receive(bytes[..<split])
                server.receive(bytes[split...])
                check(server, one, "divided at \(split)")
            }
        }
    }

    @Test func requestHasItsParts() throws {
        var server = HTTP1Conversation()
        server.receive(
            Array(
                """
                POST /a/b?c=d?e HTTP/1.1\r
                HOST: localhost\r
                Content-Type:  application/json \r
                Connection: keep-alive\r
                Transfer-Encoding: Chunked\r
                X-Two: 1\r
                x-two: 2\r
                \r
                5\r
                hello\r
                1\r
                !\r
                0\r
                \r

                """.utf8))
        let head = try #require(server.outcome.heads.first)
        #expect(head.method == "POST")
        #expect(head.path == "/a/b")
        #expect(head.query == "c=d?e")
        #expect(head.fields["content-type"] == "application/json")
        #expect(head.fields.values("x-two") == ["1", "2"])
        #expect(Set(head.fields.all.map(\.name)) == ["content-type", "x-two"])
        #expect(head.staysOpen)
        #expect(server.outcome.bodies == [Array("hello!".utf8)])
    }

    /// An idle connection must not keep the memory of its last request.
    @Test func parserKeepsNothingOfARequest() {
        var parser = RequestParser(limits: RequestParser.Limits(headBytes: 32_768, fields: 100))
        Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8).withUnsafeBytes { bytes in
            var at = 0
            #expect(parser.next(bytes, &at) == .head)
            #expect(parser.takeHead().method == "GET")
            #expect(parser.next(bytes, &at) == .end)
            #expect(parser.next(bytes, &at) == nil)
            #expect(at == bytes.count)
        }
        #expect(parser.head == RequestHead())
        #expect(!parser.isMidHead)
    }

    /// The parser must not trap, and its events must not depend on reads. After a fault there are
    /// no more events.
    @Test func mutatedRequestsAreSafe() {
        var random = SeededRandomness(seed: 18)
        for _ in 0..<20_000 {
            let bytes = HTTP1Case.mutated(&random)
            var (whole, parts) = (HTTP1Conversation(), HTTP1Conversation())
            whole.receive(bytes)
            for byte in bytes { parts.receive(CollectionOfOne(byte)) }
            #expect(whole.outcome == parts.outcome)
            #expect(whole.eventsAfterFault == 0 && parts.eventsAfterFault == 0)
        }
    }
}

struct ResponseHeadTests {
    @Test func lineEndInAValueBeginsNoField() {
        let response = Response(status: 200, fields: Fields([.init("a", "b\r\nset-cookie: c")]))
        let head = ResponseHead.bytes(response, length: 3, date: Array("now".utf8), closes: true)
        #expect(
            String(decoding: head, as: UTF8.self)
                == "HTTP/1.1 200 OK\r\na: b  set-cookie: c\r\ncontent-length: 3\r\ndate: now\r\nconnection: close\r\n\r\n"
        )
    }

    @Test func answerWithoutContentHasNoLength() {
        let head = ResponseHead.bytes(Response(status: 204), length: 0, date: Array("now".utf8), closes: false)
        #expect(String(decoding: head, as: UTF8.self) == "HTTP/1.1 204 No Content\r\ndate: now\r\n\r\n")
    }
}
