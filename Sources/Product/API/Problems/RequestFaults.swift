import Domain
import HTTP

extension Problem {
    /// The problem of a request that the server refuses before it reads all of it.
    init(_ fault: RequestFault, origin: String) {
        switch fault {
        case .bodySize: self = .tooLarge
        case .busy: self = .unavailable
        case .late:
            self.init(
                .requestTimeout,
                LocalizedText("The request did not come in time", de: "Die Anfrage kam nicht rechtzeitig"))
        case .expectation:
            self.init(
                .expectationFailed,
                LocalizedText(
                    "The relay knows no expectation but 100-continue",
                    de: "Das Relay kennt keine Erwartung außer 100-continue"))
        case .authority:
            self.init(
                .misdirected,
                LocalizedText("Host must name \(origin)", de: "Host muss \(origin) nennen"))
        case .headSize:
            self.init(
                .headTooLarge,
                LocalizedText(
                    "A request may have at most 100 header fields, and 32 KiB of them",
                    de: "Eine Anfrage darf höchstens 100 Header-Felder haben, und 32 KiB davon"))
        case .version:
            self.init(
                .versionUnsupported,
                LocalizedText("The relay speaks HTTP/2 and HTTP/1.1", de: "Das Relay spricht HTTP/2 und HTTP/1.1"))
        case .requestLine, .target, .lineEnd, .controlCharacter, .fieldName, .foldedField, .host, .contentLength,
            .transferEncoding, .upgrade, .chunk, .trailers:
            self.init(
                .malformed,
                LocalizedText(
                    "The request breaks the rule \(fault.rawValue) of HTTP/1.1 at this relay",
                    de: "Die Anfrage verletzt die Regel \(fault.rawValue) von HTTP/1.1 bei diesem Relay"))
        }
    }
}
