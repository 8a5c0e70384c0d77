import EventLoop
import HTTP
import HTTP2
import Synchronization
import TestSupport
import Testing

@testable import Curl

@Suite struct WebClientTests {
    private func transfer(
        _ url: String, _ method: String = "POST", body: String = "words", deadline: Duration = timeout,
        answerBytes: Int = 65_536
    ) throws -> Transfer {
        Transfer(
            method: method, url: try #require(TransferURL(url)),
            fields: Fields([Fields.Field("x-test", "a b"), Fields.Field("content-type", "text/plain")]),
            body: Array(body.utf8), deadline: deadline, answerBytes: answerBytes)
    }

    @Test func http2ConnectionIsReused() async throws {
        try await Fixture.with { fixture in
            let echo: @Sendable (Request) -> Reply = { request in
                let described =
                    "\(request.method) \(request.path)?\(request.query ?? "") \(request.fields["x-test"] ?? "")"
                return .now(
                    Response(
                        status: 201, fields: Fields([Fields.Field("x-described", described)]),
                        body: request.body + Array((request.fields["content-type"] ?? "").utf8)))
            }
            try await fixture.serving(echo) { server, port in
                let one = try transfer("https://localhost:\(port)/a/b?c=d")
                let none = try transfer("https://localhost:\(port)/e", "DELETE", body: "")
                let (first, second, open) = try await fixture.sending { client in
                    let first = await client.send(one)
                    return (first, await client.send(none), server.value.connectionCount)
                }
                let answer = try first.get()
                #expect(answer.status == 201)
                #expect(answer.fields["x-described"] == "POST /a/b?c=d a b")
                #expect(String(decoding: answer.body, as: UTF8.self) == "wordstext/plain")
                #expect(try second.get().fields["x-described"] == "DELETE /e? a b")
                #expect(open == 1)
            }
        }
    }

