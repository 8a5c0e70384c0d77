import Bytes
import Domain
import JSON
import Relay

/// Enrol: further certificates of phones, and the check of what their keys have signed.
enum TaggedCertificates {
    typealias P = Parameters

    static let routes = [
        Route(
            "certifyKey", "POST", "/device/certificate",
            "Issues a certificate for another key of the calling phone, with a tag",
            Form(
                .phone(certify), [P.tag.required, P.certificateRequest.required, P.certificateProof.required],
                answers: [Answer(200, "The certificate, valid for at most 90 days", .taggedCertificate)],
                problems: [
                    .forbidden: "the authority of the phones issues no certificates for documents",
                    .conflict: "the key has another use, or the proof is an old one",
                    .limited: "more than ten requests in a minute, or too many certificates",
                    .unavailable: "an outside authority has not issued it yet; Retry-After has the pause",
                ])),
        Route(
            "verifySignature", "POST", "/verify-signature",
            "Checks a document that the key of a tagged certificate has signed",
            Form(
                .website(verify),
                [P.signer.required, P.tag.required, P.hash.required, P.statement.optional, P.signature.optional],
                oneOf: ["statement", "signature"], isExclusive: true,
                answers: [Answer(200, "Whether the signature counts, and whose it is", .signatureVerdict)],
                problems: [
                    .forbidden: "the tag does not allow this form of signature",
                    .notFound: "there is no such active phone, or it has no such certificate",
                    .conflict: "the policy of the tag has changed since",
                ])),
    ]

    @Sendable private static func certify(_ call: VerbCall, _ phone: PhoneCredential) async throws(Refusal)
        -> VerbOutcome
    {
        let certificate = try await call.relay.certify(
            tag: try call.required(P.tag), request: try call.required(P.certificateRequest),
            proof: try call.required(P.certificateProof), by: phone)
        return .answer(APIResponse(200, certificate.json))
    }

    @Sendable private static func verify(_ call: VerbCall, _ website: Website) async throws(Refusal) -> VerbOutcome {
        guard let device: DeviceID = try call.id(P.signer) else { throw .notFound }
        let evidence: SignatureQuestion.Evidence
        if let statement = call[P.statement] {
            evidence = .statement(statement)
        } else {
            guard let der = Base64.decode(try call.required(P.signature)) else { throw Self.malformed("signature") }
            evidence = .raw(der)
        }
        guard let digest = Base64URL.decode(try call.required(P.hash)), digest.count == 32 else {
            throw Self.malformed("hash")
        }
        let verdict = try await call.relay.verify(
            SignatureQuestion(device: device, tag: try call.required(P.tag), digest: digest, evidence: evidence),
            by: website)
        return .answer(APIResponse(200, verdict.json))
    }

    private static func malformed(_ name: String) -> Refusal {
        .invalid([
            FieldFault(
                name, .format,
                name == "hash"
                    ? LocalizedText(
                        "must be a SHA-256 digest in base64url", de: "muss ein SHA-256-Wert in base64url sein")
                    : LocalizedText(
                        "must be an ECDSA signature in DER, in base64",
                        de: "muss eine ECDSA-Signatur in DER und base64 sein"))
        ])
    }
}

extension TaggedCertificate {
    var json: JSONObject {
        [
            "tag": .string(tag), "raw": .bool(isRaw), "serial": .string(serial), "certificate": .string(pem),
            "created_at": .timestamp(createdAt), "expires_at": .timestamp(expiresAt),
        ]
    }
}

extension SignatureVerdict {
    fileprivate var json: JSONObject {
        var object: JSONObject = ["valid": .bool(fault == nil)]
        if let fault { object.set("fault", .string(fault.rawValue)) }
        object.set("label", label.map { .string($0) })
        object.set("signed_at", signedAt.map { .timestamp($0) })
        object.set("username", .string(username))
        object.set("certificate", .object(certificate.json))
        return object
    }
}
