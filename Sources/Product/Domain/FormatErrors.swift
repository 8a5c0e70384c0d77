import Crypto
import JSON

/// The errors of formats that the modules below this one read. They know no languages, so their
/// German texts stand here.
extension JSONError {
    public var text: LocalizedText { LocalizedText(message, de: "\(german) (Byte \(offset))") }

    private var german: String {
        switch kind {
        case .incomplete: "Der JSON-Text endet zu früh"
        case .unexpectedByte(let byte): "Unerwartet ist \(Self.germanName(of: byte))"
        case .trailingBytes: "Nach dem JSON-Wert folgt weiterer Text"
        case .tooDeep: "Die Verschachtelung ist zu tief"
        case .tooManyMembers: "Ein Objekt hat zu viele Elemente"
        case .duplicateName(let name): "Der Name \"\(FieldRule.visible(name))\" steht zweimal in einem Objekt"
        case .controlCharacter: "Ein Steuerzeichen in einem String muss maskiert sein"
        case .invalidEscape: "Ein String enthält eine unbekannte Maskierung"
        case .loneSurrogate: "Ein String enthält ein halbes Surrogat-Paar"
        case .nonCharacter: "Ein String enthält einen Codepunkt, der kein Zeichen ist"
        case .nul: "Ein String enthält U+0000"
        case .invalidUTF8: "Ein String ist kein gültiges UTF-8"
        case .invalidNumber: "Eine Zahl ist keine JSON-Zahl"
        case .numberOutOfRange: "Eine Zahl ist zu groß"
        }
    }

    private static func germanName(of byte: UInt8) -> String {
        let name = show(byte)
        return name.hasPrefix("byte") ? "B\(name.dropFirst())" : name
    }
}

extension JWSError {
    public var text: LocalizedText { LocalizedText(description, de: german) }

    private var german: String {
        switch self {
        case .tooLong: "Das JWS ist zu lang"
        case .malformed: "Das JWS muss drei Teile in base64url haben"
        case .header(.json(let error)): "Der Header des JWS ist fehlerhaft. \(error.text.german)"
        case .header(.notAnObject): "Der Header des JWS ist kein Objekt"
        case .header(.notUnderstood(let name)): "Das Relay versteht \(name) im Header des JWS nicht"
        case .algorithm: "Das JWS hat einen Algorithmus, der hier nicht erlaubt ist"
        case .signatureLength: "Die Signatur des JWS hat für ihren Algorithmus eine falsche Länge"
        }
    }
}
