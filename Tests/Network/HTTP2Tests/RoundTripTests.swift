import Crypto
import EventLoop
import HTTP
import TestSupport
import Testing

@testable import HTTP2

private func text(_ text: String) -> [UInt8] { Array(text.utf8) }

struct RoundTripTests {
    @Test func requestAndResponseRoundTrip() async throws {
        let seen = Shared<[Request]>([])
        try await TestServer.with { request in
            seen.withLock { $0.append(request) }
            return .now(Response(status: 201, fields: Fields([.init("x-answer", "yes")]), body: text("hello")))
        } _: { server in
            let certificate = try server.certificates.client()
            let client = try await server.client(certificate)
            let response = try await client.send(
                "POST", "/a/b%20c?x=1&y=?", fields: Fields([.init("x-one", "1"), .init("x-two", "ü")]),
                body: text("the body")
            ).get()
            #expect(response.status == 201)
            #expect(response.body == text("hello"))
            #expect(response.fields["x-answer"] == "yes")
            #expect(response.fields["content-length"] == "5")
            #expect(response.fields["date"]?.hasSuffix(" GMT") == true)
            let request = try #require(seen.current.first)
            #expect(request.method == "POST")
            #expect(request.path == "/a/b%20c")
            #expect(request.query == "x=1&y=?")
            #expect(request.body == text("the body"))
            #expect(request.fields["x-one"] == "1")
            #expect(request.fields["x-two"] == "ü")
            #expect(request.remote == "127.0.0.1")
            #expect(request.certificate?.authority == .websites)
            #expect(request.certificate?.uris == ["twoefay:website:shop"])
            #expect(request.certificate?.keyThumbprint == certificate.certificate.spkiThumbprint)
        }
    }

    @Test func manyFieldsKeepTheirOrder() async throws {
        let fields = (0..<90).map { Fields.Field("x-\($0 % 60)", String(repeating: "v", count: $0)) }
        try await TestServer.with { request in
            var answer = Fields([.init("content-length", "0")])
            for field in request.fields.all { answer.add(field.name, field.value) }
            return .now(Response(status: 404, fields: answer))
        } _: { server in
            let client = try await server.client()
            // The second request shows that the first left no state behind.
            for _ in 0..<2 {
                let response = try await client.send("GET", "/", fields: Fields(fields)).get()
                #expect(response.status == 404)
                #expect(response.fields.values("content-length") == ["0"])
                #expect(response.fields.all.filter { $0.name.hasPrefix("x-") } == fields)
            }
            let few = try await client.send("GET", "/", fields: Fields([.init("x-one", "1")])).get()
            #expect(few.fields.all.count == 3)
            #expect(few.fields["x-one"] == "1")
        }
    }

    @Test func oneConnectionServesAThousandRequests() async throws {
        try await TestServer.with { request in
            .now(Response(status: 200, body: text(request.path)))
        } _: { server in
            let client = try await server.client()
            #expect(await client.perform { $0.peerMaxConcurrentStreams } == 100)
            let answers = await withTaskGroup(of: Bool.self) { group in
                for number in 0..<1000 {
                    group.addTask { (try? await client.send("GET", "/\(number)").get().body) == text("/\(number)") }
                }
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(answers == 1000)
            #expect(await client.perform { $0.activeStreams } == 0)
        }
    }

    @Test(arguments: [0, 1, 16_383, 16_384, 65_536]) func bodiesOfEverySizeArrive(size: Int) async throws {
        try await TestServer.with { request in
            .now(Response(status: 200, body: request.body.reversed()))
        } _: { server in
            let client = try await server.client()
            let body = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            let response = try await client.send("POST", "/", body: body).get()
            #expect(response.status == 200)
            #expect(response.body == body.reversed())
        }
    }

    @Test func largeResponseRespectsFlowControl() async throws {
        let large = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 13) }
        try await TestServer.with { _ in
            .now(Response(status: 200, body: large))
        } _: { server in
            let client = try await server.client()
            async let first = client.send("GET", "/")
            async let second = client.send("GET", "/")
            #expect(try await first.get().body == large)
            #expect(try await second.get().body == large)
        }
    }
}
