import Bytes
import Crypto
import Glibc
import HTTP
import TLS
import TestSupport
import Testing

@testable import HTTP2

/// HTTP/1.1 clients of other authors, each with a conversation on one connection: a GET, a HEAD, a
/// chunked POST, a body that is too large, and a request that the server holds.
@Suite(.mayBlock) struct HTTP1ToolTests {
    enum Tool { case python, node, php }

    @Sendable private static func handle(_ request: Request) -> Reply {
        let seen = request.certificate?.uris.first ?? "nobody"
        let answer = Response(
            status: 200, fields: Fields([.init("content-type", "text/plain")]),
            body: Array("\(request.method) \(request.path) \(request.body.count) \(seen)".utf8))
        guard request.path == "/held" else { return .now(answer) }
        return .later(deadline: .seconds(3600), late: { Response(status: 503) }) {
            .held(Hold(duration: .milliseconds(50), wait: TestWait()) { .response(answer) })
        }
    }

    private func with(_ body: (_ server: TestServer, _ directory: String) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        try await TestServer.withHTTP1(handler: Self.handle) { server in
            let client = try server.certificates.client()
            try TextFile.write(try server.certificates.websites.certificatePEM(), to: directory("ca.pem"))
            try TextFile.write(try client.certificatePEM(), to: directory("client.pem"))
            try TextFile.write(try client.keyPEM().reveal(), to: directory("client.key"))
            try await body(server, directory.path)
        }
    }

    /// The answers to the conversation, one in each line.
    private static let expected = [
        "200 GET /a 0 twoefay:website:shop", "200 HEAD 0", "200 POST /b 5 twoefay:website:shop", "413",
        "200 POST /held 2 twoefay:website:shop",
    ]

    private static let python = """
        import http.client, ssl, sys
        port, directory = int(sys.argv[1]), sys.argv[2]
        context = ssl.create_default_context(cafile=directory + "/ca.pem")
        context.load_cert_chain(directory + "/client.pem", directory + "/client.key")
        def connect(): return http.client.HTTPSConnection("localhost", port, context=context)
        connection = connect()
        def ask(method, path, body=None, chunked=False):
            fields = {"Host": "localhost"}
            if chunked: fields["Transfer-Encoding"] = "chunked"
            connection.request(method, path, body, fields, encode_chunked=chunked)
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, text
        print(*ask("GET", "/a"))
        status, text = ask("HEAD", "/a")
        print(status, "HEAD", len(text))
        print(*ask("POST", "/b", iter([b"hel", b"lo"]), True))
        print(ask("POST", "/c", b"a" * 300000)[0])
        connection = connect()
        print(*ask("POST", "/held", b"ok"))
        """

    private static let node = """
        const https = require("https"), fs = require("fs")
        const [port, directory] = process.argv.slice(2)
        const read = name => fs.readFileSync(directory + "/" + name)
        const agent = new https.Agent({ keepAlive: true, maxSockets: 1, ca: read("ca.pem"),
            cert: read("client.pem"), key: read("client.key") })
        const ask = (method, path, parts) => new Promise((resolve, reject) => {
            const request = https.request({ host: "localhost", port, agent, method, path,
                headers: { host: "localhost" } }, answer => {
                let text = ""
                answer.on("data", part => text += part)
                answer.on("end", () => resolve([answer.statusCode, text]))
            })
            request.on("error", reject)
            for (const part of parts) request.write(part)
            request.end()
        })
        ;(async () => {
            console.log(...await ask("GET", "/a", []))
            const [status, text] = await ask("HEAD", "/a", [])
            console.log(status, "HEAD", text.length)
            console.log(...await ask("POST", "/b", ["hel", "lo"]))
            console.log((await ask("POST", "/c", ["a".repeat(300000)]))[0])
            console.log(...await ask("POST", "/held", ["ok"]))
            agent.destroy()
        })()
        """

