import Webhooks
import World

/// The vector that the libraries of Standard Webhooks share in their tests.
enum Published {
    static let secret = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    static let id = "msg_p5jXN8AQM9LWM0D4loKWxJek"
    static let seconds: Int64 = 1_614_265_330
    static let body = Array(#"{"test": 2432232314}"#.utf8)
    static let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    /// A wrong signature from the library's tests. It differs only in the last character but one.
    static let wrong = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OA="
    static let other = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="

    static var now: Timestamp { Timestamp(seconds: seconds) }

    static func fields(
        id: String? = id, timestamp: String? = "\(seconds)", signature: String? = signature
    ) -> [(name: String, value: String)] {
        [("webhook-id", id), ("webhook-timestamp", timestamp), ("webhook-signature", signature)]
            .compactMap { name, value in value.map { (name, $0) } }
    }

    /// Returns the fault that the check finds in the fields; nil if there is none.
    static func fault(
        of fields: [(name: String, value: String)], body: [UInt8] = body, secrets: [String] = [secret],
        at now: Timestamp = now, tolerance: Duration = WebhookCheck.tolerance
    ) -> WebhookFault? {
        let check = WebhookCheck(secrets: secrets.compactMap { WebhookSecret($0) }, tolerance: tolerance)
        do throws(WebhookFault) {
            try check.verify(fields, body: body, at: now)
            return nil
        } catch {
            return error
        }
    }
}
