import HTTP2
import JSON
import TestSupport
import Testing
import World

/// A process without free descriptors: new connections are refused, open ones continue, and the relay recovers when
/// there are some again.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct DescriptorTests {
    @Test func descriptorExhaustionRefusesOnlyNewConnections() async throws {
        let fixture = try await Fixture.start()
        let (token, phone) = try await fixture.enrol("anna")
        let before = fixture.relay.openDescriptors
        try await fixture.relay.limit("nofile", to: "\(before + 8)")
        var lines: [ClientConnection] = []
        var refusal: ConnectionFailure?
        while refusal == nil, lines.count < 32 {
            do throws(ConnectionFailure) { lines.append(try await fixture.shop.line()) } catch { refusal = error }
        }
        #expect(refusal != nil)
        #expect((1...8).contains(lines.count), "\(lines.count)")
        try await fixture.relay.logged("event=connection.exhausted")
        let login = try await fixture.login(token)
        for line in lines {
            #expect(try await line.send("GET", "/user/anna").get().status == 200)
        }
        // The phone has no open connection. One of the others is closed to make room for it.
        let full = fixture.relay.openDescriptors
        await lines[0].close()
        // The relay notices this after some time.
        while fixture.relay.openDescriptors >= full { await Task.yield() }
        try await fixture.finish(login, by: phone)
        try await fixture.relay.limit("nofile", to: "\(before + 64)")
        for _ in 0..<20 { lines.append(try await fixture.shop.line()) }
        for line in lines.dropFirst() {
            #expect(try await line.send("GET", "/user/anna").get().status == 200)
        }
    }
}
