import Bytes
import EventLoop
import Synchronization
import TestSupport
import Testing
import World

@testable import Curl

@Suite(.timeLimit(.minutes(5))) struct SMTPClientTests {
    private static let text = "Subject: x\r\n\r\nfirst\r\n.\r\n..two\r\n.three\r\nlast\r\n"

    private func mail(_ text: String = text, deadline: Duration = timeout) -> SMTPTransfer {
        SMTPTransfer(from: "login@example.com", to: "bob@example.org", data: Array(text.utf8), deadline: deadline)
    }

    private func server(_ test: TestMailServer, _ scheme: String = "smtp") throws -> SMTPServer {
        var server = SMTPServer(try #require(SMTPAddress("\(scheme)://localhost:\(test.port)")))
        server.name = "relay.example.com"
        server.connectTimeout = timeout
        return server
    }

    /// Runs `body` with a client on a loop that ends with the test.
    private func with<Value: Sendable>(
        _ server: SMTPServer, _ body: @escaping @Sendable (SMTPClient) async -> Value
    ) async throws -> Value {
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        let client = SMTPClient(server, time: SystemTime())
        let value = await group.loops[0].perform { await body(client) }
        client.close()
        return value
    }

    private func send(_ server: SMTPServer, _ transfers: SMTPTransfer...) async throws -> [Result<
        SMTPReply, SMTPFailure
    >] {
        try await with(server) { client in
            var all: [Result<SMTPReply, SMTPFailure>] = []
            for transfer in transfers { all.append(await client.send(transfer)) }
            return all
        }
    }

    private func failure(_ result: Result<SMTPReply, SMTPFailure>?) throws -> SMTPFailure {
        guard case .failure(let failure) = try #require(result) else {
            throw Child.Problem(description: "it was handed in: \(String(describing: result))")
        }
        return failure
    }

    // MARK: Delivered mail

    /// The closure of the transfer is the only reference to the client. After the mail, the client
    /// sends QUIT.
    @Test func releasedClientFinishesAndQuits() async throws {
        let test = try await TestMailServer.start()
        let server = try server(test)
        let mail = mail()
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        let sent = await group.loops[0].perform { await SMTPClient(server, time: SystemTime()).send(mail) }
        #expect(try sent.get().code == 250)
        try await test.hears(.quit)
    }

    @Test func secondMailReusesTheConnection() async throws {
        let test = try await TestMailServer.start()
        let results = try await send(try server(test), mail(), mail("a\r\n"))
        #expect(
            try results.map { try $0.get() }
                == Array(repeating: SMTPReply(code: 250, text: "2.0.0 queued as 1"), count: 2))
        let first = try await test.mail(1)
        #expect(first.data == Self.text)
        #expect(first.from == "<login@example.com>")
        #expect(first.to == ["<bob@example.org>"])
        #expect(!first.overTLS)
        #expect(try await test.mail(2).data == "a\r\n")
        #expect(test.connections == 1)
    }

    @Test func longMailArrivesComplete() async throws {
        let test = try await TestMailServer.start()
        let text = String(repeating: "0123456789.abcdef\r\n.\r\n", count: 20_000)
        _ = try #require(try await send(try server(test), mail(text)).first).get()
        #expect(try await test.mail().data == text)
    }

    @Test func connectionsAreLimited() async throws {
        let test = try await TestMailServer.start()
        var server = try server(test)
        server.connections = 3
        let outcomes = try await with(server) { [mail] client in
            await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<30 {
                    group.addTask { (try? await onLoop(client, mail(Self.text, timeout)).get()) != nil }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
        }
        #expect(outcomes == 30)
        #expect((1...3).contains(test.connections))
    }

    // MARK: Refusals

    @Test(arguments: [
        (TestMailServer.Verb.greeting, SMTPPhase.connection), (.sender, .sender), (.recipient, .recipient),
        (.data, .data), (.dot, .content),
    ])
    func refusalNamesItsStage(_ verb: TestMailServer.Verb, _ stage: SMTPPhase) async throws {
        let test = try await TestMailServer.start {
            $0.faults = [verb: [.answer("451 4.3.0 later"), .answer("554-5.7.1 never\r\n554 5.7.1 ever")]]
        }
        let results = try await send(try server(test), mail(), mail(), mail())
        let (soft, hard) = (try failure(results.first), try failure(results.dropFirst().first))
        for failure in [soft, hard] {
            #expect(failure.cause == .refused)
            #expect(failure.stage == stage)
            #expect(!failure.mayHaveArrived)
        }
        #expect(soft.reply == SMTPReply(code: 451, text: "4.3.0 later"))
        #expect(hard.reply == SMTPReply(code: 554, text: "5.7.1 never 5.7.1 ever"))
        _ = try #require(results.last).get()
    }

    @Test(arguments: [TestMailServer.Verb.greeting, .sender, .recipient, .data])
    func connectionLostBeforeTheContentIsNotAmbiguous(_ verb: TestMailServer.Verb) async throws {
        let test = try await TestMailServer.start { $0.faults = [verb: [.drop]] }
        let failure = try failure(try await send(try server(test), mail()).first)
        #expect(failure.cause == .broken)
        #expect(!failure.mayHaveArrived)
        #expect(failure.reply == nil)
    }

    @Test func connectionLostAfterTheFinalDotIsAmbiguous() async throws {
        let test = try await TestMailServer.start { $0.faults = [.dot: [.drop]] }
        let failure = try failure(try await send(try server(test), mail()).first)
        #expect(failure.mayHaveArrived)
        #expect(failure.stage == .content)
        #expect(try await test.mail().data == Self.text)
    }

    @Test(arguments: [TestMailServer.Verb.greeting, .hello, .sender, .recipient, .data, .dot])
    func hangingServerTimesOut(_ verb: TestMailServer.Verb) async throws {
        let test = try await TestMailServer.start { $0.faults = [verb: [.hang]] }
        let failure = try failure(try await send(try server(test), mail(deadline: .milliseconds(700))).first)
        #expect(failure.reply == nil)
        // On a slow machine, the transfer can end before the server reads this command.
        if failure.mayHaveArrived {
            #expect(verb == .dot)
        } else {
            #expect([.deadline, .unreachable].contains(failure.cause))
        }
    }

    @Test func timeoutAfterTheFinalDotIsAmbiguous() async throws {
        let test = try await TestMailServer.start { $0.faults = [.dot: [.hang]] }
        // Four seconds suffice for a slow machine to reach the final dot.
        let failure = try failure(try await send(try server(test), mail(deadline: .seconds(4))).first)
        #expect(failure.cause == .deadline)
        #expect(failure.mayHaveArrived)
    }

    /// Replies that neither accept nor refuse the mail: one that never ends, and replies that
    /// belong to other commands.
    @Test(arguments: ["250-2.0.0 queued", "251 somewhere else", "354 and now?", "220 ready"])
    func malformedReplyAfterTheFinalDotIsAmbiguous(_ answer: String) async throws {
        let test = try await TestMailServer.start { $0.faults = [.dot: [.answer(answer)]] }
        // Four seconds suffice for a slow machine to reach the final dot. After it, the server
        // sends nothing more.
        let deadline = answer.hasPrefix("250-") ? Duration.seconds(4) : timeout
        let failure = try failure(try await send(try server(test), mail(deadline: deadline)).first)
        #expect(failure.mayHaveArrived)
        #expect(failure.stage == .content)
        #expect("\(failure)".hasSuffix("after \(answer.prefix(3)) \(answer.dropFirst(4))"))
    }

    /// The deadline of the mail does not cover QUIT, and libcurl alone would wait two minutes for
    /// its reply.
    @Test(.timeLimit(.minutes(1))) func quitIsNotAwaited() async throws {
        let test = try await TestMailServer.start {
            $0.faults = [.recipient: [.answer("550 5.1.1 nobody")], .quit: [.hang]]
        }
        let failure = try failure(try await send(try server(test), mail()).first)
        #expect(failure.reply?.code == 550)
    }

    @Test(.timeLimit(.minutes(1))) func closeDoesNotWaitForServers() async throws {
        let test = try await TestMailServer.start()
        let server = try server(test)
        try await with(server) { [mail] client in
            _ = await client.send(mail(Self.text, timeout))
            test.freeze()
        }
    }

    // MARK: Other mails

    @Test func hangingServerDelaysNoOtherMail() async throws {
        let slow = try await TestMailServer.start { $0.faults = [.sender: [.hang], .dot: [.hang]] }
        let quick = try await TestMailServer.start()
        let (hanging, server) = (try server(slow), try server(quick))
        let result = try await with(hanging) { [mail] stuck in
            let loop = EventLoop.current
            let outcome = Mutex<Result<SMTPReply, SMTPFailure>?>(nil)
            let ended = AsyncStream<Void>.makeStream()
            loop?.spawn {
                let result = await stuck.send(mail(Self.text, timeout))
                outcome.withLock { $0 = result }
                ended.continuation.finish()
            }
            try? await slow.hears(.sender)
            let client = SMTPClient(server, time: SystemTime())
            let quick = await client.send(mail(Self.text, timeout))
            client.close()
            let wasWaiting = outcome.withLock { $0 == nil }
            stuck.close()
            for await _ in ended.stream {}
            return (quick, wasWaiting, outcome.withLock { $0 })
        }
        #expect(try result.0.get().code == 250)
        #expect(result.1)
        #expect(try failure(result.2).cause == .cancelled)
    }

    @Test func queueIsBoundedAndExpiredMailIsDropped() async throws {
        let test = try await TestMailServer.start { $0.faults = [.sender: [.hang]] }
        var server = try server(test)
        (server.connections, server.waiting) = (1, 1)
        let results = try await with(server) { [mail] client in
            guard let loop = EventLoop.current else { return [Result<SMTPReply, SMTPFailure>]() }
            let outcomes = Mutex<[Result<SMTPReply, SMTPFailure>]>([])
            let ended = AsyncStream<Void>.makeStream()
            let send = { @Sendable (deadline: Duration) in
                loop.spawn {
                    let result = await client.send(mail(Self.text, deadline))
                    outcomes.withLock { $0.append(result) }
                    ended.continuation.yield()
                }
            }
            send(timeout)
            try? await test.hears(.sender)
            send(.milliseconds(50))
            send(timeout)
            var steps = ended.stream.makeAsyncIterator()
            await steps.next()
            await steps.next()
            return outcomes.withLock { $0 }
        }
        #expect(try failure(results.first).cause == .busy)
        let late = try failure(results.last)
        #expect(late.cause == .deadline)
        #expect(late.stage == .connection)
    }

    /// While the only connection is busy, a website with many mails delays no other website.
    @Test func waitingMailsAreSentForEachOwnerInTurn() async throws {
        let test = try await TestMailServer.start { $0.faults = [.sender: [.hang]] }
        var server = try server(test)
        (server.connections, server.waiting) = (1, 4)
        let (ended, refused) = try await with(server) { [mail] client in
            guard let loop = EventLoop.current else { return ([String](), 0) }
            let outcomes = Mutex<(ended: [String], refused: Int)>(([], 0))
            let steps = AsyncStream<Void>.makeStream()
            let send = { @Sendable (owner: String, name: String, deadline: Duration) in
                loop.spawn {
                    var transfer = mail(Self.text, deadline)
                    transfer.owner = owner
                    let result = await client.send(transfer)
                    outcomes.withLock { outcomes in
                        if case .failure(let failure) = result, failure.cause == .busy {
                            outcomes.refused += 1
                        } else {
                            outcomes.ended.append(name)
                        }
                    }
                    steps.continuation.yield()
                }
            }
            // It hangs until its deadline. Meanwhile the others queue.
            send("flood", "flood 0", .seconds(3))
            try? await test.hears(.sender)
            for number in 1...6 { send("flood", "flood \(number)", timeout) }
            for number in 1...2 { send("shop", "shop \(number)", timeout) }
            var iterator = steps.stream.makeAsyncIterator()
            for _ in 0..<9 { await iterator.next() }
            return outcomes.withLock { $0 }
        }
        #expect(ended == ["flood 0", "flood 1", "shop 1", "flood 2", "shop 2", "flood 3", "flood 4"])
        #expect(refused == 2)
    }

    @Test func closedIdleConnectionIsReopened() async throws {
        let test = try await TestMailServer.start {
            $0.faults = [.sender: [.none, .answer("421 4.4.2 you were idle"), .none, .drop]]
        }
        let results = try await send(try server(test), mail(), mail(), mail())
        for result in results { _ = try result.get() }
        #expect(test.connections == 3)
    }

    @Test func connectionClosedAfterEachMailIsReopened() async throws {
        let test = try await TestMailServer.start { $0.hangsUpAfterMails = true }
        for result in try await send(try server(test), mail(), mail(), mail()) { _ = try result.get() }
        #expect(test.connections == 3)
    }

    @Test func unreachableServerIsReported() async throws {
        let port = try FreePort()
        let server = SMTPServer(try #require(SMTPAddress("smtp://127.0.0.1:\(port.port)")))
        #expect(try failure(try await send(server, mail()).first).cause == .unreachable)
        let nowhere = SMTPServer(try #require(SMTPAddress("smtp://mail.invalid")))
        #expect([.unknownHost, .unreachable].contains(try failure(try await send(nowhere, mail()).first).cause))
    }

    @Test func unsayableAddressIsNotSent() async throws {
        let test = try await TestMailServer.start()
        var bad = mail()
        for address in ["a@b.example>\r\nDATA", "jörg@example.com", "", "a b@example.com", "<a@example.com>"] {
            bad.to = address
            #expect(try failure(try await send(try server(test), bad).first).cause == .malformed)
        }
        #expect(test.said.isEmpty)
    }
}

/// Sends the transfer from a nonisolated task that runs on the thread of the loop.
private func onLoop(_ client: SMTPClient, _ transfer: SMTPTransfer) async -> Result<SMTPReply, SMTPFailure> {
    guard let loop = EventLoop.current else { return .failure(SMTPFailure(.broken, "not on a loop")) }
    return await loop.perform { await client.send(transfer) }
}
