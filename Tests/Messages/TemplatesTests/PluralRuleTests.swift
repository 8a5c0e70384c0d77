import Testing

@testable import Templates

/// The plural rules of gettext's manual, with the forms that the languages use.
@Suite struct PluralRuleTests {
    @Test(arguments: [
        ("nplurals=2; plural=n != 1;", [1, 0, 1, 1, 1, 1, 1]),
        ("nplurals=2; plural=n>1;", [0, 0, 1, 1, 1, 1, 1]),
        ("nplurals=1; plural=0;", [0, 0, 0, 0, 0, 0, 0]),
        // Russian: минут, минута, минуты; 11 and 21 differ.
        (
            "nplurals=3; plural=n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2;",
            [2, 0, 1, 2, 2, 0, 1]
        ),
        (
            "nplurals=3; plural=n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2;",
            [2, 0, 1, 2, 2, 2, 1]
        ),
        // Slovenian.
        ("nplurals=4; plural=n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3;", [3, 0, 1, 3, 3, 3, 3]),
    ])
    func pluralFormsOfLanguagesAreKnown(_ rule: String, _ forms: [Int]) throws {
        let rule = try #require(PluralRule(rule))
        #expect([0, 1, 2, 5, 11, 21, 22].map { rule.form(of: $0) } == forms)
    }

    @Test func arabicHasSixPluralForms() throws {
        let rule = try #require(
            PluralRule(
                "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5;"))
        #expect([0, 1, 2, 3, 10, 11, 99, 100, 102, 103].map { rule.form(of: $0) } == [0, 1, 2, 3, 3, 4, 4, 5, 5, 3])
    }

    @Test(arguments: [
        ("1+2*3", 7), ("(1+2)*3", 9), ("8-4-2", 2), ("!n", 0), ("!!n", 1), ("n>3==1", 1), ("1||0&&0", 1),
        ("0?1:2?3:4", 3), ("7/2%2", 1), ("0&&1/0", 0), ("1||1/0", 1), ("n<=7", 1), ("n>=8", 0),
    ])
    func operatorPrecedenceFollowsC(_ text: String, _ value: Int) throws {
        #expect(try #require(PluralExpression(text)).value(for: 7) == value)
    }

    @Test(arguments: [
        "", "n", "nplurals=2;", "plural=0;", "nplurals=0; plural=0;", "nplurals=7; plural=0;", "nplurals=1; plural=1;",
        "nplurals=2; plural=n;", "nplurals=2; plural=n-1;", "nplurals=2; plural=1/n;", "nplurals=2; plural=n%0;",
        "nplurals=2; plural=n=1;", "nplurals=2; plural=(n!=1;", "nplurals=2; plural=n!=1);", "nplurals=2; plural=m;",
        "nplurals=2; plural=n ? 1;", "nplurals=2; plural=9999999999;", "nplurals=2; plural=;", "garbage; plural=0",
        "nplurals=2; plural=999999999*999999999*999999999*n;",
    ])
    func malformedPluralRuleIsRefused(_ text: String) { #expect(PluralRule(text) == nil) }

    @Test func expressionDepthIsLimited() {
        let deep = { (open: String, close: String) in
            String(repeating: open, count: 200) + "n" + String(repeating: close, count: 200)
        }
        #expect(PluralExpression(deep("(", ")")) == nil)
        #expect(PluralExpression(deep("!", "")) == nil)
        #expect(
            PluralExpression(String(repeating: "n?", count: 100) + "1" + String(repeating: ":1", count: 100)) == nil)
        #expect(PluralExpression(String(repeating: "n+", count: 1000) + "n") == nil)
    }

    @Test func outOfRangeFormIsTheLast() {
        #expect(PluralRule.germanic.form(of: Int.max) == 1)
        #expect(PluralRule.germanic.form(of: Int.min) == 1)
    }
}
