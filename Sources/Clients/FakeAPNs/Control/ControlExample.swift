extension Control {
    /// An example file that explains every key and value. Unchanged, it affects only tokens with
    /// the prefixes it lists.
    public static let example = """
        # What this push service does with pushes. It is read again as soon as it changes, and then all counts begin anew.
        # What is not said here goes well: right pushes are accepted at once.

        # By the first digits of the device token; the longest that fit count, `all` stands for every token. A list is used
        # up, one answer a request, and its last stays.
        tokens:
          # Any of Apple's reasons, with its status: the phone is gone,
          dead00: Unregistered
          # since then (RFC 3339, or milliseconds),
          dead01: {answer: Unregistered, timestamp: 2026-01-31T12:00:00Z}
          # or too much was sent to it.
          dead02: {answer: TooManyRequests, retry-after: 30s}
          # Trouble that passes.
          dead03: [ServiceUnavailable, InternalServerError, accept]
          # Accepted, after a while.
          dead04: {answer: accept, after: 3s}
          # Never answered, and not accepted;
          dead05: silence
          # accepted, and the answer is lost.
          dead06: lost
          # RST_STREAM. REFUSED_STREAM says that nothing was done with it;
          dead07: {answer: reset, code: REFUSED_STREAM}
          # other codes leave it open: NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, CANCEL, ENHANCE_YOUR_CALM.
          dead08: {answer: reset, code: INTERNAL_ERROR, accepted: true}
          # Accepted, and GOAWAY; what is under way is answered.
          dead09: goaway
          # GOAWAY: so many streams under way were not processed, this one and before it those without an answer yet.
          dead0a: {answer: goaway, replays: 3}
          # The connection is reset without a word,
          dead0b: {answer: cut, accepted: true}
          # or stands half-open: nothing is read or written any more, not even a PING is answered.
          dead0c: {answer: freeze, accepted: false}
          # Something that Apple would not say.
          dead0d: {answer: respond, status: 502, body: <html>Bad Gateway</html>}

        # Before anything is done with a push (ms, s, m, h).
        # latency: 250ms

        # One request in so many gets this, in exact numbers; tokens that stand above are not counted.
        # every:
        #   - {requests: 500, answer: ServiceUnavailable}
        #   - {requests: 1000, answer: reset, code: REFUSED_STREAM}
        #   - {requests: 5000, answer: goaway, replays: 1}

        # How many streams a connection may have: a number, `none`, or steps that are gone through over and over. Without it
        # there is one until the first request whose token or certificate is right, and then there are 1000, as with Apple.
        # streams:
        #   unproved: 1
        #   steps:
        #     - {limit: 1000, requests: 500}
        #     - {limit: 1, requests: 20}
        #     - {limit: 0, for: 200ms}

        # How the next connections are met, one each; the last stays. serve; hang (in the handshake); cut (a reset); goaway
        # (ahead of the SETTINGS); freeze (after the handshake); or with a certificate that is wrong: wrong-name, expired,
        # foreign-authority; refuses-certificate (an alert for the certificate that the relay shows).
        # connections: [hang, expired, goaway, serve]

        # Connections, by the numbers that are told of them, that stand half-open from now on.
        # frozen: [2]

        """
}
