import Crypto
import JSON
import TestSupport
import Testing

/// The file deploy/haproxy.cfg, run by HAProxy itself.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct BalancerTests {
    @Test(.enabled(if: Balancer.isInstalled)) func haproxyExampleWorks() async throws {
        let directory = try TemporaryDirectory()
        try TextFile.write(try TestCertificates().websites.certificatePEM(), to: directory("ca.pem"))
        let environment = ["TWOEFAY_CA": directory("ca.pem"), "TWOEFAY_PROXY_SOCKET": directory("socket")]
        let check = ["-c", "-f", Balancer.settings]
        let right = try await Child(Balancer.program, check, environment: environment).ended()
        #expect(right.status == 0, "\(right.errors)")
        #expect(!(right.output + right.errors).lowercased().contains("warning"), "\(right.errors)")
        // HAProxy really checks the file: without the authority the check fails.
        var without = environment
        without["TWOEFAY_CA"] = directory("nothing.pem")
        let wrong = try await Child(Balancer.program, check, environment: without).ended()
        #expect(wrong.status != 0)
    }

    /// Wrong codes of one client do not delay other clients behind the same balancer.
    @Test(.enabled(if: Balancer.isInstalled)) func clientsBehindABalancerAreDistinguished() async throws {
        try await Fixture.run(change: { try $0.set("proxies", to: Balancer.address) }) { fixture in
            let balancer = try Balancer(before: fixture.relay)
            let guesser = fixture.nobody.through(balancer.port, from: "127.0.0.3")
            let other = fixture.nobody.through(balancer.port, from: "127.0.0.4")
            let up = try await guesser.curl(
                "GET", "/health", arguments: ["--retry", "60", "--retry-connrefused", "--retry-delay", "1"])
            #expect(up.status == 200)

            // Each wrong code lengthens the pause, up to a minute, so at some point the pause is longer than a
            // request.
            var said: [Int] = []
            while said.count < 30, said.last != 429 { said.append(try await guesser.caller.guess().status) }
            #expect(said.last == 429 && Set(said.dropLast()) == [401], "\(said)")
            #expect(try await other.caller.guess().status == 401)
            #expect(try await fixture.nobody.caller.guess().status == 401)
            let slowed = fixture.relay.log.split(separator: "\n").filter { $0.contains("event=code.wrong") }
            #expect(!slowed.isEmpty && slowed.allSatisfy { $0.contains("remote=127.0.0.3") }, "\(slowed)")

            // The clients of the balancer still authenticate to the relay itself.
            let shop = try await fixture.website("shop").through(balancer.port, from: "127.0.0.4")
            #expect(try await shop.register("bob.behind").token.isEmpty == false)
            // The balancer's own health checks were answered.
            #expect(!fixture.relay.log.contains("event=connection.refused"))
        }
    }

    /// Neither directly nor through the balancer.
    @Test(.enabled(if: Balancer.isInstalled)) func proxyHeaderFromOthersIsRefused() async throws {
        try await Fixture.run(change: { try $0.set("proxies", to: Balancer.address) }) { fixture in
            let balancer = try Balancer(before: fixture.relay)
            let up = try await fixture.nobody.through(balancer.port).curl(
                "GET", "/health", arguments: ["--retry", "60", "--retry-connrefused", "--retry-delay", "1"])
            #expect(up.status == 200)
            for port in [fixture.relay.port, balancer.port] {
                let liar = try Interposer(to: port)
                let client = fixture.nobody.through(liar.port)
                #expect(try await client.curl("GET", "/health").status == 200)
                liar.set(Self.introducing([192, 0, 2, 66]))
                let status = try await client.refusal("POST", "/verify", arguments: ["--max-time", "20"])
                #expect(APIClient.broken.contains(status), "curl ended with \(status)")
                // The answer is an alert at most: the handshake was not even started.
                let answer = try #require(liar.passed.last?.toClient)
                #expect(answer.count <= 7, "\(answer)")
            }
            #expect(!fixture.relay.log.contains("192.0.2.66"))
        }
    }

    /// The same header from the right address, in one write with the first bytes of TLS.
    @Test func trustedProxyMustSendTheProxyHeader() async throws {
        let relay = try await RunningRelay.start(change: { try $0.set("proxies", to: "127.0.0.1, 10.0.0.0/8") })
        let proxy = try Interposer(to: relay.port)
        var caller = relay.caller()
        caller.port = proxy.port
        await #expect(throws: CurlCaller.Failed.self) { try await caller.curl("GET", "/health") }
        try await relay.logged("event=connection.refused")
        proxy.set(Self.introducing([192, 0, 2, 66]))
        for _ in 0..<5 { #expect(try await caller.guess().status == 401) }
        let said = try await relay.logged("event=code.wrong")
        #expect(said.contains("remote=192.0.2.66"))
        // Another address is not a proxy, and sends no header.
        caller = relay.caller()
        caller.address = "127.0.0.9"
        #expect(try await caller.guess().status == 401)
    }

    private static func introducing(_ source: [UInt8]) -> Interposer.Tamper {
        { piece, direction, number in
            direction == .toServer && number == 0 ? ProxyHeaderBytes.four(source, port: 4660) + piece : piece
        }
    }
}

extension CurlCaller {
    /// Tries an activation code that does not exist.
    fileprivate func guess() async throws -> Answer {
        try await curl(
            "POST", "/verify",
            json: #"{"id_token": "none", "activation_code": "wrong", "proof": "wrong", "platform": "ios"}"#)
    }
}
