import Domain
import JSON
import Relay

/// A problem document (RFC 9457), the content of `application/problem+json`.
struct Problem: Error, Sendable {
    /// The stable code that programs check.
    enum Code: String, Sendable, CaseIterable {
        case malformed, invalid, unauthenticated, forbidden, conflict, limited, unavailable
        case approvalRequired = "approval_required"
        case codesLocked = "codes_locked"
        case notAttested = "not_attested"
        case postureUnmet = "posture_unmet"
        case pinRequired = "pin_required"
        case pinWrong = "pin_wrong"
        case pinLocked = "pin_locked"
        case pukWrong = "puk_wrong"
        case pukLocked = "puk_locked"
        case unlockWrong = "unlock_wrong"
        case unlockVoid = "unlock_void"
        case notFound = "not_found"
        case routeNotFound = "route_not_found"
        case methodNotAllowed = "method_not_allowed"
        case alreadyDecided = "already_decided"
        case shownOnce = "shown_once"
        case tooLarge = "too_large"
        case unsupportedType = "unsupported_type"
        case idempotencyMismatch = "idempotency_mismatch"
        case requestTimeout = "request_timeout"
        case expectationFailed = "expectation_failed"
        case misdirected
        case headTooLarge = "head_too_large"
        case versionUnsupported = "version_unsupported"
        /// A bug in the relay.
        case `internal`

        var status: Int {
            switch self {
            case .malformed, .invalid: 400
            case .unauthenticated: 401
            case .forbidden, .approvalRequired, .codesLocked, .notAttested, .postureUnmet: 403
            case .pinRequired, .pinWrong, .pinLocked, .pukWrong, .pukLocked, .unlockWrong, .unlockVoid: 403
            case .notFound, .routeNotFound: 404
            case .methodNotAllowed: 405
            case .conflict, .alreadyDecided, .shownOnce: 409
            case .requestTimeout: 408
            case .tooLarge: 413
            case .unsupportedType: 415
            case .expectationFailed: 417
            case .misdirected: 421
            case .idempotencyMismatch: 422
            case .limited: 429
            case .headTooLarge: 431
            case .internal: 500
            case .unavailable: 503
            case .versionUnsupported: 505
            }
        }

        var title: LocalizedText {
            switch self {
            case .malformed: LocalizedText("Malformed request", de: "Fehlerhafte Anfrage")
            case .invalid: LocalizedText("Invalid parameters", de: "Ungültige Parameter")
            case .unauthenticated: LocalizedText("Not authenticated", de: "Nicht authentifiziert")
            case .forbidden: LocalizedText("Not allowed", de: "Nicht erlaubt")
            case .approvalRequired:
                LocalizedText("The user must approve first", de: "Der Benutzer muss zuerst bestätigen")
            case .codesLocked: LocalizedText("Codes are locked", de: "Codes sind gesperrt")
            case .notAttested:
                LocalizedText("The phone is not attested", de: "Das Telefon ist nicht attestiert")
            case .postureUnmet:
                LocalizedText(
                    "The phone does not meet the demands", de: "Das Telefon erfüllt die Forderungen nicht")
            case .pinRequired: LocalizedText("The PIN is required", de: "Die PIN ist erforderlich")
            case .pinWrong: LocalizedText("The PIN is wrong", de: "Die PIN ist falsch")
            case .pinLocked: LocalizedText("The PIN is locked", de: "Die PIN ist gesperrt")
            case .pukWrong: LocalizedText("The PUK is wrong", de: "Die PUK ist falsch")
            case .pukLocked: LocalizedText("The PUK is locked", de: "Die PUK ist gesperrt")
            case .unlockWrong: LocalizedText("The unlock code is wrong", de: "Der Entsperrcode ist falsch")
            case .unlockVoid: LocalizedText("No unlock code is valid", de: "Es gilt kein Entsperrcode")
            case .notFound: LocalizedText("Not found", de: "Nicht gefunden")
            case .routeNotFound: LocalizedText("No such route", de: "Diese Route gibt es nicht")
            case .methodNotAllowed: LocalizedText("Method not allowed", de: "Methode nicht erlaubt")
            case .conflict: LocalizedText("Conflict with the current state", de: "Konflikt mit dem aktuellen Zustand")
            case .alreadyDecided:
                LocalizedText("The challenge has already ended", de: "Die Challenge ist bereits beendet")
            case .shownOnce: LocalizedText("The answer is shown only once", de: "Die Antwort wird nur einmal gezeigt")
            case .tooLarge: LocalizedText("The body is too large", de: "Der Body ist zu groß")
            case .unsupportedType: LocalizedText("Unsupported content type", de: "Nicht unterstützter Inhaltstyp")
            case .idempotencyMismatch:
                LocalizedText(
                    "The Idempotency-Key was used for another request",
                    de: "Der Idempotency-Key wurde für eine andere Anfrage verwendet")
            case .requestTimeout: LocalizedText("The request is incomplete", de: "Die Anfrage ist unvollständig")
            case .expectationFailed:
                LocalizedText("The expectation cannot be met", de: "Die Erwartung ist nicht erfüllbar")
            case .misdirected: LocalizedText("Not this server", de: "Nicht dieser Server")
            case .headTooLarge: LocalizedText("The header fields are too large", de: "Die Header-Felder sind zu groß")
            case .versionUnsupported:
                LocalizedText("Unsupported version of HTTP", de: "Nicht unterstützte HTTP-Version")
            case .limited: LocalizedText("Too many requests", de: "Zu viele Anfragen")
            case .internal: LocalizedText("Internal error", de: "Interner Fehler")
            case .unavailable: LocalizedText("Temporarily unavailable", de: "Vorübergehend nicht verfügbar")
            }
        }
    }