    @Test func connectionsAreNotReusedWhenDisabled() async throws {
        try await Fixture.with { fixture in
            let start = await fixture.loop.perform { [loop = fixture.loop] in LoopBound(SilentStart(), on: loop) }
            try await fixture.serving({ _ in .now(Response(status: 204)) }, keeper: start) { _, port in
                let one = try transfer("https://localhost:\(port)/")
                let (answers, connections) = try await fixture.sending({ $0.keepsConnections = false }) { client in
                    // The first connection stays open without an answer.
                    var first: RunningTransfer?
                    await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                        start.value.heard = { continuation.resume() }
                        first = client.start(one) { _ in }
                    }
                    start.value.heard = {}
                    let answers = [await client.send(one), await client.send(one)]
                    first?.cancel()
                    return (answers, start.value.connections)
                }
                #expect(try answers.map { try $0.get().status } == [200, 200])
                #expect(connections == 3)
            }
        }
    }

    @Test func concurrentTransfersShareAConnection() async throws {
        try await Fixture.with { fixture in
            try await fixture.serving({ .now(Response(status: 200, body: Array($0.path.utf8))) }) { server, port in
                let asked = try (0..<40).map { try transfer("https://localhost:\(port)/\($0)") }
                let (right, open) = try await fixture.sending { client in
                    let right = await withUnsafeContinuation { (continuation: UnsafeContinuation<Int, Never>) in
                        var (right, left) = (0, asked.count)
                        for (number, transfer) in asked.enumerated() {
                            client.start(transfer) { result in
                                if (try? result.get())?.body == Array("/\(number)".utf8) { right += 1 }
                                left -= 1
                                if left == 0 { continuation.resume(returning: right) }
                            }
                        }
                    }
                    return (right, server.value.connectionCount)
                }
                #expect(right == asked.count)
                #expect(open == 1)
            }
        }
    }

    @Test func http1IsTheFallback() async throws {
        try await Fixture.with { fixture in
            let answer =
                "HTTP/1.1 100 Continue\r\nx-a: no\r\n\r\nHTTP/1.1 202 Fine\r\nX-A:  b \r\nContent-Length: 2\r\n\r\nhi"
            try await fixture.speaking(answer) { server, port in
                let one = try transfer("http://127.0.0.1:\(port)/x")
                let (result, heard) = try await fixture.sending({ $0.plainHTTP = .anywhere }) { client in
                    (await client.send(one), String(decoding: server.value.heard, as: UTF8.self))
                }
                let answer = try result.get()
                #expect(answer.status == 202)
                #expect(answer.fields.values("x-a") == ["b"])
                #expect(answer.body == Array("hi".utf8))
                #expect(heard.hasPrefix("POST /x HTTP/1.1\r\n"))
                #expect(heard.hasSuffix("\r\n\r\nwords"))
            }
        }
    }

    /// Returns the failure of one transfer through a client with these options.
    private func failure(
        _ fixture: Fixture, _ transfer: Transfer,
        _ change: @escaping @Sendable (inout WebClientOptions) -> Void = { _ in }
    ) async throws -> TransferFailure? {
        let result = try await fixture.sending(change) { await $0.send(transfer) }
        guard case .failure(let failure) = result else { return nil }
        return failure
    }

    @Test("hosts on the loopback interface", arguments: ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]"])
    func privateAddressIsRefused(host: String) async throws {
        try await Fixture.with { fixture in
            try await fixture.speaking("") { server, port in
                let one = try transfer("https://\(host):\(port)/")
                let failed = try await failure(fixture, one) { $0.addresses = AddressGuard() }
                #expect(failed?.cause == .refusedAddress)
                #expect(failed?.mayHaveArrived == false)
                #expect(failed?.reason.contains("loopback") == true)
                // The server accepts connections in their order. If this connection is the first,
                // the refused transfer opened none.
                try await fixture.sending { client in
                    await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                        let next = client.start(one) { _ in continuation.resume() }
                        server.value.spoken = { next.cancel() }
                    }
                    server.value.spoken = {}
                }
                #expect(await fixture.loop.perform { server.value.connections } == 1)
            }
        }
    }

    @Test func configuredRangeIsAllowed() async throws {
        try await Fixture.with { fixture in
            try await fixture.serving({ _ in .now(Response(status: 204)) }) { _, port in
                let one = try transfer("https://localhost:\(port)/")
                let range = try #require(AddressRange("127.0.0.0/8"))
                let result = try await fixture.sending({ $0.addresses = AddressGuard(allowing: [range]) }) {
                    await $0.send(one)
                }
                #expect(try result.get().status == 204)
            }
        }
    }

    @Test func oneAllowedAddressIsEnough() async throws {
        try await Fixture.with { fixture in
            let one = try transfer("https://localhost/")
            let reasons = try await fixture.sending({ $0.addresses = AddressGuard() }) { client in
                [["127.0.0.1"], ["127.0.0.1", "192.0.9.1"], ["192.0.9.1", "127.0.0.1"]].map { hosts in
                    let running = RunningTransfer(one, client) { _ in }
                    for host in hosts {
                        SocketAddress(host: host, port: 443)?.withPointer { address, length in
                            _ = running.mayConnect(to: UnsafeRawBufferPointer(start: address, count: Int(length)))
                        }
                    }
                    return running.refusal
                }
            }
            #expect(reasons == [.address("loopback"), nil, nil])
        }
    }

    @Test func redirectIsReturnedAndNotFollowed() async throws {
        try await Fixture.with { fixture in
            let away = Response(status: 302, fields: Fields([Fields.Field("location", "https://localhost/elsewhere")]))
            try await fixture.serving({ _ in .now(away) }) { _, port in
                let one = try transfer("https://localhost:\(port)/")
                let result = try await fixture.sending { await $0.send(one) }
                #expect(try result.get().status == 302)
            }
        }
    }

    @Test func plainHTTPIsRefusedByDefault() async throws {
        try await Fixture.with { fixture in
            let failed = try await failure(fixture, try transfer("http://localhost/"))
            #expect(failed?.cause == .insecure)
            #expect(failed?.mayHaveArrived == false)
        }
    }

    @Test func untrustedServerGetsNoRequest() async throws {
        try await Fixture.with { fixture in
            try await fixture.serving({ _ in .now(Response(status: 200)) }) { _, port in
                let failed = try await failure(fixture, try transfer("https://localhost:\(port)/")) {
                    $0.extraTrust = nil
                }
                #expect(failed?.cause == .untrusted)
                #expect(failed?.mayHaveArrived == false)
            }
        }
    }

    @Test func unreachableServerIsReportedAsUnsent() async throws {
        try await Fixture.with { fixture in
            let port = try await fixture.speaking("") { _, port in port }
            let failed = try await failure(fixture, try transfer("https://127.0.0.1:\(port)/"))
            #expect(failed?.cause == .unreachable)
            #expect(failed?.mayHaveArrived == false)
        }
    }

    @Test func brokenHandshakeIsUntrusted() async throws {
        try await Fixture.with { fixture in
            try await fixture.speaking("HTTP/1.1 503 Restarting\r\n\r\n") { _, port in
                let failed = try await failure(fixture, try transfer("https://localhost:\(port)/"))
                #expect(failed?.cause == .unreachable)
                #expect(failed?.mayHaveArrived == false)
            }
        }
    }

    @Test func missingAnswerEndsAtTheDeadline() async throws {
        try await Fixture.with { fixture in
            let never = Reply.later(deadline: timeout, late: { Response(status: 503) }) {
                await EventLoop.current?.sleep(for: timeout)
                return .response(Response(status: 200))
            }
            try await fixture.serving({ _ in never }) { _, port in
                // The first transfer makes the connection, which may be slow, so its deadline is
                // generous.
                let one = try transfer("https://localhost:\(port)/", deadline: .seconds(2))
                let failed = try await failure(fixture, one)
                #expect(failed?.cause == .deadline)
            }
            try await fixture.speaking("") { server, port in
                let one = try transfer("http://127.0.0.1:\(port)/", deadline: .seconds(2))
                let failed = try await failure(fixture, one) { $0.plainHTTP = .anywhere }
                #expect(failed?.cause == .deadline)
                let heard = await fixture.loop.perform { !server.value.heard.isEmpty }
                #expect(failed?.mayHaveArrived == true || !heard)
            }
        }
    }

    @Test func silentConnectionIsNotReused() async throws {
        try await Fixture.with { fixture in
            let start = await fixture.loop.perform { [loop = fixture.loop] in LoopBound(SilentStart(), on: loop) }
            try await fixture.serving({ _ in .now(Response(status: 500)) }, keeper: start) { _, port in
                let one = try transfer("https://localhost:\(port)/")
                let (first, second, connections) = try await fixture.sending { client in
                    let first = await withUnsafeContinuation {
                        (continuation: UnsafeContinuation<Result<Response, TransferFailure>, Never>) in
                        let running = client.start(one) { continuation.resume(returning: $0) }
                        // The deadline ends when the server has received the request.
                        start.value.heard = { client.give(up: running, .deadline, "no answer in time") }
                    }
                    start.value.heard = {}
                    return (first, await client.send(one), start.value.connections)
                }
                guard case .failure(let failed) = first else {
                    Issue.record("\(first)")
                    return
                }
                #expect(failed.cause == .deadline && failed.mayHaveArrived)
                #expect(try second.get().status == 200)
                #expect(connections == 2)
            }
        }
    }

    @Test func endlessBodyIsCutOff() async throws {
        try await Fixture.with { fixture in
            let start = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n" + String(repeating: "x", count: 4000)
            try await fixture.speaking(start, again: true) { _, port in
                let one = try transfer("http://127.0.0.1:\(port)/", answerBytes: 10_000)
                let failed = try await failure(fixture, one) { $0.plainHTTP = .anywhere }
                #expect(failed?.cause == .tooLarge)
                #expect(failed?.mayHaveArrived == true)
                #expect(failed?.status == 200)
                #expect(failed?.fields["content-length"] == "1000000000")
            }
        }
    }

    @Test func endlessHeaderIsCutOff() async throws {
        try await Fixture.with { fixture in
            // Endless interim responses count as an oversized head, too.
            let part = "HTTP/1.1 103 Early Hints\r\nlink: </x>; rel=preload\r\n\r\n"
            try await fixture.speaking(part, again: true) { _, port in
                let one = try transfer("http://127.0.0.1:\(port)/")
                let failed = try await failure(fixture, one) { $0.plainHTTP = .anywhere }
                #expect(failed?.cause == .tooLarge)
                #expect(failed?.status == nil)
            }
        }
    }

    @Test func nonHTTPAnswerIsBroken() async throws {
        try await Fixture.with { fixture in
            try await fixture.speaking("SSH-2.0-something\r\n") { _, port in
                let failed = try await failure(fixture, try transfer("http://127.0.0.1:\(port)/")) {
                    $0.plainHTTP = .anywhere
                }
                #expect(failed?.cause == .broken)
                #expect(failed?.mayHaveArrived == true)
            }
        }
    }

    @Test func headerInjectionIsRefused() async throws {
        try await Fixture.with { fixture in
            for field in [("x", "a\r\nb: c"), ("x y", "a"), ("", "a"), ("x", "a\0")] {
                var one = try transfer("https://localhost/")
                one.fields.add(field.0, field.1)
                #expect(try await failure(fixture, one)?.cause == .malformed)
            }
            #expect(try await failure(fixture, try transfer("https://localhost/", "GET /\r\nx:"))?.cause == .malformed)
        }
    }

    @Test func unreachableServersDoNotBlockOthers() async throws {
        try await Fixture.with { fixture in
            try await fixture.serving({ _ in .now(Response(status: 204)) }) { _, port in
                try await fixture.speaking("") { _, silent in
                    let known = try transfer("https://localhost:\(port)/")
                    // The server behind these URLs never completes a TLS handshake.
                    let nowhere = try ["localhost", "127.0.0.1"].map { try transfer("https://\($0):\(silent)/") }
                    let (statuses, causes) = try await fixture.sending({ $0.transfersUnreached = 1 }) { client in
                        var causes: [TransferFailure.Cause] = []
                        let note = { (result: Result<Response, TransferFailure>) in
                            if case .failure(let failure) = result { causes.append(failure.cause) }
                        }
                        var statuses = [try? await client.send(known).get().status]
                        let first = client.start(nowhere[0], completion: note)
                        client.start(nowhere[1], completion: note)
                        statuses.append(try? await client.send(known).get().status)
                        first.cancel()
                        client.start(nowhere[1], completion: note)
                        client.close()
                        return (statuses, causes)
                    }
                    #expect(statuses == [204, 204])
                    #expect(causes == [.busy, .cancelled, .cancelled])
                }
            }
        }
    }

    @Test func concurrentTransfersAreLimited() async throws {
        try await Fixture.with { fixture in
            try await fixture.speaking("") { _, port in
                let here = try transfer("http://127.0.0.1:\(port)/")
                let there = try transfer("http://localhost:\(port)/")
                let causes = try await fixture.sending({
                    $0.plainHTTP = .anywhere
                    $0.transfersPerServer = 2
                    $0.transfers = 3
                }) { client in
                    var causes: [TransferFailure.Cause] = []
                    let note = { (result: Result<Response, TransferFailure>) in
                        if case .failure(let failure) = result { causes.append(failure.cause) }
                    }
                    let first = client.start(here, completion: note)
                    client.start(here, completion: note)
                    // Two transfers per server are allowed, and three in total.
                    client.start(here, completion: note)
                    client.start(there, completion: note)
                    client.start(there, completion: note)
                    first.cancel()
                    first.cancel()
                    client.start(there, completion: note)
                    let underWay = client.count
                    client.close()
                    client.start(here, completion: note)
                    #expect(underWay == 3)
                    return causes
                }
                #expect(causes.prefix(3) == [.busy, .busy, .cancelled])
                #expect(causes.dropFirst(3) == [.cancelled, .cancelled, .cancelled, .cancelled])
            }
        }
    }
}
