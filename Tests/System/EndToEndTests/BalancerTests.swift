import Crypto
import JSON
import TestSupport
import Testing

/// deploy/haproxy.cfg, by the program that it is for.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct BalancerTests {
    @Test(.enabled(if: Balancer.isInstalled)) func haproxyExampleWorks() async throws {
        let directory = try TemporaryDirectory()
        try TextFile.write(try TestCertificates().websites.certificatePEM(), to: directory("ca.pem"))
        let environment = ["TWOEFAY_CA": directory("ca.pem"), "TWOEFAY_PROXY_SOCKET": directory("socket")]
        let check = ["-c", "-f", Balancer.settings]
        let right = try await Child(Balancer.program, check, environment: environment).ended()
        #expect(right.status == 0, "\(right.errors)")
        #expect(!(right.output + right.errors).lowercased().contains("warning"), "\(right.errors)")
        // It does look: without the authority nothing can be checked.
        var without = environment
        without["TWOEFAY_CA"] = directory("nothing.pem")
        let wrong = try await Child(Balancer.program, check, environment: without).ended()
        #expect(wrong.status != 0)
    }

    /// Wrong codes of one caller make nobody else wait who comes through the same balancer.
    @Test(.enabled(if: Balancer.isInstalled)) func clientsBehindABalancerAreDistinguished() async throws {
        try await Fixture.play(change: { try $0.set("proxies", to: Balancer.address) }) { scene in
            let balancer = try Balancer(before: scene.relay)
            let guesser = scene.nobody.through(balancer.port, from: "127.0.0.3")
            let other = scene.nobody.through(balancer.port, from: "127.0.0.4")
            let up = try await guesser.curl(
                "GET", "/health", arguments: ["--retry", "60", "--retry-connrefused", "--retry-delay", "1"])
            #expect(up.status == 200)

            // With each wrong one the pause grows, up to a minute: sooner or later it is longer than a call takes.
            var said: [Int] = []
            while said.count < 30, said.last != 429 { said.append(try await guesser.caller.guess().status) }
            #expect(said.last == 429 && Set(said.dropLast()) == [401], "\(said)")
            #expect(try await other.caller.guess().status == 401)
            #expect(try await scene.nobody.caller.guess().status == 401)
            let slowed = scene.relay.log.split(separator: "\n").filter { $0.contains("event=code.wrong") }
            #expect(!slowed.isEmpty && slowed.allSatisfy { $0.contains("remote=127.0.0.3") }, "\(slowed)")

            // Whom the balancer speaks for proves who they are to the relay itself, as ever.
            let shop = try await scene.website("shop").through(balancer.port, from: "127.0.0.4")
            #expect(try await shop.register("bob.behind").token.isEmpty == false)
            // Its own questions of how the relay does were answered.
            #expect(!scene.relay.log.contains("event=connection.refused"))
        }
    }

    /// Neither past the balancer nor through it.
    @Test(.enabled(if: Balancer.isInstalled)) func proxyHeaderFromOthersIsRefused() async throws {
        try await Fixture.play(change: { try $0.set("proxies", to: Balancer.address) }) { scene in
            let balancer = try Balancer(before: scene.relay)
            let up = try await scene.nobody.through(balancer.port).curl(
                "GET", "/health", arguments: ["--retry", "60", "--retry-connrefused", "--retry-delay", "1"])
            #expect(up.status == 200)
            for port in [scene.relay.port, balancer.port] {
                let liar = try Interposer(to: port)
                let party = scene.nobody.through(liar.port)
                #expect(try await party.curl("GET", "/health").status == 200)
                liar.set(Self.introducing([192, 0, 2, 66]))
                let status = try await party.refusal("POST", "/verify", arguments: ["--max-time", "20"])
                #expect(Party.broken.contains(status), "curl ended with \(status)")
                // What came back is an alert at most: the handshake was not even begun.
                let answer = try #require(liar.passed.last?.toClient)
                #expect(answer.count <= 7, "\(answer)")
            }
            #expect(!scene.relay.log.contains("192.0.2.66"))
        }
    }

    /// The same header from where it is to come from, in one piece with what TLS begins with.
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
        // From another address, which is no proxy's and need not say whose it is.
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
    /// An activation code that nobody gave.
    fileprivate func guess() async throws -> Answer {
        try await curl(
            "POST", "/verify",
            json: #"{"id_token": "none", "activation_code": "wrong", "proof": "wrong", "platform": "ios"}"#)
    }
}