    let code: Code
    /// Describes the problem, and tells the caller how to go on. It is nil if the faults do so.
    let detail: LocalizedText?
    var faults: [FieldFault] = []
    /// The value of `Retry-After`, in whole seconds.
    var retryAfter: Int64?
    /// The allowed methods, for `Allow`.
    var allow: String?
    /// Further members of the document.
    var members = JSONObject()

    init(_ code: Code, _ detail: LocalizedText?, faults: [FieldFault] = [], retryAfter: Int64? = nil) {
        self.code = code
        self.detail = detail
        self.faults = faults
        self.retryAfter = retryAfter
    }

    /// The document in one language. `detail` lists the faults if there is no other.
    func body(in language: TextLanguage) -> JSONObject {
        let detail = detail?.text(in: language) ?? Self.list(faults, language)
        var object: JSONObject = [
            "type": .string("urn:twoefay:problem:\(code.rawValue)"), "title": .string(code.title.text(in: language)),
            "status": .integer(Int64(code.status)), "code": .string(code.rawValue), "detail": .string(detail),
        ]
        if !faults.isEmpty { object.set("errors", .array(faults.map { .object($0.json(in: language)) })) }
        for member in members.members { object.set(member.name, member.value) }
        return object
    }

    private static func list(_ faults: [FieldFault], _ language: TextLanguage) -> String {
        faults.prefix(8).map { "\($0.parameter) \($0.message.text(in: language))" }.joined(separator: "; ")
    }
}

extension FieldFault {
    /// The fault as JSON. `message_key` is the key for translations: the parameter without its list
    /// index, and the code.
    func json(in language: TextLanguage) -> JSONObject {
        var key = ""
        var inBrackets = false
        for character in parameter {
            if character == "[" { inBrackets = true }
            if !inBrackets { key.append(character) }
            if character == "]" { inBrackets = false }
        }
        // The sender chooses the name of an unknown parameter, so all unknown parameters share one
        // key.
        let messageKey = code == .unknown ? "unknown" : "\(key).\(code.rawValue)"
        return [
            "parameter": .string(parameter), "code": .string(code.rawValue), "message_key": .string(messageKey),
            "message": .string(message.text(in: language)),
        ]
    }
}

extension Problem {
    /// Returns the language of a stored document, by its title; nil if it is no problem document.
    static func language(of body: [UInt8]) -> TextLanguage? {
        guard let object = (try? JSONReader.read(body))?.object, let title = object["title"]?.string,
            let code = object["code"]?.string.flatMap({ Code(rawValue: $0) })
        else { return nil }
        return TextLanguage.allCases.first { code.title.text(in: $0).utf8.elementsEqual(title.utf8) }
    }
}
