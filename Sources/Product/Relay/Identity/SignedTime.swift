import JSON
import World

extension Relay {
    /// Returns a signed statement of the relay's time, for phones whose clock is wrong.
    ///
    /// The nonce of the caller is in the statement, so an old statement cannot be sent again. Anyone
    /// may ask, because a phone that is not bound yet may need the time, too. Each sender has a
    /// budget, because a signature costs more than a bare answer.
    ///
    /// - Parameter sender: the source address of the request.
    public func signedTime(nonce: String, for sender: String) throws(Refusal) -> String {
        guard timeBudget.take(sender, at: time.instant()) else {
            metrics.reached(.time)
            throw .limited(retryAfter: .seconds(1))
        }
        return try sign(
            "twoefay-time+jwt",
            [
                "v": 1, "aud": .string(settings.origin), "nonce": .string(nonce),
                "time": .string(time.now().rfc3339),
            ])
    }
}
