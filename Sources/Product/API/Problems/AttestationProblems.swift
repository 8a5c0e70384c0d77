import Attestation
import Domain
import JSON
import Relay

extension Problem {
    /// The problem of a phone whose attestation the website requires.
    static func notAttested(_ fault: AttestationFault) -> Problem {
        let (reason, advice) = (LocalizedText(fault.message, de: fault.germanMessage), fault.advice)
        var problem = Problem(
            .notAttested,
            LocalizedText(
                "The website binds only attested phones: \(reason.english). \(advice.english)",
                de: "Die Website bindet nur attestierte Telefone: \(reason.german). \(advice.german)"))
        problem.members.set("fault", .string(fault.rawValue))
        return problem
    }

    /// The problem of a phone that does not meet the demands of the website.
    static func postureUnmet(_ demands: [PhoneDemands.Demand]) -> Problem {
        let advice = demands.map(\.advice)
        let list = LocalizedText(
            advice.map(\.english).joined(separator: "; "), de: advice.map(\.german).joined(separator: ". "))
        var problem = Problem(
            .postureUnmet,
            LocalizedText(
                "The phone cannot approve this: \(list.english). Nothing has changed, and the phone may answer again",
                de: "Das Telefon kann das nicht bestätigen: \(list.german). Es wurde nichts geändert: Das Telefon "
                    + "darf erneut antworten"))
        problem.members.set("unmet", .array(demands.map { .word($0) }))
        return problem
    }
}

extension PhoneDemands.Demand {
    /// The missing demands, and how to go on.
    var advice: LocalizedText {
        switch self {
        case .attestation:
            LocalizedText(
                "it has no valid attestation and must be bound again",
                de: "Es hat keine gültige Attestierung und muss neu gebunden werden")
        case .assertion:
            LocalizedText(
                "the answer needs a valid assertion of App Attest",
                de: "Die Antwort braucht eine gültige Assertion von App Attest")
        case .osVersion:
            LocalizedText(
                "its system is older than required, or its version was not reported: update it",
                de: "Das System ist älter als verlangt, oder seine Version wurde nicht gemeldet: Aktualisieren Sie es")
        case .patchLevel:
            LocalizedText(
                "its security patches were older than required when it was bound: update it and bind it again",
                de: "Die Sicherheitspatches waren beim Binden älter als verlangt: Aktualisieren Sie das Telefon und "
                    + "binden Sie es neu")
        case .appVersion:
            LocalizedText(
                "its app is older than required, or its version was not reported: update it",
                de: "Die App ist älter als verlangt, oder ihre Version wurde nicht gemeldet: Aktualisieren Sie sie")
        case .bootState, .locked:
            LocalizedText(
                "it had started a changed system, or one that can be changed, when it was bound",
                de: "Beim Binden lief auf ihm ein verändertes System oder eines, das verändert werden kann")
        case .screenLock:
            LocalizedText(
                "it needs a screen lock, as attested or reported",
                de: "Es braucht eine Bildschirmsperre, und die muss attestiert oder gemeldet sein")
        }
    }
}

extension AttestationFault {
    /// The advice about the fault for the phone, or for the operator.
    var advice: LocalizedText {
        switch self {
        case .missing, .size, .malformed, .format, .challenge, .key, .counter, .statement, .validity:
            LocalizedText(
                "Create a new key, attest it for this activation, and send the request again while the code is valid",
                de: "Erzeugen Sie einen neuen Schlüssel, lassen Sie ihn für diese Aktivierung attestieren und senden "
                    + "Sie die Anfrage erneut, solange der Code gilt")
        case .revocationListMissing, .revocationListStale:
            LocalizedText(
                "The operator must fetch the revocation list; then send the request again",
                de: "Der Betreiber muss die Sperrliste abrufen; senden Sie die Anfrage dann erneut")
        case .app, .development, .environment:
            LocalizedText(
                "Only the app of this operator can be bound",
                de: "Nur die App dieses Betreibers kann gebunden werden")
        case .chain, .root, .revoked, .extendedChain, .signature, .securityLevel, .origin, .purpose,
            .bootState, .unlocked:
            LocalizedText(
                "This phone cannot be bound in its present state",
                de: "Dieses Telefon kann in seinem jetzigen Zustand nicht gebunden werden")
        }
    }

    /// The German form of `message`.
    var germanMessage: String {
        switch self {
        case .missing: "das Telefon hat keine Attestierung gesendet"
        case .size: "die Attestierung ist größer als jede gültige"
        case .malformed: "die Attestierung hat nicht die Form ihrer Plattform"
        case .format: "format muss apple-appattest oder android-key sein"
        case .chain: "eine Signatur, ein Name oder eine Einschränkung in der Zertifikatskette ist falsch"
        case .root: "die Zertifikatskette führt zu keiner anerkannten Wurzel"
        case .validity: "ein Zertifikat der Kette ist abgelaufen oder noch nicht gültig"
        case .revoked: "ein Zertifikat der Kette steht auf der Sperrliste"
        case .revocationListMissing: "es gibt keine Sperrliste, also ist keiner Kette von Android zu trauen"
        case .revocationListStale: "die Sperrliste ist zu alt oder auf die Zukunft datiert"
        case .statement: "das Zertifikat des Schlüssels muss genau eine lesbare Aussage der Plattform enthalten"
        case .extendedChain: "ein höheres Zertifikat enthält eine Schlüsselbeschreibung: die Kette wurde verlängert"
        case .challenge: "die Attestierung gilt einer anderen Challenge"
        case .key: "die Attestierung gilt einem anderen Schlüssel"
        case .app: "die Attestierung stammt von einer anderen App"
        case .counter: "der Zähler einer Attestierung muss null sein und mit jeder Assertion wachsen"
        case .environment: "die Attestierung nennt keine Umgebung von App Attest"
        case .development: "die App ist für die Entwicklung signiert"
        case .signature: "die Signatur der Assertion ist falsch"
        case .securityLevel: "der Schlüssel oder seine Attestierung liegt in Software, nicht in sicherer Hardware"
        case .origin: "der Schlüssel wurde nicht in der sicheren Hardware erzeugt"
        case .purpose: "der Schlüssel darf nur für Signaturen mit P-256 und nicht für jede App sein"
        case .bootState: "das gestartete Betriebssystem ist nicht das des Herstellers"
        case .unlocked: "der Bootloader ist entsperrt"
        }
    }
}
