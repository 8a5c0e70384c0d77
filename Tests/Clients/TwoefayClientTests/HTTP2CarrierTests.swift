import Bytes
import Crypto
import EventLoop
import HTTP
import JSON
import TestSupport
import Testing
import TwoefayClient
import World

/// HTTP/2 over real TLS with a scripted relay.
@Suite("HTTP2Carrier", .timeLimit(.minutes(5)), .mayBlock) struct HTTP2CarrierTests {
    @Test func requestIsSentUnchanged() async throws {
        let relay = try FakeRelay()
        relay.answer(201, ["challenge": "c1"], fields: [.init("request-id", "r1")])
        relay.answer(204, [:])
        let replies = try await relay.run { loop, address in
            let carrier = try relay.carrier(on: loop, to: address)
            let first = try await carrier.send(
                RelayCall("POST", "/login", fields: ["idempotency-key": "k"], body: ["username": "ada"]))
            let second = try await carrier.send(RelayCall("DELETE", "/user/ada"))
            await carrier.close()
            return [first, second]
        }
        #expect(replies.map(\.status) == [201, 204])
        #expect(replies[0].fields["request-id"] == "r1")
        #expect(try JSONReader.read(replies[0].body) == ["challenge": "c1"])
        #expect(replies[1].body == [])
        let asked = relay.asked
        #expect(asked.map { "\($0.method) \($0.path)" } == ["POST /login", "DELETE /user/ada"])
        #expect(asked[0].body == ["username": "ada"] && asked[0].fields["idempotency-key"] == "k")
        #expect(asked[0].fields["content-type"] == "application/json" && asked[1].fields["content-type"] == nil)
        #expect(asked.allSatisfy { $0.certificate?.uris == ["twoefay:website:shop"] })
    }

    /// Many concurrent tasks on any thread use one transport that has its own thread.
    @Test func allCallsShareOneConnection() async throws {
        let relay = try FakeRelay()
        for number in 0..<20 { relay.answer(200, ["n": .integer(Int64(number))]) }
        let answers = try await relay.run { _, address in
            let issued = try relay.websites.issueClient(
                uri: "twoefay:website:shop", days: 1, at: SystemTime().now())
            let carrier = try HTTP2Carrier(
                origin: address.text, authority: try relay.authority.certificatePEM(),
                certificate: try issued.certificatePEM(), key: try issued.keyPEM())
            let answers = try await withThrowingTaskGroup(of: Int64?.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        let reply = try await carrier.send(RelayCall("GET", "/"))
                        return try JSONReader.read(reply.body).object?["n"]?.integer
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            await carrier.close()
            return answers
        }
        #expect(Set(answers.compactMap(\.self)) == Set(0..<20))
    }

    @Test func unsentRequestIsReportedAsUnreached() async throws {
        let port = try FreePort()
        let relay = try FakeRelay()
        let (refused, untrusted, closed) = try await relay.run { loop, address in
            let away = try relay.carrier(
                on: loop, to: WebAddress(secure: true, host: "127.0.0.1", port: port.port))
            let issued = try relay.websites.issueClient(
                uri: "twoefay:website:shop", days: 1, at: SystemTime().now())
            let wary = try HTTP2Carrier(
                loop: loop, relay: address, authority: try relay.phones.certificatePEM(),
                certificate: try issued.certificatePEM(), key: try issued.keyPEM())
            let faults = (
                await Self.fault(away, RelayCall("GET", "/")), await Self.fault(wary, RelayCall("GET", "/"))
            )
            await away.close()
            await wary.close()
            return (faults.0, faults.1, await Self.fault(away, RelayCall("GET", "/")))
        }
        for fault in [refused, untrusted, closed] {
            guard case .unreached = fault else {
                Issue.record("\(String(describing: fault))")
                continue
            }
        }
        #expect(relay.asked.isEmpty)
    }

    private static func fault(_ carrier: HTTP2Carrier, _ call: RelayCall) async -> CallFault? {
        do throws(CallFault) {
            _ = try await carrier.send(call)
            return nil
        } catch {
            return error
        }
    }

    @Test func invalidCredentialsAreRefused() async throws {
        let authority = try CertificateAuthority.create(commonName: "relay", days: 1, at: SystemTime().now())
        let issued = try authority.issueClient(uri: "twoefay:website:shop", days: 1, at: SystemTime().now())
        let (pem, key) = (try authority.certificatePEM(), try issued.keyPEM())
        for (origin, certificate) in [
            ("https://relay/", try issued.certificatePEM()), ("relay", try issued.certificatePEM()),
            ("https://relay", []), ("https://relay", Array("nonsense".utf8)),
        ] {
            let fault = #expect(throws: CallFault.self) {
                try HTTP2Carrier(origin: origin, authority: pem, certificate: certificate, key: key)
            }
            guard case .unable = fault else {
                Issue.record("\(String(describing: fault))")
                continue
            }
        }
    }

    /// A call and a pause end when their task is cancelled.
    @Test func cancelledTaskEndsTheRequest() async throws {
        let relay = try FakeRelay()
        let fault = try await relay.run { loop, address in
            let carrier = try relay.carrier(on: loop, to: address)
            let call = Task { await Self.fault(carrier, RelayCall("POST", "/auth", timeout: .seconds(3600))) }
            call.cancel()
            let fault = await call.value
            let pause = Task { await carrier.pause(for: .seconds(3600)) }
            pause.cancel()
            await pause.value
            await carrier.pause(for: .milliseconds(1))
            await carrier.close()
            return fault
        }
        #expect(fault == .cancelled)
    }
}
