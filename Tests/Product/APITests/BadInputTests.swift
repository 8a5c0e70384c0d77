import Domain
import HTTP
import JSON
import Testing

@testable import API

/// Bad input for every route that takes a body: each answer has the status and the name of the
/// field, and the relay still works afterwards.
struct BadInputTests {
    private struct Case: Sendable, CustomStringConvertible {
        let path: String
        let form: Form
        let caller: Site
        var description: String { path }
    }

    /// Returns every form, with a caller who may use it.
    private func cases() async throws -> (rig: APIRig, cases: [Case]) {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "website"])
        let phones = try await rig.site("phones")
        let (_, phone) = try await phones.enrol("bob")
        var cases: [Case] = []
        for route in API.table.routes where route.method == "POST" {
            for form in route.forms {
                let caller =
                    switch form.action {
                    case .anyone: rig.stranger
                    case .website: shop
                    case .phone: phone
                    }
                cases.append(Case(path: IdentityTests.path(of: route), form: form, caller: caller))
            }
        }
        return (rig, cases)
    }

    private func expectAlive(_ rig: APIRig) async throws {
        let bank = try await rig.site("bank")
        let (_, phone) = try await bank.enrol("alice")
        let (challenge, number) = try await bank.login("alice")
        let answer = await phone.send(
            "POST", "/success", ["challenge": .string(challenge), "number": .string(number ?? "")])
        #expect(answer["login"] == "success")
    }

    @Test func nonJSONBodyIsMalformed() async throws {
        let (rig, cases) = try await cases()
        let deep = String(repeating: "[", count: 8) + String(repeating: "]", count: 8)
        let texts = [
            "not JSON": "hello", "cut off": "{", "a list": "[]", "a text": "\"x\"", "null": "null",
            "twice": #"{"a":1,"a":1}"#, "trailing": "{} {}", "too deep": "{\"a\":\(deep)}", "lone": #"{"a":"\ud800"}"#,
        ]
        var bodies = texts.mapValues { Array($0.utf8) }
        bodies["invalid UTF-8"] = Array("{\"a\":\"".utf8) + [0xff] + Array("\"}".utf8)
        for each in cases {
            for (what, body) in bodies {
                let response = await each.caller.post(each.path, raw: body)
                #expect(response.status == 400, "\(each.path): \(what)")
                #expect(response.code == "malformed", "\(each.path): \(what)")
                #expect(response.fields["content-type"] == "application/problem+json")
            }
        }
        try await expectAlive(rig)
    }

    @Test func bodyWithoutJSONContentTypeIsRefused() async throws {
        let (_, cases) = try await cases()
        for each in cases {
            for type in [nil, "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1"] {
                let response = await each.caller.post(each.path, raw: Array("{}".utf8), type: type)
                #expect(response.status == 415, "\(each.path): \(type ?? "no type")")
                #expect(response.code == "unsupported_type")
            }
            for type in ["application/json; charset=utf-8", "Application/JSON;charset=\"UTF-8\""] {
                let response = await each.caller.post(each.path, raw: Array("{\"no such field\":1}".utf8), type: type)
                #expect(response.status == 400, "\(each.path): \(type)")
            }
        }
    }

    @Test func largeBodiesAndQueriesAreRefused() async throws {
        let (rig, cases) = try await cases()
        for each in cases {
            let large = await each.caller.post(
                each.path, raw: Array(repeating: UInt8(ascii: " "), count: Request.bodyLimit + 1))
            #expect(large.status == 413, "\(each.path)")
            #expect(large.code == "too_large")
            var request = each.caller.request("POST", each.path, [:])
            request.query = "a=b"
            #expect(await rig.send(request).status == 400, "\(each.path)")
        }
        let response = rig.api.refuse(.bodySize, Fields(), hasCertificate: false)
        #expect(response.status == 413)
        #expect(response["code"] == "too_large")
        let body = await (try rig.site("bank")).send("DELETE", "/user/bob", ["a": 1])
        #expect(body.status == 400)
        #expect(body.code == "malformed")
    }

    @Test func missingFieldsAreReportedTogether() async throws {
        let (_, cases) = try await cases()
        for each in cases {
            let missing = each.form.parameters.filter(\.isRequired).map { "\($0.name) missing" }
            let choice = each.form.oneOf.prefix(1).map { "\($0) missing" }
            guard !missing.isEmpty || !choice.isEmpty else { continue }
            for response in [
                await each.caller.send("POST", each.path), await each.caller.send("POST", each.path, [:]),
            ] {
                #expect(response.status == 400, "\(each.path)")
                #expect(response.code == "invalid")
                #expect(Set(response.faults) == Set(missing + choice), "\(each.path)")
            }
        }
    }

    @Test func fieldThatBreaksItsRuleIsRefused() async throws {
        let (rig, cases) = try await cases()
        for each in cases {
            for parameter in each.form.parameters {
                for (value, code) in Self.wrong(parameter) {
                    let response = await each.caller.send("POST", each.path, [parameter.name: value])
                    let what = "\(each.path) \(parameter.name): \(JSONWriter.text(value).prefix(80))"
                    #expect(response.status == 400, "\(what)")
                    #expect(response.code == "invalid", "\(what)")
                    #expect(response.faults.contains("\(parameter.name) \(code)"), "\(what): \(response.text)")
                }
            }
        }
        try await expectAlive(rig)
    }

    /// Returns values that violate the parameter's description, with the expected error codes.
    private static func wrong(_ parameter: Parameter) -> [(JSONValue, String)] {
        switch parameter.schema["type"]?.string {
        case "integer":
            let high = parameter.schema["maximum"]?.integer ?? 0
            return [
                ("1", "type"), (.number(1.5), "type"), (.null, "type"), (.integer(high + 1), "format"), (-1, "format"),
            ]
        case "object": return [("x", "type"), (1, "type"), (.null, "type"), ([], "type")]
        case "boolean": return [("true", "type"), (1, "type"), (.null, "type"), ([], "type")]
        case "array":
            let limit = parameter.schema["maxItems"]?.integer ?? 0
            return [
                ("x", "type"), ([:], "type"), (.null, "type"),
                (.array(Array(repeating: [:], count: Int(limit) + 1)), "length"),
            ]
        default:
            var wrong: [(JSONValue, String)] = [(1, "type"), (true, "type"), ([], "type"), ([:], "type")]
            if parameter.schema["type"] == "string" { wrong.append((.null, "type")) }
            if let limit = parameter.schema["maxLength"]?.integer {
                if parameter.schema["minLength"] != 0 { wrong.append(("", "length")) }
                wrong.append((.string(String(repeating: "a", count: Int(limit) + 1)), "length"))
                wrong.append(("\u{7}", "format"))
            } else if parameter.schema["enum"] != nil {
                wrong.append(("no such word", "format"))
            }
            return wrong
        }
    }

    @Test func unknownFieldIsRefusedWithASuggestion() async throws {
        let (_, cases) = try await cases()
        for each in cases {
            let response = await each.caller.send("POST", each.path, ["no_such_field": 1])
            #expect(response.faults.contains("no_such_field unknown"), "\(each.path)")
            if let known = each.form.parameters.first?.name {
                let slip = String(known.dropLast()) + "y"
                let guess = await each.caller.send("POST", each.path, [slip: "x"])
                #expect(guess.faults.contains("\(slip) unknown"))
                #expect(guess.text.contains("did you mean \(known)?"), "\(each.path): \(guess.text)")
            }
        }
    }

    @Test func unknownFieldsBeyondTheLimitAreNotListed() async throws {
        let (_, cases) = try await cases()
        let members = (0..<256).map { ("\($0)" + String(repeating: "\u{301}", count: 100), JSONValue.null) }
        for each in cases {
            let response = await each.caller.send("POST", each.path, JSONObject(members))
            #expect(response.status == 400, "\(each.path)")
            #expect((90...110).contains(response.faults.count), "\(each.path)")
        }
    }

    @Test(
        arguments: [
            ("email", "bob"), ("email", "bob@localhost"), ("email", "b ob@example.com"), ("phone", "015112345678"),
            ("phone", "+0"), ("language", "e"), ("display_name", "a\u{202e}b"), ("username", "a\nb"),
        ] as [(String, String)])
    func registrationChecksEveryField(field: String, text: String) async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        var body: JSONObject = ["username": "bob"]
        body.set(field, .string(text))
        let response = await shop.send("POST", "/register", body)
        #expect(response.status == 400)
        #expect(response.faults == ["\(field) format"])
        #expect(response["errors"]?.array?.first?.object?["message_key"]?.string == "\(field).format")
    }

    @Test func faultInAListNamesItsIndex() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let response = await shop.send(
            "POST", "/login",
            ["username": "bob", "details": [["label": "a", "value": "b"], ["label": "", "valu": "x"], 1]])
        #expect(
            response.faults == [
                "details[1].label length", "details[1].value missing", "details[1].valu unknown", "details[2] type",
            ])
        #expect(response["errors"]?.array?.first?.object?["message_key"] == "details.label.length")
    }

    @Test func conflictNamesEachTakenField() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let body: JSONObject = ["username": "bob", "email": "bob@example.com", "phone": "+4915112345678"]
        #expect(await shop.send("POST", "/register", body).status == 201)
        let again = await shop.send("POST", "/register", body)
        #expect(again.status == 409)
        #expect(again.code == "conflict")
        #expect(again.faults == ["username taken", "email taken", "phone taken"])
        // Names are compared as bytes: another case or another spelling is another user.
        #expect(await shop.send("POST", "/register", ["username": "Bob"]).status == 201)
        // Users of another website do not conflict.
        #expect(await (try rig.site("bank")).send("POST", "/register", body).status == 201)
    }

    @Test func numberLengthMustMatchThePolicy() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["number": "6"])
        _ = try await shop.enrol("bob")
        let short = await shop.send("POST", "/login", ["username": "bob", "number": "12"])
        #expect(short.status == 400)
        #expect(short.faults == ["number length"])
        let own = await shop.send("POST", "/login", ["username": "bob", "number": "123456"])
        #expect(own["number"] == "123456")
    }
}
