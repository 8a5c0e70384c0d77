extension Control {
    /// An example file that explains every key and value. Unchanged, it affects only tokens with
    /// the prefixes it lists.
    public static let example = """
        # The answers of this push service. It reads this file again when it changes, and then restarts all counts.
        # Without an entry here, every valid push is accepted at once.

        # Answers by prefix of the device token. The longest matching prefix applies; `all` matches every token. A list
        # gives one answer to each request, and the last one repeats.
        tokens:
          # One of Apple's reasons, with its status. This phone is gone.
          dead00: Unregistered
          # It is gone since this time (RFC 3339, or milliseconds since 1970).
          dead01: {answer: Unregistered, timestamp: 2026-01-31T12:00:00Z}
          # It got too many pushes.
          dead02: {answer: TooManyRequests, retry-after: 30s}
          # Temporary failures.
          dead03: [ServiceUnavailable, InternalServerError, accept]
          # Accepted after a delay.
          dead04: {answer: accept, after: 3s}
          # Not accepted, and no answer.
          dead05: silence
          # Accepted, but no answer.
          dead06: lost
          # RST_STREAM. REFUSED_STREAM means that the push was not processed.
          dead07: {answer: reset, code: REFUSED_STREAM}
          # After another code it is unknown: NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, CANCEL, ENHANCE_YOUR_CALM.
          dead08: {answer: reset, code: INTERNAL_ERROR, accepted: true}
          # Accepted, then GOAWAY. Open streams are still answered.
          dead09: goaway
          # GOAWAY that declares 3 streams unprocessed: this one, and unanswered streams directly before it.
          dead0a: {answer: goaway, replays: 3}
          # The TCP connection is reset.
          dead0b: {answer: cut, accepted: true}
          # The connection freezes: nothing is read or written any more, and no PING is answered.
          dead0c: {answer: freeze, accepted: false}
          # A response that Apple would not send.
          dead0d: {answer: respond, status: 502, body: <html>Bad Gateway</html>}

        # The delay before a push is processed (ms, s, m, h).
        # latency: 250ms

        # Exactly one in this number of requests gets this answer. Requests with a token listed above do not count.
        # every:
        #   - {requests: 500, answer: ServiceUnavailable}
        #   - {requests: 1000, answer: reset, code: REFUSED_STREAM}
        #   - {requests: 5000, answer: goaway, replays: 1}

        # The limit of concurrent streams of a connection: a number, `none`, or steps that repeat. By default it is 1 until
        # the first request with a valid token or certificate, and then 1000, as at Apple.
        # streams:
        #   unproved: 1
        #   steps:
        #     - {limit: 1000, requests: 500}
        #     - {limit: 1, requests: 20}
        #     - {limit: 0, for: 200ms}

        # The behavior towards the next connections, one entry for each; the last one repeats. serve; hang (in the
        # handshake); cut (TCP reset); goaway (before the SETTINGS); freeze (after the handshake). Faults of TLS are
        # wrong-name, expired and foreign-authority (the server's certificate), and refuses-certificate (an alert for the
        # relay's certificate).
        # connections: [hang, expired, goaway, serve]

        # Connections that are frozen from now on, by the number that the program prints.
        # frozen: [2]

        """

    /// The example for FCM.
    public static let fcmExample = """
        # The answers of this push service. It reads this file again when it changes, and then restarts all counts.
        # Without an entry here, every valid push is accepted at once.

        # Answers by prefix of the registration token. The longest matching prefix applies; `all` matches every token. A
        # list gives one answer to each request, and the last one repeats.
        tokens:
          # One of FCM's codes, with its status. This app was removed from its phone.
          dead00: UNREGISTERED
          # The registration token is none (INVALID_ARGUMENT).
          dead01: INVALID_REGISTRATION
          # Another field of the request is wrong.
          dead02: INVALID_ARGUMENT
          # The token belongs to another project.
          dead03: SENDER_ID_MISMATCH
          # The project has sent too much.
          dead04: {answer: QUOTA_EXCEEDED, retry-after: 30s}
          # Temporary failures.
          dead05: [UNAVAILABLE, INTERNAL, accept]
          # The access token is not accepted.
          dead06: [UNAUTHENTICATED, accept]
          # The words accept, silence, lost, reset, goaway, cut, freeze and respond are as for fake-apns.
          dead07: {answer: accept, after: 3s}

        # The answers to requests for an access token, one for each; the last one repeats: issue, refuse (invalid_grant),
        # unavailable (503), or a token of another life.
        # access-tokens: [unavailable, {life: 90s}, issue]

        # latency, every, streams, connections and frozen are as for fake-apns. The limit of streams is 100 by default.
        # latency: 250ms
        # every:
        #   - {requests: 500, answer: UNAVAILABLE}

        """
}