    private static let php = """
        <?php
        [, $port, $directory] = $argv;
        function ask($method, $path, $body = null) {
            global $port, $directory;
            $http = ["method" => $method, "header" => ["Host: localhost", "Content-Type: text/plain"],
                "ignore_errors" => true, "content" => $body];
            $context = stream_context_create(["http" => $http, "ssl" => ["cafile" => "$directory/ca.pem",
                "local_cert" => "$directory/client.pem", "local_pk" => "$directory/client.key"]]);
            $text = file_get_contents("https://localhost:$port$path", false, $context);
            return [explode(" ", $http_response_header[0])[1], $text];
        }
        echo implode(" ", ask("GET", "/a")), "\\n";
        [$status, $text] = ask("HEAD", "/a");
        echo $status, " HEAD ", strlen($text), "\\n";
        echo implode(" ", ask("POST", "/b", "hello")), "\\n";
        echo ask("POST", "/c", str_repeat("a", 300000))[0], "\\n";
        echo implode(" ", ask("POST", "/held", "ok")), "\\n";
        """

    private static let go = """
        package main

        import (
        \t"bytes"
        \t"crypto/tls"
        \t"crypto/x509"
        \t"fmt"
        \t"io"
        \t"net/http"
        \t"os"
        )

        func main() {
        \tport, directory := os.Args[1], os.Args[2]
        \tauthority, _ := os.ReadFile(directory + "/ca.pem")
        \tpool := x509.NewCertPool()
        \tpool.AppendCertsFromPEM(authority)
        \tpair, _ := tls.LoadX509KeyPair(directory+"/client.pem", directory+"/client.key")
        \tsettings := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
        \tclient := &http.Client{Transport: &http.Transport{TLSClientConfig: settings}}
        \task := func(method, path string, body io.Reader) (int, string) {
        \t\trequest, _ := http.NewRequest(method, "https://localhost:"+port+path, body)
        \t\trequest.Host = "localhost"
        \t\tanswer, err := client.Do(request)
        \t\tif err != nil {
        \t\t\tpanic(err)
        \t\t}
        \t\tif answer.ProtoMajor != 1 {
        \t\t\tpanic(answer.Proto)
        \t\t}
        \t\ttext, _ := io.ReadAll(answer.Body)
        \t\tanswer.Body.Close()
        \t\treturn answer.StatusCode, string(text)
        \t}
        \tfmt.Println(ask("GET", "/a", nil))
        \tstatus, text := ask("HEAD", "/a", nil)
        \tfmt.Println(status, "HEAD", len(text))
        \t// Without a known length, so it is sent in chunks.
        \tfmt.Println(ask("POST", "/b", io.MultiReader(bytes.NewBufferString("hello"))))
        \tstatus, _ = ask("POST", "/c", bytes.NewReader(make([]byte, 300000)))
        \tfmt.Println(status)
        \tfmt.Println(ask("POST", "/held", bytes.NewBufferString("ok")))
        }
        """

    /// Programs that the tests require (`dev/packages`).
    @Test(arguments: [Tool.python, .node, .php]) func toolDoesAWholeConversation(_ tool: Tool) async throws {
        let (script, program) =
            switch tool {
            case .python: (Self.python, "python3")
            case .node: (Self.node, "node")
            case .php: (Self.php, "php")
            }
        try await converse(script, "script", by: program)
    }

    @Test(.enabled(if: Child.isInstalled("go"), "go is not installed")) func goDoesAWholeConversation() async throws {
        try await converse(Self.go, "script.go", by: "go", "run")
    }

    private func converse(_ script: String, _ name: String, by program: String, _ command: String...) async throws {
        try await with { server, directory in
            try TextFile.write(script, to: "\(directory)/\(name)")
            let child = try Child(
                program, command + ["\(directory)/\(name)", "\(server.port)", directory],
                environment: ["GOCACHE": "\(directory)/cache", "GOFLAGS": "-mod=mod"], in: directory)
            let ended = await child.ended()
            let lines = ended.output.split(separator: "\n").map(String.init)
            #expect(lines == Self.expected, "\(ended.output)\(ended.errors)")
        }
    }

