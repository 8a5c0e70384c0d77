import JSON
import Relay

/// The certificate of the calling website.
enum WebsiteRenewals {
    typealias P = Parameters

    static let routes = [
        Route(
            "renewCertificate", "POST", "/website/certificate",
            "Renews the certificate of the calling website, for the same key",
            Form(
                .website(renew), [P.certificateRequest.required],
                answers: [
                    Answer(
                        200, "The new certificate, valid for 825 days",
                        .object(["certificate": .pem, "expires_at": .time]))
                ],
                problems: [
                    .forbidden: "the operator has not turned it on",
                    .conflict: "the present certificate has more than a third of its validity left",
                    .limited:
                        "the key has eight former certificates that have not expired, and got one in the last week",
                ]))
    ]

    @Sendable private static func renew(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        guard case .website(_, let key, let shown) = call.claim else { throw .unauthenticated }
        let renewed = try await call.relay.renewCertificate(
            of: website, key: key, shown, request: try call.required(P.certificateRequest))
        return .answer(
            APIResponse(
                200, ["certificate": .string(renewed.pem), "expires_at": .timestamp(renewed.expiresAt)]))
    }
}
