import HTTP2
import JSON
import TestSupport
import Testing
import World

/// A process without free descriptors: new connections are refused, open ones continue, and the relay recovers when
/// there are some again.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct DescriptorTests {
    @Test func descriptorExhaustionRefusesOnlyNewConnections() async throws {
        let scene = try await Fixture.start()
        let (token, phone) = try await scene.enrol("anna")
        let before = scene.relay.openDescriptors
        try await scene.relay.limit("nofile", to: "\(before + 8)")
        var lines: [ClientConnection] = []
        var refusal: ConnectionFailure?
        while refusal == nil, lines.count < 32 {
            do throws(ConnectionFailure) { lines.append(try await scene.shop.line()) } catch { refusal = error }
        }
        #expect(refusal != nil)
        #expect((1...8).contains(lines.count), "\(lines.count)")
        try await scene.relay.logged("event=connection.exhausted")
        let login = try await scene.login(token)
        for line in lines {
            #expect(try await line.send("GET", "/user/anna").get().status == 200)
        }
        // The phone has no open connection. One of the others is closed to make room for it.
        let full = scene.relay.openDescriptors
        await lines[0].close()
        // The relay notices this after some time.
        while scene.relay.openDescriptors >= full { await Task.yield() }
        try await scene.finish(login, by: phone)
        try await scene.relay.limit("nofile", to: "\(before + 64)")
        for _ in 0..<20 { lines.append(try await scene.shop.line()) }
        for line in lines.dropFirst() {
            #expect(try await line.send("GET", "/user/anna").get().status == 200)
        }
    }
}