    @Test func curlDoesAWholeConversation() async throws {
        try await with { server, directory in try await curl(server, directory) }
    }

    private func curl(_ server: TestServer, _ directory: String) async throws {
        let url = "https://localhost:\(server.port)"
        let common = [
            "--silent", "--http1.1", "--header", "Host: localhost", "--cacert", "\(directory)/ca.pem", "--cert",
            "\(directory)/client.pem", "--key", "\(directory)/client.key", "--max-time", "120",
        ]
        try TextFile.write([UInt8](repeating: 97, count: 3_000_000), to: "\(directory)/large")
        func ask(_ arguments: [String], _ path: String) async throws -> String {
            try await Child.run("curl", common + arguments + [url + path]).output
        }
        let code = ["--write-out", " %{http_code} %{http_version}"]
        #expect(try await ask(code, "/a") == "GET /a 0 twoefay:website:shop 200 1.1")
        #expect(try await ask(["--head", "--output", "/dev/null"] + code, "/a") == " 200 1.1")
        let chunked = ["--data", "hello", "--header", "Transfer-Encoding: chunked"]
        #expect(try await ask(chunked + code, "/b") == "POST /b 5 twoefay:website:shop 200 1.1")
        let large = ["--data-binary", "@\(directory)/large"]
        #expect(try await ask(large + code, "/c") == "too large 413 1.1")
        // Without the wait for 100 Continue, so that the body is on its way when the answer comes.
        #expect(try await ask(large + ["--header", "Expect:"] + code, "/c") == "too large 413 1.1")
        #expect(try await ask(["--data", "ok"] + code, "/held") == "POST /held 2 twoefay:website:shop 200 1.1")
        // Two requests on one connection.
        let two = try await ask(["--write-out", " %{num_connects};", "\(url)/1"], "/2")
        #expect(two == "GET /1 0 twoefay:website:shop 1;GET /2 0 twoefay:website:shop 0;")
    }

    /// ALPN with `openssl s_client`: what is offered, and what the server speaks.
    @Test(
        arguments: [
            (["h2"], "h2"), (["h2,http/1.1"], "h2"), (["http/1.1,h2"], "h2"), (["http/1.1"], "http/1.1"), ([], ""),
            (["http/1.0"], "alert"), (["spdy/3,x"], "alert"),
        ] as [([String], String)]) func protocolIsNegotiated(offer: [String], outcome: String) async throws
    {
        try await with { server, directory in
            let child = try await Child.run(
                "openssl",
                ["s_client", "-connect", "localhost:\(server.port)", "-CAfile", "\(directory)/ca.pem"]
                    + offer.flatMap { ["-alpn", $0] })
            let text = child.output + child.errors
            switch outcome {
            case "alert": #expect(text.contains("alert no application protocol"), "\(text)")
            case "": #expect(text.contains("No ALPN negotiated"), "\(text)")
            default: #expect(text.contains("ALPN protocol: \(outcome)\n"), "\(text)")
            }
        }
    }

    /// Over HTTP/2 as well, an answer to HEAD is a head alone.
    @Test(arguments: ["--http1.1", "--http2"]) func answerToHeadIsAHead(version: String) async throws {
        try await with { server, directory in
            let ended = try await Child.run(
                "curl",
                [
                    "--silent", "--show-error", version, "--head", "--header", "Host: localhost", "--cacert",
                    "\(directory)/ca.pem", "https://localhost:\(server.port)/a",
                ])
            #expect(ended.status == 0, "\(ended.errors)")
            #expect(ended.output.lowercased().contains("content-length: 16\r\n"), "\(ended.output)")
        }
    }
}
