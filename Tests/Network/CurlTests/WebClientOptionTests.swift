import Crypto
import EventLoop
import HTTP
import TestSupport
import Testing

@testable import Curl

/// Options for URLs of websites, which an operator configures, such as those of webhooks.
@Suite struct WebClientOptionTests {
    private func transfer(_ url: String, deadline: Duration = timeout) throws -> Transfer {
        Transfer(
            method: "POST", url: try #require(TransferURL(url)), body: Array("words".utf8), deadline: deadline,
            answerBytes: 1000)
    }

    @Test func clientCertificateIsShownOnRequest() async throws {
        try await Fixture.with { fixture in
            let uris: @Sendable (Request) -> Reply = { request in
                .now(Response(status: 200, body: Array((request.certificate?.uris ?? []).joined(separator: " ").utf8)))
            }
            try await fixture.serving(uris) { _, port in
                let one = try transfer("https://localhost:\(port)/")
                let issued = try fixture.certificates.client(names: [.uri("twoefay:website:relay")])
                let (chain, key) = (try issued.certificatePEM(), try issued.keyPEM())
                let shown = try await fixture.sending({
                    $0.clientCertificate = WebClientOptions.ClientCertificate(chain: chain, key: key)
                }) { await $0.send(one) }
                #expect(try String(decoding: shown.get().body, as: UTF8.self) == "twoefay:website:relay")
                let bare = try await fixture.sending { await $0.send(one) }
                #expect(try bare.get().body == [])
            }
        }
    }

    @Test func mismatchedKeyAndCertificateAreRefused() async throws {
        try await Fixture.with { fixture in
            try await fixture.serving({ _ in .now(Response(status: 200)) }) { _, port in
                let one = try transfer("https://localhost:\(port)/")
                let (issued, other) = (try fixture.certificates.client(), try fixture.certificates.client())
                let (chain, key) = (try issued.certificatePEM(), try other.keyPEM())
                let result = try await fixture.sending({
                    $0.clientCertificate = WebClientOptions.ClientCertificate(chain: chain, key: key)
                }) { await $0.send(one) }
                guard case .failure(let failed) = result else {
                    Issue.record("\(result)")
                    return
                }
                #expect(failed.status == nil && !failed.mayHaveArrived)
            }
        }
    }

