import Glibc
import JSON
import TestSupport
import Testing
import TwoefayClient

extension LoginRecord {
    /// The fields that the website sent to /login and stores. The number is stored separately.
    var body: JSONObject {
        var body: JSONObject = ["username": .string(username), "request": .string(request)]
        for (name, value) in [("service", service), ("action", action), ("ip", ip), ("user_agent", userAgent)] {
            body.set(name, value.map { .string($0) })
        }
        if !details.isEmpty {
            body["details"] = .array(details.map { ["label": .string($0.label), "value": .string($0.value)] })
        }
        return body
    }
}

/// The code of docs/websites/receipts.md in one language, run unchanged.
struct PageCode {
    /// A call and its expected outcome.
    struct Case {
        let name: String
        let isHonest: Bool
        let call: JSONObject
    }

    private let interpreter: String
    private let directory: TemporaryDirectory
    private let driver: String

    /// Finds a Python that has the libraries. The first one on the PATH may not be Debian's.
    static func python(origin: String = Login.origin) async throws -> PageCode {
        var found: String?
        for candidate in ["python3", "/usr/bin/python3"] where found == nil {
            let tried = try? await Child.run(candidate, ["-c", "import jwt, cryptography"])
            if tried?.status == 0 { found = candidate }
        }
        let interpreter = try #require(found, "no Python has PyJWT and cryptography; run: dev/need test")
        return try PageCode(
            interpreter, language: "python", origin: origin, page: "page.py", driver: ("driver.py", pythonDriver))
    }

    /// Debian's directory of jose.
    private static let jose = "/usr/share/nodejs/jose"

    static var hasNode: Bool { access("\(jose)/package.json", R_OK) == 0 && Child.isInstalled("node") }

    static func node(origin: String = Login.origin) throws -> PageCode {
        let code = try PageCode(
            "node", language: "js", origin: origin, page: "page.mjs", driver: ("driver.mjs", nodeDriver))
        try linkJose(into: code.directory)
        return code
    }

    static func linkJose(into directory: TemporaryDirectory) throws {
        let modules = directory("node_modules")
        try #require(mkdir(modules, 0o700) == 0 && symlink(jose, "\(modules)/jose") == 0)
    }

    static var hasPHP: Bool { Child.isInstalled("php") }

    static func php(origin: String = Login.origin) throws -> PageCode {
        try PageCode(
            "php", language: "php", origin: origin, page: "page.php", driver: ("driver.php", phpDriver))
    }

    /// - Parameter origin: the relay's origin, which replaces the example in the page's first
    /// lines.
    private init(
        _ interpreter: String, language: String, origin: String, page: String, driver: (name: String, text: String)
    ) throws {
        self.interpreter = interpreter
        directory = try TemporaryDirectory()
        self.driver = directory(driver.name)
        let text = try Self.text(language)
        try #require(text.contains("\"\(Login.origin)\"") || text.contains("'\(Login.origin)'"))
        // The page accepts whatever name the relay shows, unless the website sets one. One of the lies is
        // another name.
        var own = text.replacing(Login.origin, with: origin)
        for none in ["None  #", "null; //"] {
            let named = none.replacing("None", with: "\"The Shop\"").replacing("null", with: "'The Shop'")
            own = own.replacing("DISPLAY_NAME = \(none)", with: "DISPLAY_NAME = \(named)")
        }
        try #require(own.contains("The Shop"), "docs/websites/receipts.md has lost its name")
        try TextFile.write(own, to: directory(page))
        try TextFile.write(driver.text, to: self.driver)
    }

    /// Returns the code exactly as the page shows it.
    static func text(_ language: String) throws -> String {
        let lines = try TextFile.read("\(GuidePage.root)/docs/websites/receipts.md").split(
            separator: "\n", omittingEmptySubsequences: false)
        let code = lines.drop { $0 != "```\(language)" }.dropFirst().prefix { $0 != "```" }
        try #require(!code.isEmpty, "docs/websites/receipts.md has no \(language)")
        return code.joined(separator: "\n")
    }

    /// Calls the page's functions once for each case and compares the results.
    func agrees(with cases: [Case]) async throws {
        let file = directory("cases.json")
        let calls = JSONValue.array(cases.map { .object($0.call) })
        try TextFile.write(String(decoding: JSONWriter.write(calls), as: UTF8.self), to: file)
        let ended = try await Child.run(interpreter, [driver, file], in: directory.path)
        try #require(ended.status == 0, "\(ended.errors)")
        let lines = ended.output.split(separator: "\n")
        try #require(lines.count == cases.count, "\(ended.output)\(ended.errors)")
        for (line, one) in zip(lines, cases) {
            #expect(line.hasPrefix(one.isHonest ? "accepted" : "refused"), "\(one.name): \(line)")
        }
    }

    private static let pythonDriver = """
        import json, sys
        import page

        with open(sys.argv[1], encoding="utf-8") as file:
            cases = json.load(file)
        spent = set()
        for case in cases:
            def spend(request):
                fresh = request not in spent
                spent.add(request)
                return fresh
            if not case.get("again"):
                spent = set()
            try:
                if "k" in case:
                    key = page.pin(case["device"], case["token"], bytes.fromhex(case["k"]))
                    assert key == case["key"], key
                else:
                    claims = page.check(case["answer"], case["asked"], case["phones"], spend)
                    assert claims["decision"] == "approve"
                print("accepted")
            except Exception as error:
                print("refused", repr(error).replace("\\n", " "))

        """

    private static let nodeDriver = """
        import { readFileSync } from "node:fs";
        import { deepEqual, equal } from "node:assert/strict";
        import { check, pin } from "./page.mjs";

        let spent = new Set();
        const spend = (request) => !spent.has(request) && Boolean(spent.add(request));
        for (const call of JSON.parse(readFileSync(process.argv[2], "utf8"))) {
          if (!call.again) spent = new Set();
          try {
            if (call.k !== undefined) {
              deepEqual(await pin(call.device, call.token, Buffer.from(call.k, "hex")), call.key);
            } else {
              equal((await check(call.answer, call.asked, call.phones, spend)).decision, "approve");
            }
            console.log("accepted");
          } catch (error) {
            console.log("refused", String(error).replaceAll("\\n", " "));
          }
        }

        """

    private static let phpDriver = """
        <?php
        require 'page.php';

        $spent = [];
        $spend = function (string $request) use (&$spent): bool {
            $fresh = !isset($spent[$request]);
            $spent[$request] = true;
            return $fresh;
        };
        foreach (json_decode(file_get_contents($argv[1]), true, 16, JSON_THROW_ON_ERROR) as $call) {
            if (empty($call['again'])) {
                $spent = [];
            }
            try {
                if (isset($call['k'])) {
                    $key = pin($call['device'], $call['token'], hex2bin($call['k']));
                    ksort($key);
                    ksort($call['key']);
                    $call['key'] === $key || throw new Exception(json_encode($key));
                } else {
                    $claims = check($call['answer'], $call['asked'], $call['phones'], $spend);
                    $claims['decision'] === 'approve' || throw new Exception(json_encode($claims));
                }
                echo "accepted\\n";
            } catch (Throwable $error) {
                echo 'refused ', get_class($error), ' ', strtr($error->getMessage(), "\\n", ' '), "\\n";
            }
        }

        """
}
