import FuzzTargets
import HTTP
import Log
import TestSupport
import Testing

@testable import HTTP2

/// Answers with the size of the body.
@Sendable private func echo(_ request: Request) -> Reply {
    .now(Response(status: 200, body: Array("\(request.method) \(request.body.count)".utf8)))
}

/// HTTP/1.1 over TLS, with raw bytes.
@Suite(.timeLimit(.minutes(10)), .mayBlock) struct HTTP1Tests {
    /// Every case of the table, in one write and with one write for each byte.
    @Test func everyCaseHasItsAnswer() async throws {
        try await TestServer.withHTTP1(handler: echo) { server in
            for one in HTTP1Case.all {
                for isSlow in one.bytes.count < 1000 ? [false, true] : [false] {
                    let peer = try HTTP1Peer(server)
                    let bytes = one.bytes + HTTP1Case.next
                    if isSlow { for byte in bytes { peer.send([byte]) } } else { peer.send(bytes) }
                    let statuses = peer.statuses(heads: one.name == "HEAD" ? 1 : 0)
                    #expect(statuses == one.answers + (one.closes ? [] : [200]), "\(one.name), slow: \(isSlow)")
                }
            }
        }
    }

    @Test func answerHasLengthDateAndBody() async throws {
        try await TestServer.withHTTP1 { _ in
            .now(Response(status: 201, fields: Fields([.init("content-type", "text/plain")]), body: Array("ok".utf8)))
        } _: { server in
            let peer = try HTTP1Peer(server)
            for _ in 0..<3 {
                peer.request()
                let answer = try #require(peer.answer())
                #expect(answer.status == 201)
                #expect(answer.body == "ok")
                #expect(Array(answer.fields.prefix(2)) == ["content-type: text/plain", "content-length: 2"])
                #expect(answer.fields.count == 3 && answer.fields[2].hasPrefix("date: "))
            }
        }
    }

    /// A body that is longer than one write, and than the output of one turn.
    @Test func longAnswerArrivesWhole() async throws {
        let body = [UInt8](repeating: 97, count: 3_000_000)
        try await TestServer.withHTTP1 { _ in
            .now(Response(status: 200, body: body))
        } _: { server in
            let peer = try HTTP1Peer(server)
            peer.request()
            peer.request("GET", "/", "Connection: close\r\n")
            for _ in 0..<2 { #expect(peer.answer()?.body.utf8.count == body.count) }
            #expect(peer.isEnded())
        }
    }

    @Test func answerToHeadHasNoBody() async throws {
        try await TestServer.withHTTP1(handler: echo) { server in
            let peer = try HTTP1Peer(server)
            peer.request("HEAD")
            let answer = try #require(peer.answer(toHead: true))
            #expect(answer.fields.contains("content-length: 6"))
            peer.request("GET")
            #expect(peer.answer()?.body == "GET 0")
        }
    }

    /// The client would take such a body for its next answer.
    @Test(arguments: [204, 304]) func answerWithThisStatusHasNoBody(status: Int) async throws {
        try await TestServer.withHTTP1 { _ in
            .now(Response(status: status, body: Array("no".utf8)))
        } _: { server in
            let peer = try HTTP1Peer(server)
            for _ in 0..<2 {
                peer.request()
                #expect(peer.answer()?.status == status)
            }
        }
    }

    @Test func overlongBodyIsAnsweredOnceWith413() async throws {
        let limit = ServerLimits.patient.bodyBytes
        let head = "POST / HTTP/1.1\r\nHost: localhost\r\n"
        try await TestServer.withHTTP1(handler: echo) { server in
            let stated = try HTTP1Peer(server)
            stated.send("\(head)Content-Length: \(limit + 1)\r\nExpect: 100-continue\r\n\r\n")
            #expect(stated.statuses() == [413])
            let chunked = try HTTP1Peer(server)
            chunked.send("\(head)Transfer-Encoding: chunked\r\n\r\n\(String(limit, radix: 16))\r\n")
            chunked.send([UInt8](repeating: 97, count: limit))
            chunked.send("\r\n2\r\na")
            chunked.send(HTTP1Case.next)
            #expect(chunked.statuses() == [413])
            let largest = try HTTP1Peer(server)
            largest.send("\(head)Transfer-Encoding: chunked\r\n\r\n\(String(limit, radix: 16))\r\n")
            largest.send([UInt8](repeating: 97, count: limit))
            largest.send("\r\n0\r\n\r\n")
            #expect(largest.answer()?.body == "POST \(limit)")
        }
    }

    @Test func expectingClientIsToldToProceed() async throws {
        try await TestServer.withHTTP1(handler: echo) { server in
            let peer = try HTTP1Peer(server)
            peer.request("POST", "/", "Content-Length: 2\r\nExpect: 100-continue\r\n")
            #expect(peer.answer()?.status == 100)
            peer.send("ok")
            #expect(peer.answer()?.body == "POST 2")
        }
    }

    /// The second request waits until the first one has its answer, and so do many more.
    @Test func pipelinedRequestsWaitTheirTurn() async throws {
        let work = HeldWork()
        let handled = Shared(0)
        try await TestServer.withHTTP1 { request in
            handled.withLock { $0 += 1 }
            return request.path == "/held" ? work.reply(Response(status: 202)) : .now(Response(status: 200))
        } _: { server in
            let peer = try HTTP1Peer(server)
            peer.request("GET", "/held")
            await work.hasBegun()
            let one = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
            peer.send(String(repeating: one, count: 1000))
            let other = try HTTP1Peer(server)
            other.request()
            #expect(other.answer()?.status == 200)
            #expect(handled.current == 2)
            #expect(!peer.hasInput)
            work.end()
            #expect(peer.answer()?.status == 202)
            for _ in 0..<1000 { #expect(peer.answer()?.status == 200) }
        }
    }

    /// A client that has gone gives back its held request at once, if it closed the connection or
    /// only its side, and also if bytes of it are unread.
    @Test(arguments: [false, true], [false, true]) func goneClientEndsItsHeldRequest(
        half: Bool, pipelined: Bool
    ) async throws {
        let wait = TestWait()
        try await TestServer.withHTTP1 { _ in
            .later(deadline: .seconds(3600), late: { Response(status: 503) }) {
                .held(Hold(duration: .seconds(3600), wait: wait) { .response(Response(status: 200)) })
            }
        } _: { server in
            var peer: HTTP1Peer? = try HTTP1Peer(server)
            peer?.request()
            await wait.armed.until { $0 == 1 }
            if pipelined { peer?.send(String(repeating: "GET / HTTP/1.1\r\n", count: 5000)) }
            if half { peer?.halfClose() } else { peer = nil }
            await wait.cancelled.until { $0 == 1 }
            await server.hasConnections(0)
            withExtendedLifetime(peer) {}
        }
    }

    @Test func fieldsOfTheConnectionDoNotReachTheHandler() async throws {
        let seen = Shared<[String]>([])
        try await TestServer.withHTTP1 { request in
            seen.withLock { $0 = request.fields.all.map(\.name) }
            return .now(Response(status: 200))
        } _: { server in
            let peer = try HTTP1Peer(server, certificate: try server.certificates.client())
            peer.request("GET", "/", "Connection: keep-alive\r\nKeep-Alive: 5\r\nTE: trailers\r\nX-Own: 1\r\n")
            #expect(peer.answer()?.status == 200)
            #expect(seen.current == ["x-own"])
        }
    }

    @Test func certificateIsKnownOverHTTP1() async throws {
        let seen = Shared<[String]>([])
        try await TestServer.withHTTP1 { request in
            seen.withLock { $0 = request.certificate?.uris ?? [] }
            return .now(Response(status: 200))
        } _: { server in
            let peer = try HTTP1Peer(server, certificate: try server.certificates.client())
            peer.request()
            #expect(peer.answer()?.status == 200)
            #expect(seen.current == ["twoefay:website:shop"])
            // A refusal knows of it, too.
            peer.request("GET", "/#a")
            #expect(peer.answer()?.fields.first == "has-certificate: true")
            let stranger = try HTTP1Peer(server)
            stranger.request("GET", "/#a")
            #expect(stranger.answer()?.fields.first == "has-certificate: false")
        }
    }
}

/// Deadlines, limits on connections, and the drain.
@Suite(.timeLimit(.minutes(10)), .mayBlock) struct HTTP1LimitTests {
    /// The clock advances by a second per byte.
    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: localhost\r\nA: \(String(repeating: "b", count: 90))\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90\r\n\r\n\(String(repeating: "b", count: 90))",
    ]) func slowRequestIsAnsweredAfter60Seconds(_ request: String) async throws {
        let time = TestTime()
        try await TestServer.withHTTP1(limits: ServerLimits(), time: time, handler: echo) { server in
            let (slow, other) = (try HTTP1Peer(server), try HTTP1Peer(server))
            var seconds = 0
            for byte in request.utf8 {
                slow.send([byte])
                other.passTurn()
                if slow.hasInput { break }
                seconds += 1
                time.advance(by: .seconds(1))
            }
            #expect((60...61).contains(seconds), "\(server.log.drain())")
            let answer = try #require(slow.answer())
            #expect(answer.status == 408)
            #expect(answer.closes)
        }
    }

    @Test func idleConnectionEndsAfter180Seconds() async throws {
        let time = TestTime()
        try await TestServer.withHTTP1(limits: ServerLimits(), time: time, handler: echo) { server in
            let peer = try HTTP1Peer(server)
            for seconds in [179, 179, 181] {
                peer.request()
                #expect(peer.answer()?.status == 200)
                time.advance(by: .seconds(seconds))
                try HTTP1Peer(server).passTurn()
            }
            #expect(peer.hasInput && peer.isEnded())
        }
    }

    /// The beginning of a TLS record is no request.
    @Test func bytesOfTLSDoNotKeepAnIdleConnection() async throws {
        let time = TestTime()
        try await TestServer.withHTTP1(limits: ServerLimits(), time: time, handler: echo) { server in
            let peer = try HTTP1Peer(server)
            peer.request()
            #expect(peer.answer()?.status == 200)
            for byte: UInt8 in [0x17, 0x03] {
                time.advance(by: .seconds(89))
                peer.peer.send([byte])
                try HTTP1Peer(server).passTurn()
            }
            #expect(!peer.hasInput)
            time.advance(by: .seconds(3))
            try HTTP1Peer(server).passTurn()
            #expect(peer.hasInput && peer.isEnded())
        }
    }

    /// An idle connection ends at once; a request in work is answered, and says that it is the last.
    @Test func drainEndsIdleConnectionsAndAnswersOpenRequests() async throws {
        let work = HeldWork()
        let handled = Shared<[String]>([])
        var limits = ServerLimits.patient
        limits.drainStep = .seconds(3600)
        try await TestServer.withHTTP1(limits: limits) { request in
            handled.withLock { $0.append(request.path) }
            return request.path == "/slow" ? work.reply(Response(status: 200)) : .now(Response(status: 200))
        } _: { server in
            let (idle, busy) = (try HTTP1Peer(server), try HTTP1Peer(server))
            idle.request()
            #expect(idle.answer()?.closes == false)
            busy.request("GET", "/slow")
            await work.hasBegun()
            // It is read, and not answered, because the connection ends before.
            busy.request("GET", "/quick")
            try HTTP1Peer(server).passTurn()
            let drained = await server.drain()
            #expect(idle.isEnded())
            #expect(!drained.current)
            work.end()
            let answer = try #require(busy.answer())
            #expect(answer.status == 200 && answer.closes)
            #expect(busy.isEnded())
            await drained.until { $0 }
            #expect(!handled.current.contains("/quick"))
        }
    }

    /// A held request is answered at once in a drain.
    @Test func drainAnswersHeldRequests() async throws {
        let wait = TestWait()
        try await TestServer.withHTTP1 { _ in
            .later(deadline: .seconds(3600), late: { Response(status: 503) }) {
                .held(Hold(duration: .seconds(3600), wait: wait) { .response(Response(status: 202)) })
            }
        } _: { server in
            let peer = try HTTP1Peer(server)
            peer.request()
            await wait.armed.until { $0 == 1 }
            let drained = await server.drain()
            let answer = try #require(peer.answer())
            #expect(answer.status == 202 && answer.closes)
            #expect(peer.isEnded())
            await drained.until { $0 }
        }
    }

    /// A head that has not come to its end when the drain's step is over.
    @Test func drainRefusesAnIncompleteRequest() async throws {
        let time = TestTime()
        try await TestServer.withHTTP1(time: time, handler: echo) { server in
            let peer = try HTTP1Peer(server)
            peer.request()
            #expect(peer.answer()?.status == 200)
            peer.send("GET / HTT")
            try HTTP1Peer(server).passTurn()
            let drained = await server.drain()
            #expect(!peer.hasInput)
            await server.pass(ServerLimits().drainStep, of: time)
            #expect(peer.statuses() == [408])
            // The server waits for a second until its peer has read the answer.
            while !drained.current { await server.pass(.seconds(1), of: time) }
        }
    }

    /// A website's HTTP/1.1 connection counts as the website's.
    @Test func connectionsCountForTheirCaller() async throws {
        let time = TestTime()
        let admission = AdmissionControl(AdmissionLimits(total: 64), time: time, log: Log(sink: MemorySink()))
        try await TestServer.withHTTP1(admission: admission, time: time, handler: echo) { server in
            let website = try HTTP1Peer(server, certificate: try server.certificates.client())
            let stranger = try HTTP1Peer(server)
            for peer in [website, stranger] {
                peer.request()
                #expect(peer.answer()?.status == 200)
            }
            time.advance(by: .seconds(121))
            admission.sweep()
            #expect(stranger.isEnded())
            website.request()
            #expect(website.answer()?.status == 200)
        }
    }
}
