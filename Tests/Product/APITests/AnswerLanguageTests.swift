import Crypto
import Domain
import HTTP
import JSON
import Relay
import TestSupport
import Testing

@testable import API

/// The language of problem documents: `Accept-Language`, and `Accept-User-Language` before it.
struct AnswerLanguageTests {
    private func accept(_ languages: String?, own: String? = nil) -> [(String, String)] {
        [("accept-language", languages), ("accept-user-language", own)].compactMap { name, value in
            value.map { (name, $0) }
        }
    }

    private static let english = "The object does not exist, or belongs to another caller"
    private static let german = "Das Objekt existiert nicht oder gehört einem anderen Aufrufer"

    /// The preferences follow from RFC 9110 §12.5.4 and the lookup of RFC 4647 §3.4.
    @Test(
        arguments: [
            (nil, nil, "en"), ("de", nil, "de"), ("de-AT, en;q=0.5", nil, "de"), ("DE-ch", nil, "de"),
            ("en;q=0.4, de;q=0.5", nil, "de"), ("fr, de;q=0.2", nil, "de"), ("fr", nil, "en"), ("*", nil, "en"),
            ("de;q=0", nil, "en"), ("not a language", nil, "en"), (", de,, en;q=0.5 ,", nil, "de"), (",", nil, "en"),
            ("*, de;q=0.5", nil, "de"), ("de;q=0.9, en;q=0.95", nil, "en"), ("de;q=2", nil, "en"),
            ("en", "de", "de"), ("de", "en-GB", "en"), ("de", "fr", "de"), ("de", "no language", "de"),
            (nil, "de", "de"),
        ] as [(String?, String?, String)])
    func languageIsNegotiated(accepted: String?, own: String?, language: String) async throws {
        let shop = try await APIRig().site("shop")
        let response = await shop.send("GET", "/user/nobody", fields: accept(accepted, own: own))
        #expect(response.status == 404)
        #expect(response["detail"]?.string == (language == "de" ? Self.german : Self.english))
        #expect(response["title"] == (language == "de" ? "Nicht gefunden" : "Not found"))
        #expect(response.fields.values("content-language") == [language])
        #expect(response.fields["vary"] == "accept-language, accept-user-language")
        // The parts for programs are the same in every language.
        #expect(response.code == "not_found" && response["type"] == "urn:twoefay:problem:not_found")
    }

    @Test func fieldMessagesAreTranslatedAndTheirKeysAreNot() async throws {
        let shop = try await APIRig().site("shop")
        let body: JSONObject = ["username": "", "email": "nobody", "phone": 1, "colour": "red", "languag": "de"]
        let english = await shop.send("POST", "/register", body)
        let german = await shop.send("POST", "/register", body, fields: accept("de"))
        func members(_ response: Response, _ name: String) -> [String] {
            (response["errors"]?.array ?? []).compactMap { $0.object?[name]?.string }
        }
        for name in ["parameter", "code", "message_key"] {
            #expect(members(english, name) == members(german, name) && !members(german, name).isEmpty)
        }
        let messages = [
            "darf nicht leer sein", "muss eine E-Mail-Adresse wie name@example.com sein", "muss ein String sein",
            "ist kein bekannter Parameter", "ist kein bekannter Parameter; meinten Sie language?",
        ]
        #expect(members(german, "message") == messages)
        let detail = zip(members(german, "parameter"), messages).map { "\($0) \($1)" }.joined(separator: "; ")
        #expect(german["detail"]?.string == detail)
        #expect(Set(members(english, "message")).isDisjoint(with: messages))
    }

