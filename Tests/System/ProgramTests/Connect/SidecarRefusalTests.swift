import JSON
import TestSupport
import Testing

/// Requests that `twoefay connect` does not pass on.
@Suite("Refusals of twoefay connect", .timeLimit(.minutes(15)), .mayBlock) struct SidecarRefusalTests {
    @Test func foreignCallersAndRoutesAreRefused() async throws {
        let fixture = try await Fixture(.file)
        let sidecar = try await RunningSidecar(fixture.relay)
        func check(
            _ method: String, _ path: String, _ fields: [String], _ status: Int, _ code: String,
            at place: SourceLocation = #_sourceLocation
        ) async throws {
            let answer = try await sidecar.curl(method, path, nil, fields.flatMap { ["--header", $0] })
            #expect(
                answer.status == status && answer["code"]?.string == code, "\(method) \(path) \(fields): \(answer)",
                sourceLocation: place)
        }
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "[::1]", "localhost:80"] {
            #expect(try await sidecar.curl("GET", "/health", nil, ["--header", "host: \(host)"]).status == 200)
        }
        for host in ["evil.example", "localhost:8080", "localhost.evil.example", "10.0.0.1", "login.example.com"] {
            try await check("GET", "/health", ["host: \(host)"], 421, "connect_host")
        }
        for field in [
            "origin: http://localhost", "origin: null", "sec-fetch-site: none", "Sec-Fetch-Site: same-origin",
        ] {
            try await check("GET", "/health", [field], 403, "connect_browser")
        }
        // The first are those of phones. The others name no route, or have another method.
        for (method, path) in [
            ("POST", "/pending"), ("POST", "/device"), ("DELETE", "/device"), ("POST", "/device/status"),
            ("GET", "/messages"), ("GET", "/recovery"), ("POST", "/revoke"), ("POST", "/device/goodbye"),
            ("GET", "/"), ("POST", "/login/"), ("POST", "//login"), ("POST", "/Login"), ("POST", "/%6cogin"),
            ("POST", "/./login"), ("POST", "/user/../login"), ("GET", "/user/ada/../../pending"),
            ("GET", "/user%2Fada"), ("GET", "/metrics"),
            ("PUT", "/login"), ("GET", "/login"), ("OPTIONS", "/login"), ("TRACE", "/login"), ("get", "/health"),
        ] {
            try await check(method, path, [], 403, "connect_route")
        }
        for field in ["x-long: \(String(repeating: "x", count: 4096))", "x-control: a\u{1}b", "x-letter: \u{e9}"] {
            try await check("GET", "/health", [field], 400, "connect_malformed")
        }
    }

    @Test func ambiguousRequestsAreRefused() async throws {
        let fixture = try await Fixture(.file)
        let sidecar = try await RunningSidecar(fixture.relay)
        let end = "Connection: close\r\n\r\n"
        let right = try await sidecar.raw("GET /health HTTP/1.1\r\nHost: localhost\r\n\(end)")
        #expect(right.hasPrefix("HTTP/1.1 200"), "\(right)")
        for text in [
            "GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n", "GET * HTTP/1.1\r\nHost: localhost\r\n",
            "GET /health HTTP/1.1\r\n", "GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n",
            "GET /user/\u{e9} HTTP/1.1\r\nHost: localhost\r\n",
            "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 0\r\n",
            "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n",
            "POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n",
            "POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: identity\r\n",
            "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: +0\r\n",
            "POST /login HTTP/1.1\r\nHost: localhost\r\nX Y: z\r\n",
        ] {
            let answer = try await sidecar.raw(text + end)
            // libmicrohttpd itself answers the worst ones, without a problem document.
            #expect(answer.hasPrefix("HTTP/1.1 400"), "\(text): \(answer)")
        }
        // The bytes behind a refused head are not read as another request.
        let smuggled = try await sidecar.raw(
            "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\(end)")
        #expect(smuggled.hasPrefix("HTTP/1.1 400") && smuggled.ranges(of: "HTTP/1.1").count == 1, "\(smuggled)")
    }

    @Test func largeBodiesAreRefused() async throws {
        let fixture = try await Fixture(.file)
        let sidecar = try await RunningSidecar(fixture.relay)
        let large = sidecar.directory("large")
        try TextFile.write(String(repeating: "x", count: 65_537), to: large)
        for field in ["expect: 100-continue", "transfer-encoding: chunked"] {
            let answer = try await sidecar.curl("POST", "/login", nil, ["--data-binary", "@\(large)", "-H", field])
            #expect(answer.status == 413 && answer["code"] == "too_large", "\(field): \(answer)")
        }
    }

    @Test func tokenIsRequiredOverTCP() async throws {
        let fixture = try await Fixture(.file)
        let sidecar = try await RunningSidecar(fixture.relay)
        let right = "authorization: Bearer \(RunningSidecar.token)"
        for fields in [
            [], ["authorization: Bearer"], ["authorization: Bearer "], ["authorization: \(RunningSidecar.token)"],
            ["authorization: Basic \(RunningSidecar.token)"], [right + "x"], [String(right.dropLast())],
            [right.dropLast() + "X"], [right, right], ["x-\(right)"],
        ] {
            let answer = try await sidecar.tcp("GET", "/user/ada", fields.flatMap { ["--header", $0] })
            #expect(answer.status == 401 && answer["code"] == "connect_unauthenticated", "\(fields): \(answer)")
            #expect(answer.field("www-authenticate") == "Bearer")
        }
        for field in [right, "Authorization: bearer \(RunningSidecar.token)"] {
            #expect(try await sidecar.tcp("GET", "/user/ada", ["--header", field]).status == 404)
        }
        // The other rules hold as well.
        let port = sidecar.port
        #expect(try await sidecar.tcp("GET", "/health", ["-H", right, "-H", "host: localhost:\(port)"]).status == 200)
        for (field, code) in [
            ("host: localhost", "connect_host"), ("host: evil.example:\(port)", "connect_host"),
            ("origin: http://localhost:\(port)", "connect_browser"),
        ] {
            let answer = try await sidecar.tcp("GET", "/health", ["-H", right, "-H", field])
            #expect(answer["code"]?.string == code, "\(field): \(answer)")
        }
    }
}
