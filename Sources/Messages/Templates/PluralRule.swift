/// A rule that assigns a plural form to a number: gettext's `nplurals=2; plural=n != 1;`, a C
/// expression over `n`.
///
/// The rule is evaluated for every possible number when it is read, so its use cannot fail.
struct PluralRule: Sendable {
    /// The largest number of minutes in a text: a day.
    static let largest = 1440
    /// The maximum number of forms; no language has more.
    private static let mostForms = 6

    let forms: Int
    /// The form of each number up to the largest.
    private let table: [UInt8]

    static func bounded(_ number: Int) -> Int { min(max(number, 0), largest) }

    func form(of number: Int) -> Int { Int(table[Self.bounded(number)]) }

    /// The rule of English and German, also used if a file has none.
    static let germanic = PluralRule(forms: 2, table: (0...largest).map { $0 == 1 ? 0 : 1 })

    private init(forms: Int, table: [UInt8]) {
        self.forms = forms
        self.table = table
    }

    /// Parses a rule; nil if the text is not a rule or has no form for some number.
    init?(_ text: String) {
        var fields: [String: String] = [:]
        for part in text.split(separator: ";") {
            guard let sign = part.firstIndex(of: "=") else {
                guard part.allSatisfy(\.isWhitespace) else { return nil }
                continue
            }
            fields[String(part[..<sign].filter { !$0.isWhitespace })] = String(part[part.index(after: sign)...])
        }
        guard let count = fields["nplurals"], let forms = Int(count.filter { !$0.isWhitespace }),
            (1...Self.mostForms).contains(forms), let expression = fields["plural"],
            let rule = PluralExpression(expression)
        else { return nil }
        var table: [UInt8] = []
        for number in 0...Self.largest {
            guard let form = rule.value(for: number), (0..<forms).contains(form) else { return nil }
            table.append(UInt8(form))
        }
        self.init(forms: forms, table: table)
    }
}

/// An expression in the part of C that plural rules use: whole numbers, `n`, `?:`, `||`, `&&`,
/// comparisons, `+ - * / %`, `!`.
struct PluralExpression {
    private indirect enum Node {
        case number(Int)
        case n
        case not(Node)
        case binary(String, Node, Node)
        case choice(Node, Node, Node)
    }

    private let root: Node

    /// Parses an expression; nil if the text is not one.
    init?(_ text: String) {
        var parser = Parser(text)
        guard let root = parser.choice(0), parser.isAtEnd else { return nil }
        self.root = root
    }

    /// Returns the value for `n`; nil after a division by zero or an overflow.
    func value(for n: Int) -> Int? { Self.value(root, n) }

    private static func value(_ node: Node, _ n: Int) -> Int? {
        switch node {
        case .number(let number): return number
        case .n: return n
        case .not(let inner): return value(inner, n).map { $0 == 0 ? 1 : 0 }
        case .choice(let condition, let yes, let no):
            guard let condition = value(condition, n) else { return nil }
            return value(condition != 0 ? yes : no, n)
        case .binary(let sign, let left, let right):
            guard let a = value(left, n) else { return nil }
            // As in C, the right side is not evaluated, so it may be invalid.
            if sign == "&&", a == 0 { return 0 }
            if sign == "||", a != 0 { return 1 }
            guard let b = value(right, n) else { return nil }
            return apply(sign, a, b)
        }
    }

    private static func apply(_ sign: String, _ a: Int, _ b: Int) -> Int? {
        func whole(_ result: (partialValue: Int, overflow: Bool)) -> Int? {
            result.overflow ? nil : result.partialValue
        }
        switch sign {
        case "&&", "||": return b != 0 ? 1 : 0
        case "==": return a == b ? 1 : 0
        case "!=": return a != b ? 1 : 0
        case "<": return a < b ? 1 : 0
        case ">": return a > b ? 1 : 0
        case "<=": return a <= b ? 1 : 0
        case ">=": return a >= b ? 1 : 0
        case "+": return whole(a.addingReportingOverflow(b))
        case "-": return whole(a.subtractingReportingOverflow(b))
        case "*": return whole(a.multipliedReportingOverflow(by: b))
        case "/": return whole(a.dividedReportingOverflow(by: b))
        case "%": return whole(a.remainderReportingOverflow(dividingBy: b))
        default: return nil
        }
    }

    /// The operators from the lowest to the highest precedence, as in C.
    private static let levels: [[String]] = [
        ["||"], ["&&"], ["==", "!="], ["<=", ">=", "<", ">"], ["+", "-"], ["*", "/", "%"],
    ]
    /// The maximum nesting of parentheses and of conditional expressions.
    private static let deepest = 20
    private static let longest = 500

    private struct Parser {
        private var rest: Substring.UTF8View

        init(_ text: String) {
            let packed = text.filter { !$0.isWhitespace }
            rest = Substring(packed.utf8.count <= PluralExpression.longest ? packed : "").utf8
        }

        var isAtEnd: Bool { rest.isEmpty }

        private mutating func take(_ sign: String) -> Bool {
            guard rest.starts(with: sign.utf8) else { return false }
            rest = rest.dropFirst(sign.utf8.count)
            return true
        }

        mutating func choice(_ depth: Int) -> Node? {
            guard depth < PluralExpression.deepest, let condition = chain(0, depth) else { return nil }
            guard take("?") else { return condition }
            guard let yes = choice(depth + 1), take(":"), let no = choice(depth + 1) else { return nil }
            return .choice(condition, yes, no)
        }

        private mutating func chain(_ level: Int, _ depth: Int) -> Node? {
            guard level < PluralExpression.levels.count else { return single(depth) }
            guard var left = chain(level + 1, depth) else { return nil }
            while let sign = PluralExpression.levels[level].first(where: { take($0) }) {
                guard let right = chain(level + 1, depth) else { return nil }
                left = .binary(sign, left, right)
            }
            return left
        }

        private mutating func single(_ depth: Int) -> Node? {
            guard depth < PluralExpression.deepest else { return nil }
            if take("!") { return single(depth + 1).map { .not($0) } }
            if take("n") { return .n }
            if take("(") {
                guard let inner = choice(depth + 1), take(")") else { return nil }
                return inner
            }
            let digits = rest.prefix { (0x30...0x39).contains($0) }
            guard !digits.isEmpty, digits.count <= 9, let number = Int(String(decoding: digits, as: UTF8.self)) else {
                return nil
            }
            rest = rest.dropFirst(digits.count)
            return .number(number)
        }
    }
}