    /// Refusals that are made before a route, a caller or a body is known.
    @Test func earlyRefusalsAreTranslated() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let german = accept("de-AT")
        var query = shop.request("POST", "/login", [:], fields: german)
        query.query = "a=b"
        let answers = [
            await shop.send("GET", "/nowhere", fields: german), await shop.send("PUT", "/login", fields: german),
            await rig.stranger.send("POST", "/login", [:], fields: german),
            await shop.send("POST", "/pending", [:], fields: german), await rig.send(query),
            rig.api.refuse(.bodySize, Fields([.init("accept-language", "de")]), hasCertificate: false),
            await shop.send("DELETE", "/user/bob", ["a": 1], fields: german),
        ]
        #expect(answers.map(\.status) == [404, 405, 401, 403, 400, 413, 400])
        for answer in answers {
            #expect(answer.fields["content-language"] == "de", "\(answer.text)")
            let english = try #require(answer.code.flatMap { Problem.Code(rawValue: $0) }).title.english
            #expect(answer["title"]?.string != english, "\(answer.text)")
        }
    }

    @Test func faultsBelowRequestsAreTranslated() async throws {
        let rig = try await APIRig()
        for fault in RequestFault.allCases {
            func answer(_ fields: Fields) -> Response { rig.api.refuse(fault, fields, hasCertificate: true) }
            let german = answer(Fields([.init("accept-language", "de")]))
            #expect(german.status == fault.status)
            #expect(german.fields["content-language"] == "de", "\(german.text)")
            let code = try #require(german.code.flatMap { Problem.Code(rawValue: $0) })
            #expect(code.status == fault.status)
            #expect(german["title"]?.string == code.title.german)
            #expect(german["detail"]?.string != answer(Fields())["detail"]?.string)
            #expect((german.fields["retry-after"] != nil) == (fault == .busy))
        }
    }

    @Test func everyTitleIsTranslated() {
        for code in Problem.Code.allCases {
            #expect(!code.title.german.isEmpty && code.title.german != code.title.english, "\(code)")
        }
        for fault in DecisionFault.allCases {
            #expect(!fault.message.german.isEmpty && fault.message.german != fault.message.english, "\(fault)")
        }
        let kinds: [JSONError.Kind] = [
            .incomplete, .unexpectedByte(0x41), .unexpectedByte(0x01), .trailingBytes, .tooDeep, .tooManyMembers,
            .duplicateName("a"), .controlCharacter, .invalidEscape, .loneSurrogate, .nonCharacter, .nul, .invalidUTF8,
            .invalidNumber, .numberOutOfRange,
        ]
        let json = kinds.map { JSONError(offset: 7, kind: $0) }
        let headers: [JWSError.HeaderFault] = [.json(json[0]), .notAnObject, .notUnderstood("crit")]
        let jws: [JWSError] = [.tooLong, .malformed, .algorithm, .signatureLength] + headers.map { .header($0) }
        for text in json.map(\.text) + jws.map(\.text) {
            #expect(!text.german.isEmpty && text.german != text.english, "\(text)")
        }
    }

    /// Every rule of every parameter, by values that some rule refuses.
    @Test func everyMessageOfAParameterIsTranslated() {
        let long = JSONValue.string(String(repeating: "x", count: 5000))
        let values: [JSONValue] = [
            1, .number(1.5), -1, true, "", "\u{202e}", "no @ such; value", long, .null, [:], ["a": 1],
            .array([1, "", [:]]),
            .array(Array(repeating: long, count: 100)),
        ]
        var messages: Set<String> = []
        for route in API.table.routes {
            for parameter in route.forms.flatMap(\.parameters) {
                var faults: [FieldFault] = []
                for value in values { parameter.check(value, parameter.name, &faults) }
                #expect(!faults.isEmpty, "\(route.path.text) \(parameter.name)")
                for fault in faults {
                    let (english, german) = (fault.message.english, fault.message.german)
                    #expect(!german.isEmpty && german != english, "\(parameter.name) \(english)")
                    messages.insert(english)
                }
            }
        }
        #expect(messages.count > 20, "\(messages)")
    }

    /// The work on a field is limited: a value of more than 256 bytes is ignored, also if it is
    /// spread over fields.
    @Test func longLanguagesAreIgnored() {
        func language(_ values: String...) -> TextLanguage {
            AcceptLanguage.textLanguage(Fields(values.map { Fields.Field("accept-language", $0) }))
        }
        let filler = String(repeating: "en;q=0.1,", count: 28)
        #expect(filler.utf8.count == 252)
        #expect(language(filler + "de") == .english, "Only the first 16 ranges count.")
        #expect(language("de," + filler) == .german)
        #expect(language("de-AT," + filler) == .english)
        #expect(language("de", filler) == .german && language("de-AT", filler) == .english)
    }

    /// The texts of formats have no translations of their own.
    @Test func errorsOfFormatsAreTranslated() async throws {
        let shop = try await APIRig().site("shop")
        let fields = Fields([.init("content-type", "application/json"), .init("accept-language", "de")])
        let answer = await shop.rig.send(
            Request(
                method: "POST", path: "/login", fields: fields, body: Array(#"{"a":1,"a":1}"#.utf8),
                certificate: shop.certificate))
        let detail =
            "Der Body ist kein gültiges I-JSON (RFC 7493): Der Name \"a\" steht zweimal in einem Objekt (Byte 7)"
        #expect(answer["detail"]?.string == detail)
        let proof = await shop.rig.stranger.send(
            "POST", "/pending", [:], fields: [("dpop", "x"), ("accept-language", "de")])
        #expect(
            proof["detail"]?.string
                == "Der DPoP-Nachweis ist ungültig: Das JWS muss drei Teile in base64url haben")
    }

    /// A stored problem keeps its language, and says so.
    @Test func storedProblemNamesItsLanguage() async throws {
        let shop = try await APIRig().site("shop")
        _ = try await shop.register("bob")
        let key = [("idempotency-key", "one")]
        let first = await shop.send("POST", "/register", ["username": "bob"], fields: key + accept("de"))
        #expect(first.status == 409 && first["detail"] == "username ist schon Benutzer dieser Website")
        let again = await shop.send("POST", "/register", ["username": "bob"], fields: key + accept("en"))
        #expect(again.body == first.body && again.fields["idempotency-replayed"] == "true")
        #expect(again.fields["content-language"] == "de")
        #expect(again.fields["vary"] == "accept-language, accept-user-language")
    }

    @Test func answerWithoutTextsNamesNoLanguage() async throws {
        let shop = try await APIRig().site("shop")
        let response = await shop.send("POST", "/register", ["username": "bob"], fields: accept("de"))
        #expect(response.status == 201)
        #expect(response.fields["content-language"] == nil && response.fields["vary"] == nil)
    }
}
