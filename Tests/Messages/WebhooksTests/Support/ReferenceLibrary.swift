import Glibc
import TestSupport
import Testing

/// The Python library `standardwebhooks` by the authors of the standard; dev/need installs it.
enum ReferenceLibrary {
    private static let packages =
        #filePath.split(separator: "/").dropLast(5).map { "/\($0)" }.joined() + "/.build/python"

    static var isInstalled: Bool { access("\(packages)/standardwebhooks/webhooks.py", R_OK) == 0 }

    /// Returns the library's verdict on webhooks, each given as secret, id, time, signatures and body.
    static func verdicts(_ webhooks: [[String]]) async throws -> [String] {
        try await lines(verify, webhooks.flatMap { $0 })
    }

    /// Returns the id, time and signatures with which the library sends bodies, each given as secret, id and body.
    static func signed(_ webhooks: [[String]]) async throws -> [[String]] {
        try await lines(sign, webhooks.flatMap { $0 }).map { line in
            line.split(separator: "\t").map(String.init)
        }
    }

    private static func lines(_ script: String, _ arguments: [String]) async throws -> [String] {
        let child = try Child(
            "python3", ["-c", script] + arguments,
            environment: ["PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"])
        let ended = await child.ended()
        try #require(ended.status == 0, "\(ended.errors)")
        return ended.output.split(separator: "\n").map(String.init)
    }

    private static let verify = """
        import sys
        from standardwebhooks.webhooks import Webhook, WebhookVerificationError
        given = sys.argv[1:]
        while given:
            (secret, id, time, signatures, body), given = given[:5], given[5:]
            head = {"Webhook-Id": id, "webhook-timestamp": time, "webhook-signature": signatures}
            try:
                Webhook(secret).verify(body.encode(), head, json_parse=False)
                print("accepted")
            except WebhookVerificationError as error:
                print("refused:", error)
        """

    private static let sign = """
        import sys
        from datetime import datetime, timezone
        from standardwebhooks.webhooks import Webhook
        given = sys.argv[1:]
        while given:
            (secret, id, body), given = given[:3], given[3:]
            now = datetime.now(tz=timezone.utc)
            print(id, int(now.timestamp()), Webhook(secret).sign(id, now, body), sep="\\t")
        """
}