    @Test(
        "plain HTTP only to the named ranges",
        arguments: [
            (["127.0.0.0/8"], nil), (["127.0.0.1"], nil), (["0.0.0.0/0"], nil),
            // A private address outside the ranges is refused before the scheme is considered.
            ([], .refusedAddress), (["127.0.0.2", "::1"], .refusedAddress),
        ] as [([String], TransferFailure.Cause?)])
    func plainHTTPIsAllowedOnlyInNamedRanges(ranges: [String], cause: TransferFailure.Cause?) async throws {
        try await Fixture.with { fixture in
            try await fixture.speaking("HTTP/1.1 204 No\r\n\r\n") { server, port in
                let one = try transfer("http://127.0.0.1:\(port)/")
                let allowed = try ranges.map { try #require(AddressRange($0)) }
                let result = try await fixture.sending({
                    $0.addresses = AddressGuard(allowing: allowed)
                    $0.plainHTTP = .namedRanges
                }) { await $0.send(one) }
                switch result {
                case .success(let answer): #expect(answer.status == 204 && cause == nil)
                case .failure(let failure):
                    #expect(failure.cause == cause && !failure.mayHaveArrived, "\(failure)")
                    #expect(await fixture.loop.perform { server.value.heard.isEmpty })
                }
            }
        }
    }

    /// Returns the refusal of a transfer whose host name resolves to these addresses.
    private func refusals(
        _ url: String, _ hosts: [String], own: [[UInt8]] = []
    ) async throws -> RunningTransfer.Refusal? {
        let one = try transfer(url)
        let ranges = try ["10.20.0.0/16", "198.41.0.0/24", "fd00::/8"].map { try #require(AddressRange($0)) }
        return try await Fixture.with { fixture in
            try await fixture.sending({
                $0.addresses = AddressGuard(allowing: ranges, own: own)
                $0.plainHTTP = .namedRanges
            }) { client in
                let running = RunningTransfer(one, client) { _ in }
                for host in hosts {
                    SocketAddress(host: host, port: 80)?.withPointer { address, length in
                        _ = running.mayConnect(to: UnsafeRawBufferPointer(start: address, count: Int(length)))
                    }
                }
                return running.refusal
            }
        }
    }

    @Test func plainHTTPOutsideTheRangesIsRefused() async throws {
        let (plain, secure) = ("http://shop.example/", "https://shop.example/")
        #expect(try await refusals(plain, ["198.51.99.1"]) == .insecure)
        #expect(try await refusals(secure, ["198.51.99.1"]) == nil)
        // The first address is public. The others are the operator's own network.
        #expect(try await refusals(plain, ["198.41.0.4"]) == nil)
        #expect(try await refusals(plain, ["10.20.1.1"]) == nil)
        #expect(try await refusals(plain, ["::ffff:10.20.1.1"]) == nil)
        #expect(try await refusals(plain, ["::ffff:198.51.99.1"]) == .insecure)
        #expect(try await refusals(plain, ["fd00::1"]) == nil)
        #expect(try await refusals(plain, ["10.21.0.1"]) == .address("private"))
        #expect(try await refusals(secure, ["10.21.0.1"]) == .address("private"))
        // One allowed address of a name suffices.
        #expect(try await refusals(plain, ["198.51.99.1", "10.20.1.1"]) == nil)
    }

    /// A later lookup of a rebinding name returns another address, which is checked like the first.
    @Test func resolvedAddressIsCheckedForEachTransfer() async throws {
        #expect(try await refusals("https://shop.example/", ["198.51.99.1"]) == nil)
        #expect(try await refusals("https://shop.example/", ["127.0.0.1"]) == .address("loopback"))
        let own: [[UInt8]] = [[198, 51, 99, 1]]
        #expect(
            try await refusals("https://shop.example/", ["198.51.99.1"], own: own) == .address("this machine's own"))
    }

    /// A plain HTTP connection carries one transfer at a time. Another transfer does not wait for
    /// it.
    @Test func eachPlainTransferOpensItsOwnConnection() async throws {
        try await Fixture.with { fixture in
            try await fixture.speaking("") { server, port in
                let one = try transfer("http://127.0.0.1:\(port)/")
                let connections = try await fixture.sending({ $0.plainHTTP = .anywhere }) { client in
                    await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                        var heard = 0
                        server.value.spoken = {
                            heard += 1
                            if heard == 3 { continuation.resume() }
                        }
                        for _ in 0..<3 { client.start(one) { _ in } }
                    }
                    server.value.spoken = {}
                    return server.value.connections
                }
                #expect(connections == 3)
            }
        }
    }

    @Test(
        "a body that never ends after a complete head",
        arguments: ["HTTP/1.1 503 Later\r\nretry-after: 7\r\ncontent-length: 10\r\n\r\nabc"])
    func endlessBodyIsCutOff(_ start: String) async throws {
        try await Fixture.with { fixture in
            try await fixture.speaking(start) { server, port in
                // On a slow machine, the head may not arrive before the first deadlines.
                for seconds in [1, 2, 4, 8, 16, 32, 64] {
                    let one = try transfer("http://127.0.0.1:\(port)/", deadline: .seconds(seconds))
                    let result = try await fixture.sending({ $0.plainHTTP = .anywhere }) { await $0.send(one) }
                    guard case .failure(let failed) = result else {
                        Issue.record("\(result)")
                        return
                    }
                    #expect(failed.cause == .deadline)
                    guard let status = failed.status else { continue }
                    #expect(status == 503 && failed.fields["retry-after"] == "7" && failed.mayHaveArrived)
                    return
                }
                Issue.record("no status was ever known")
            }
        }
    }
}
