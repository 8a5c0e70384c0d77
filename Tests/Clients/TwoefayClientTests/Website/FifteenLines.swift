import TwoefayClient

func enrol(_ username: String, _ relay: TwoefayRelay) async throws -> Enrolment {
    try await relay.register(username)  // its `qr` is SVG for your page: the phone reads it
}

/// Asks the user's phone, after the right password.
func logIn(_ username: String, ip: String, userAgent: String, _ relay: TwoefayRelay) async throws -> Bool {
    let login = try await relay.ask(username, ip: ip, userAgent: userAgent)
    print("Enter this number on your phone:", login.number ?? "")
    let decision = try await relay.wait(for: login)
    return decision.isApproved
}
